-- What tests ask of mod_lua.

local function sorted(values)
  local names = {}
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  return names
end

function handle(r)
  r.content_type = "text/plain"
  r.headers_out["X-Lua"] = "yes"
  r:puts("hello ", r.method, " ", r.uri, "\n")
  local args = r:parseargs()
  for _, name in ipairs(sorted(args)) do r:puts(name, "=", args[name], "\n") end
  r:puts(string.format("%.3f %d %s\n", 1 / 3, 42, ("abc"):rep(3, "-")))
  r:puts(r:escape("a b/c"), " ", r:unescape("a%20b"), " ", r:md5("text"), " ", r:base64_encode("text"), "\n")
  return apache2.OK
end

function form(r)
  r.content_type = "text/plain"
  local values = r:parsebody()
  for _, name in ipairs(sorted(values)) do r:puts(name, "=", values[name], "\n") end
  return apache2.OK
end

function wrong(r)
  error("this is wrong")
end

function translate(r)
  if r.uri == "/lua/moved" then
    r.filename = r.document_root .. "/page.txt"
    return apache2.OK
  end
  return apache2.DECLINED
end
