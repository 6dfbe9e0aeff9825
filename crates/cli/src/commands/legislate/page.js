"use strict";
// The fields of one module type, and what the server says of them. Nothing is decided here.

const $ = (id) => document.getElementById(id);
const lists = ["entries", "exports", "locked", "read-only", "handles"];
const texts = [["wall"], ["memory"], ["authors"], ["elastic-stack", "stack"]];
const numbers = ["loops", "loop-depth", "loop-nests", "instructions"];
const names = { c: "C", rust: "Rust" };
let start;
let draft;
let asked = 0;

async function ask(what, question) {
  const response = await fetch(what, { method: "POST", body: JSON.stringify(question ?? {}) });
  const said = await response.json();
  if (!response.ok) throw new Error(said.error);
  return said;
}

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const lines = (id) => $(id).value.split("\n").map((line) => line.trim()).filter((line) => line);

// From the type to the fields.
function show() {
  const elastic = draft.elastic;
  $("id").value = draft.id;
  $("description").value = draft.description;
  $("protection").value = draft.protection;
  $("imports").value = (draft.imports ?? []).join("\n");
  for (const limit of ["time", "heap", "stack", "calls"]) $(limit).value = draft.limits?.[limit] ?? "";
  $("wall").value = elastic.wall ?? "language-and-window";
  $("memory").value = elastic.memory ?? "wall";
  $("authors").value = elastic.authors ?? "untrusted";
  for (const part of document.querySelectorAll("[data-language]")) part.hidden = part.dataset.language !== draft.language;
  $("language").textContent = names[draft.language];
  $("always").textContent = `${start.always[draft.language].join(", ")}.`;
  $("elastic-stack").value = elastic.stack ?? "";
  for (const id of numbers) $(id).value = elastic[id] ?? "";
  for (const id of lists) $(id).value = (elastic[id] ?? []).join("\n");
  $("before").value = elastic.wrap?.before ?? "";
  $("after").value = elastic.wrap?.after ?? "";
  $("file").value = elastic.environment?.file ?? "";
  $("sha256").value = elastic.environment?.sha256 ?? "";
  $("public").value = (elastic.environment?.public ?? []).join("\n");
  for (const box of document.querySelectorAll("#rules input")) {
    box.disabled = false;
    box.checked = (elastic.forbid ?? []).includes(box.value);
    const rule = start.rules.find((rule) => rule.name === box.value);
    box.parentElement.hidden = !rule.languages.includes(draft.language);
  }
  for (const set of document.querySelectorAll("#rules fieldset")) set.hidden = !set.querySelector(".rule:not([hidden])");
}

// From the fields to the type. A field that is not on the page stays as it was.
function read() {
  const elastic = draft.elastic;
  const put = (object, key, value) => {
    if (value === "" || value === undefined || (Array.isArray(value) && !value.length)) delete object[key];
    else object[key] = value;
  };
  const number = (text) => (/^\d+$/.test(text.trim()) ? Number(text) : text.trim());
  draft.id = $("id").value;
  draft.description = $("description").value;
  draft.protection = $("protection").value;
  put(draft, "imports", lines("imports"));
  draft.limits ??= {};
  for (const limit of ["time", "heap", "stack"]) put(draft.limits, limit, $(limit).value.trim());
  put(draft.limits, "calls", number($("calls").value));
  for (const [id, key] of texts) put(elastic, key ?? id, $(id).value.trim());
  delete elastic[draft.language === "rust" ? "memory" : "authors"];
  draft.mechanism = [{ "language-and-process": "process", language: "language" }[elastic.wall] ?? "window"];
  // Behind the language alone nothing is confined, and nobody verifies it.
  if (elastic.wall === "language") {
    draft.protection = "none";
    draft.verification = "trusted";
  } else if (draft.protection === "none") {
    draft.protection = "read-write-call";
    delete draft.verification;
  }
  $("protection").value = draft.protection;
  for (const id of numbers) put(elastic, id, number($(id).value));
  for (const id of lists) put(elastic, id, lines(id));
  const wrap = {};
  put(wrap, "before", $("before").value.trim());
  put(wrap, "after", $("after").value.trim());
  elastic.wrap = wrap;
  if ($("file").value.trim()) {
    elastic.environment = { file: $("file").value.trim(), sha256: $("sha256").value.trim(), public: lines("public") };
  } else delete elastic.environment;
  const boxes = [...document.querySelectorAll("#rules .rule:not([hidden]) input")];
  const known = boxes.map((box) => box.value);
  const chosen = boxes.filter((box) => box.checked && !box.disabled).map((box) => box.value);
  put(elastic, "forbid", [...(elastic.forbid ?? []).filter((name) => !known.includes(name)), ...chosen]);
}

async function look() {
  read();
  const number = ++asked;
  $("verdict").textContent = $("sample").value ? "Being judged …" : "";
  let said;
  try {
    said = await ask("look", { draft, sample: $("sample").value });
  } catch (error) {
    said = { problem: error.message };
  }
  if (number !== asked) return;
  const problem = said.problem;
  $("problem").hidden = !problem;
  $("problem").textContent = problem ?? "";
  $("text").textContent = said.text ?? "";
  $("digest").textContent = said.digest ?? "";
  $("worst").textContent = said.worst ?? "";
  $("save").disabled = !!problem;
  if (said.rules) {
    for (const box of document.querySelectorAll("#rules input")) {
      const brought = said.rules.includes(box.value) && !(draft.elastic.forbid ?? []).includes(box.value);
      box.disabled = brought;
      box.checked = said.rules.includes(box.value);
    }
  }
  refusals(said);
  compare();
  document.body.dataset.asked = number;
}

function refusals(said) {
  const list = $("refusals");
  list.replaceChildren();
  const found = said.refusals;
  $("verdict").className = found ? (found.length ? "bad" : "good") : "bad";
  $("verdict").textContent = said.unjudged ?? (!found ? "" : found.length ? `${found.length} refused` : "Every line may be compiled.");
  for (const refusal of found ?? []) {
    const item = element("li");
    const place = refusal.line ? `line ${refusal.line}, column ${refusal.column}` : "the whole";
    const button = element("button", place, { type: "button" });
    button.addEventListener("click", () => select(refusal));
    item.append(button, ` ${refusal.what}: ${refusal.construct}. `, element("strong", refusal.rule));
    item.append(` (${refusal.by}). Instead: ${refusal.instead}.`);
    if (refusal.note) item.append(element("div", refusal.note));
    list.append(item);
  }
}

function select(refusal) {
  const sample = $("sample");
  const before = sample.value.split("\n").slice(0, refusal.line - 1).join("\n");
  const from = (refusal.line > 1 ? before.length + 1 : 0) + refusal.column - 1;
  sample.focus();
  sample.setSelectionRange(from, from + Math.max(refusal.length, 1));
}

// What differs, field by field.
function compare() {
  const rows = $("difference").tBodies[0];
  rows.replaceChildren();
  const other = start.types[$("other").value];
  if (!other) return;
  const flat = (object, name = "", into = {}) => {
    for (const [key, value] of Object.entries(object)) {
      if (value && typeof value === "object" && !Array.isArray(value)) flat(value, `${name}${key}.`, into);
      else into[name + key] = Array.isArray(value) ? [...value].sort().join(", ") : String(value);
    }
    return into;
  };
  const [here, there] = [flat(draft), flat(other)];
  const head = element("tr");
  head.append(element("th", "field"), element("th", draft.id), element("th", other.id));
  rows.append(head);
  for (const key of [...new Set([...Object.keys(here), ...Object.keys(there)])].sort()) {
    if ((here[key] ?? "") === (there[key] ?? "")) continue;
    const row = element("tr");
    row.append(element("th", key), element("td", here[key] ?? "–"), element("td", there[key] ?? "–"));
    rows.append(row);
  }
}

async function save() {
  read();
  try {
    const said = await ask("save", { draft, replace: $("replace").checked });
    $("saved").className = said.exists ? "bad" : "good";
    $("saved").textContent = said.exists ? `${said.exists} is there already.` : `${said.path} was written, SHA-256 ${said.digest}.`;
  } catch (error) {
    $("saved").className = "bad";
    $("saved").textContent = error.message;
  }
}

async function begin() {
  start = await ask("start");
  for (const heading of new Set(start.rules.map((rule) => rule.heading))) {
    const set = element("fieldset");
    set.append(element("legend", heading));
    for (const rule of start.rules.filter((rule) => rule.heading === heading)) {
      const row = element("div", undefined, { class: "rule" });
      const box = element("input", undefined, { type: "checkbox", value: rule.name, id: `rule-${rule.name}` });
      row.append(box, element("label", rule.what, { for: box.id }), element("small", `${rule.reason[0].toUpperCase()}${rule.reason.slice(1)}. Costs ${rule.cost}.`));
      set.append(row);
    }
    $("rules").append(set);
  }
  start.types.forEach((type, index) => {
    const name = type.description ? `${type.id}: ${type.description}` : type.id;
    $("base").append(element("option", name, { value: index }));
    $("other").append(element("option", name, { value: index }));
  });
  $("other").prepend(element("option", "nothing", { value: "" }));
  $("other").value = "";
  const take = () => {
    draft = structuredClone(start.types[$("base").value]);
    show();
    look();
  };
  let waiting;
  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 250);
  };
  $("base").addEventListener("change", take);
  $("other").addEventListener("change", compare);
  $("save").addEventListener("click", save);
  $("sample").addEventListener("input", soon);
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $("form").addEventListener("input", (event) => event.target.id !== "base" && soon());
  $("sample").addEventListener("dragover", (event) => event.preventDefault());
  $("sample").addEventListener("drop", async (event) => {
    event.preventDefault();
    const dropped = event.dataTransfer.files[0];
    $("sample").value = dropped ? await dropped.text() : event.dataTransfer.getData("text");
    look();
  });
  take();
}

begin();
