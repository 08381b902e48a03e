// The editor of a question: it is painted and checked as it is typed, completed at the caret, and tried on events.
// The text stays in a plain textarea; a copy behind it is painted, of which only its colours and marks are seen.

import { Completion } from "./completion.js";

const form = document.querySelector("[data-editor-form]");
const editor = form.querySelector("[data-editor]");
const area = editor.querySelector("textarea");
const paint = editor.querySelector(".paint");
const verdict = document.getElementById("verdict");
for (const words of document.querySelectorAll("[data-with-script]")) words.classList.remove("hidden");

const WORDS = "SELECT FROM WHERE SUCHTHAT JOIN USING ON AND OR NOT IN CIDR BETWEEN LIKE ILIKE CONTAINS MATCHES STARTS ENDS WITH " +
  "IGNORE CASE EXISTS MISSING IS NULL ISA ANY SATISFIES VIA AT TRUE FALSE FILTER PREFIX";
const TOKENS = new RegExp(
  "(?<s>'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|<[^<>\\s]+>)|(?<v>\\?\\w+)" +
  `|(?<k>(?<![\\w:.\`])(?:${WORDS.replaceAll(" ", "|")})(?![\\w:.]))` +
  "|(?<n>(?<![\\w.:])\\d[\\d.:TZ-]*(?:e[+-]?\\d+)?[a-zA-Z]*)", "gi");

let wrong = null; // {start, end} of the mark

function span(kind, text) {
  const part = document.createElement(kind === "mark" || kind === "mark end" ? "mark" : "span");
  if (kind === "mark end") part.className = "end";
  else if (part.tagName === "SPAN") part.className = kind;
  part.textContent = text;
  return part;
}

function pieces(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(TOKENS)) {
    parts.push(text.slice(at, found.index));
    parts.push(span(Object.entries(found.groups).find(([, value]) => value !== undefined)[0], found[0]));
    at = found.index + found[0].length;
  }
  return [...parts, text.slice(at)];
}

function draw() {
  const text = area.value;
  if (wrong && wrong.start <= text.length) {
    const inside = text.slice(wrong.start, wrong.end);
    paint.replaceChildren(...pieces(text.slice(0, wrong.start)),
      inside.trim() ? span("mark", inside) : span("mark end", inside || "\u00a0"), ...pieces(text.slice(wrong.end)), "\n");
  } else {
    paint.replaceChildren(...pieces(text), "\n"); // a last empty line has a height too
  }
  paint.scrollTop = area.scrollTop;
}

function place(text, line, column) {
  // Lines and columns count characters from 1; a string's indices count halves of pairs.
  let start = 0;
  for (let i = 1; i < line; i++) start = text.indexOf("\n", start) + 1;
  const rest = [...text.slice(start).split("\n")[0]];
  start += rest.slice(0, column - 1).join("").length;
  const word = /^(?:\??[\w:]+|'[^']*'?|\s*\S)/u.exec(text.slice(start));
  return { start, end: start + (word ? word[0].length : 0) };
}

async function post(address, body) {
  const answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" }, body: JSON.stringify(body) });
  return answer.json();
}

function say(kind, words) {
  verdict.className = `verdict ${kind}`;
  if (verdict.textContent !== words) verdict.textContent = words;
  editor.classList.toggle("wrong", kind === "bad");
  area.setAttribute("aria-invalid", kind === "bad");
}

let asked = 0;
async function check() {
  const text = area.value;
  const number = ++asked;
  if (!text.trim()) { wrong = null; draw(); say("idle", ""); return; }
  let found;
  try {
    found = await post("/api/check", { text });
  } catch { return; }
  if (number !== asked || text !== area.value) return; // something newer is under way
  if (found.ok) {
    wrong = null;
    say("good", [`It can be asked: a ${(found.kinds ?? []).join(", with ")}.`, ...(found.warnings ?? []).map((warning) => warning.message)].join(" "));
  } else {
    wrong = found.line ? place(text, found.line, found.column ?? 1) : null;
    const message = (found.message ?? found.detail ?? "It cannot be checked now.").replace(` at ${found.line}:${found.column}`, "");
    const where = found.line ? `Line ${found.line}, column ${found.column}: ` : "";
    say("bad", where + message);
  }
  draw();
}

let waiting = 0;
function later() {
  clearTimeout(waiting);
  waiting = setTimeout(check, 250);
}

area.addEventListener("input", () => { wrong = null; draw(); later(); });
area.addEventListener("scroll", () => { paint.scrollTop = area.scrollTop; });
editor.classList.add("painted");
draw();
if (area.value.trim()) check();

new Completion(area, editor, paint, () => { wrong = null; draw(); later(); });

for (const example of document.querySelectorAll("[data-example]")) {
  example.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    area.focus();
    area.select();
    // As if it were typed: the browser's "undo" brings back what was there.
    if (!document.execCommand("insertText", false, example.dataset.example)) area.value = example.dataset.example;
    wrong = null; draw(); check();
    area.scrollIntoView({ block: "center" });
  });
}

const sheet = document.querySelector("[data-trial-sheet]");
const trial = document.querySelector("[data-trial]");
form.querySelector("[data-try]").addEventListener("click", async (event) => {
  event.preventDefault();
  const button = event.currentTarget;
  if (!area.value.trim()) { area.focus(); return; }
  const words = button.textContent;
  button.disabled = true;
  button.textContent = "Trying …";
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch("/subscriptions/new?part=trial", { method: "POST", headers: { Accept: "text/html" }, body });
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    trial.replaceChildren(...(answer.ok ? page.body : page.querySelector("main") ?? page.body).childNodes);
    sheet.hidden = false;
    sheet.scrollIntoView({ block: "nearest" });
  } catch {
    trial.textContent = "The service does not answer. Try again in a moment.";
    sheet.hidden = false;
  }
  button.disabled = false;
  button.textContent = words;
});
