-- The scripts of the Lua workload: each takes a small integer and returns an
-- integer, and none needs a library that reaches outside.

local function fib(extra)
  local function f(n) if n < 2 then return n end return f(n - 1) + f(n - 2) end
  return f(18) + extra
end

local function queens(extra)
  local n, count, columns, up, down = 7, 0, {}, {}, {}
  local function place(row)
    if row > n then count = count + 1 return end
    for c = 1, n do
      if not (columns[c] or up[row + c] or down[row - c + n]) then
        columns[c], up[row + c], down[row - c + n] = true, true, true
        place(row + 1)
        columns[c], up[row + c], down[row - c + n] = nil, nil, nil
      end
    end
  end
  place(1)
  return count + extra
end

local function sieve(extra)
  local limit, composite, count = 8000 + extra, {}, 0
  for i = 2, limit do
    if not composite[i] then
      count = count + 1
      for j = i * i, limit, i do composite[j] = true end
    end
  end
  return count
end

local function trees(extra)
  local function grow(depth)
    if depth == 0 then return {} end
    return { grow(depth - 1), grow(depth - 1) }
  end
  local function count(tree)
    if not tree[1] then return 1 end
    return 1 + count(tree[1]) + count(tree[2])
  end
  local total = extra
  for depth = 4, 10, 2 do total = total + count(grow(depth)) end
  return total
end

local function words(extra)
  local text = {}
  local seed = 17 + extra
  for i = 1, 900 do
    seed = (seed * 1103515245 + 12345) % 2147483648
    text[i] = string.format("w%x", seed // 4096 % 300)
  end
  local seen, order = {}, {}
  for word in table.concat(text, " "):gmatch("%a%w*") do
    if not seen[word] then
      seen[word] = 0
      order[#order + 1] = word
    end
    seen[word] = seen[word] + 1
  end
  table.sort(order, function(a, b)
    if seen[a] ~= seen[b] then return seen[a] > seen[b] end
    return a < b
  end)
  local sum = 0
  for i, word in ipairs(order) do sum = (sum * 31 + seen[word] * i + #word:upper():rep(3, "-")) % 1000003 end
  return sum
end

local function spectral(extra)
  local n, u, v = 40 + extra, {}, {}
  local function a(i, j)
    local k = i + j
    return 1.0 / (k * (k + 1) / 2 + i + 1)
  end
  local function multiply(x, y, transposed)
    for i = 0, n - 1 do
      local sum = 0.0
      for j = 0, n - 1 do sum = sum + (transposed and a(j, i) or a(i, j)) * x[j] end
      y[i] = sum
    end
  end
  for i = 0, n - 1 do u[i] = 1.0 end
  for _ = 1, 3 do
    local t = {}
    multiply(u, t, false)
    multiply(t, v, true)
    multiply(v, t, false)
    multiply(t, u, true)
  end
  local uv, vv = 0.0, 0.0
  for i = 0, n - 1 do uv, vv = uv + u[i] * v[i], vv + v[i] * v[i] end
  return math.floor(uv / vv * 1e9)
end

local function objects(extra)
  local Account = {}
  Account.__index = Account
  function Account.new(balance) return setmetatable({ balance = balance, moves = 0 }, Account) end
  function Account:deposit(amount)
    self.balance = self.balance + amount
    self.moves = self.moves + 1
    return self
  end
  local Saving = setmetatable({}, { __index = Account })
  Saving.__index = Saving
  function Saving.new(balance) return setmetatable(Account.new(balance), Saving) end
  function Saving:interest() return self:deposit(self.balance // 100) end
  local total = 0
  for i = 1, 300 do
    local account = Saving.new(1000 + i + extra)
    for k = 1, 10 do account:deposit(k):interest() end
    total = total + account.balance + account.moves
  end
  return total
end

local function closures(extra)
  local function compose(f, g) return function(x) return f(g(x)) end end
  local function adder(n) return function(x) return x + n end end
  local chain = adder(extra)
  for i = 1, 60 do chain = compose(chain, adder(i)) end
  local sum = 0
  for i = 1, 120 do sum = sum + chain(i) end
  return sum
end

return { fib, queens, sieve, trees, words, spectral, objects, closures }
