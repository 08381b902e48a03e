// The editor of a subscription: it is painted and checked as it is typed, completed at the caret, and tried on events.
// The text stays in a plain textarea; a copy behind it is painted, of which only its colours and marks are seen.

import { Completion } from "./completion.js";

const form = document.querySelector("[data-editor-form]");
const editor = form.querySelector("[data-editor]");
const area = editor.querySelector("textarea");
const paint = editor.querySelector(".paint");
const verdict = document.getElementById("verdict");
for (const words of document.querySelectorAll("[data-with-script]")) words.classList.remove("hidden");

const WORDS = "SELECT FROM WHERE SUCHTHAT JOIN USING ON AND OR NOT IN CIDR BETWEEN LIKE ILIKE CONTAINS SEARCH STEMMED MATCHES STARTS ENDS WITH " +
  "IGNORE CASE EXISTS MISSING IS NULL ISA ANY SATISFIES VIA AT TRUE FALSE FILTER PREFIX";
const TOKENS = new RegExp(
  "(?<s>'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|<[^<>\\s]+>)|(?<v>\\?\\w+)" +
  `|(?<k>(?<![\\w:.\`])(?:${WORDS.replaceAll(" ", "|")})(?![\\w:.]))` +
  "|(?<n>(?<![\\w.:])\\d[\\d.:TZ-]*(?:e[+-]?\\d+)?[a-zA-Z]*)", "gi");

const RED_AFTER = 1500; // milliseconds without typing, after which unfinished text is wrong
const warnings = document.getElementById("warnings");
const covered = document.getElementById("covered");
let wrong = null; // {start, end} of the mark
let doubtful = []; // {start, end} of what is warned of

function span(kind, text) {
  const part = document.createElement(kind.startsWith("mark") ? "mark" : "span");
  part.className = kind.replace(/^mark ?/, "");
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
  const parts = [];
  let at = 0;
  for (const mark of wrong ? [{ ...wrong, kind: "mark" }] : doubtful.map((found) => ({ ...found, kind: "mark wary" }))) {
    if (mark.start < at || mark.start > text.length) continue;
    const inside = text.slice(mark.start, mark.end);
    parts.push(...pieces(text.slice(at, mark.start)), inside.trim() ? span(mark.kind, inside) : span("mark end", inside || "\u00a0"));
    at = mark.end;
  }
  paint.replaceChildren(...parts, ...pieces(text.slice(at)), "\n"); // a last empty line has a height too
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

function warn(text, found) {
  // Places count characters; a string's indices count halves of pairs.
  const index = (place) => [...text].slice(0, place).join("").length;
  const size = [...text].length;
  doubtful = found.filter(({ start, end }) => Number.isInteger(start) && end > start && end - start < size) // not all of it
    .map(({ start, end }) => ({ start: index(start), end: index(end) })).sort((a, b) => a.start - b.start);
  const items = found.map(({ message }) => Object.assign(document.createElement("li"), { textContent: message }));
  warnings.replaceChildren(...items);
  warnings.hidden = !items.length;
}

// Which subscriptions already match whatever matches the text. Their pages open beside this one, which has a text in it.
function cover(names, more) {
  const made = (kind, ...parts) => { const part = document.createElement(kind); part.append(...parts); return part; };
  const link = ({ id }, words) => Object.assign(made("a", words), { href: `/subscriptions/${encodeURIComponent(id)}`, target: "_blank" });
  const too = "whatever matches here matches there too";
  covered.hidden = !names.length;
  if (names.length === 1 && !more) {
    covered.replaceChildren(made("p", link(names[0], `“${names[0].title}”`), names[0].same ? " asks for the same." : ` already covers this: ${too}.`));
  } else if (names.length) {
    const items = names.map((name) => made("li", link(name, name.title), name.same ? ", which asks for the same" : ""));
    const count = more ? `At least ${names.length}` : names.length;
    covered.replaceChildren(made("p", `${count} subscription${names.length === 1 ? " already covers" : "s already cover"} this: ${too}.`), made("ul", ...items));
  }
}

// Whether what is wrong is only that the text has not come to its end yet, where it is being written.
function unfinished(text, found, mark) {
  if (document.activeElement !== area || area.selectionStart < text.trimEnd().length) return false;
  const open = mark && text[mark.start] === "(" && !text.slice(mark.start).includes(")");
  return /^the text (ends|is empty)/.test(found.message ?? "") || open || (mark && mark.end >= text.trimEnd().length);
}

let asked = 0;
let waiting = 0;
let reddening = 0;
let unknown = 0; // how often it was not found out what covers this text
async function check() {
  const text = area.value;
  const number = ++asked;
  clearTimeout(reddening);
  if (!text.trim()) { wrong = null; warn(text, []); cover([]); draw(); say("idle", ""); return; }
  let found;
  try {
    found = await post("/api/check", form.dataset.for ? { text, edited: form.dataset.for } : { text });
  } catch { return; }
  if (number !== asked || text !== area.value) return; // something newer is under way
  if (found.ok) {
    wrong = null;
    warn(text, found.warnings ?? []);
    say("good", `Valid: a ${(found.kinds ?? []).join(", with ")}.`);
    cover(found.covered_by ?? [], found.covered_by_more);
    draw();
    if (found.covered_by === null && unknown++ < 3) waiting = setTimeout(check, 1000);
    return;
  }
  warn(text, found.warnings ?? []);
  cover([]);
  const mark = found.line ? place(text, found.line, found.column ?? 1) : null;
  const message = (found.message ?? found.detail ?? "It cannot be checked now.").replace(` at ${found.line}:${found.column}`, "");
  const refuse = () => {
    wrong = mark;
    say("bad", (found.line ? `Line ${found.line}, column ${found.column}: ` : "") + message);
    draw();
  };
  if (!unfinished(text, found, mark)) { refuse(); return; }
  const expected = /; ((?:expected|to find) .*)$/.exec(message)?.[1];
  say("idle", expected ? `Not finished: ${expected}.` : "Not finished yet.");
  draw();
  reddening = setTimeout(() => { if (number === asked && text === area.value) refuse(); }, RED_AFTER);
}

function later() {
  clearTimeout(waiting);
  unknown = 0;
  waiting = setTimeout(check, 250);
}

area.addEventListener("input", () => { clearTimeout(reddening); wrong = null; doubtful = []; draw(); later(); });
area.addEventListener("scroll", () => { paint.scrollTop = area.scrollTop; });
editor.classList.add("painted");
draw();
if (area.value.trim()) check();

new Completion(area, editor, paint, () => { wrong = null; doubtful = []; draw(); later(); });

for (const example of document.querySelectorAll("[data-example]")) {
  example.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    area.focus();
    area.select();
    // As if it were typed: the browser's "undo" brings back what was there.
    if (!document.execCommand("insertText", false, example.dataset.example)) area.value = example.dataset.example;
    wrong = null; doubtful = []; draw(); check();
    area.scrollIntoView({ block: "center" });
  });
}

const sheet = document.querySelector("[data-trial-sheet]");
const trial = document.querySelector("[data-trial]");
const stale = sheet.querySelector("[data-stale]");
let triedText = area.value; // a result that came with the page is that of its text
const markStale = () => { stale.hidden = area.value === triedText; };
area.addEventListener("input", markStale);

function show() {
  sheet.hidden = false;
  // Who reads by ear is brought to the heading, and hears the rest as it changes.
  sheet.querySelector("h2").focus({ preventScroll: true });
  const { top } = sheet.getBoundingClientRect();
  if (top < 0 || top > innerHeight * 0.6) sheet.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

form.querySelector("[data-try]").addEventListener("click", async (event) => {
  event.preventDefault();
  const button = event.currentTarget;
  if (!area.value.trim()) { area.focus(); return; }
  const words = button.textContent;
  triedText = area.value;
  button.disabled = true;
  button.textContent = "Trying …";
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(`${button.formAction}?part=trial`, { method: "POST", headers: { Accept: "text/html" }, body });
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    trial.replaceChildren(...(answer.ok ? page.body : page.querySelector("main") ?? page.body).childNodes);
  } catch {
    trial.textContent = "The service does not answer. Try again in a moment.";
  }
  markStale();
  show();
  button.disabled = false;
  button.textContent = words;
});

// What the text would have matched of past events: asked for, followed while it is counted, given up for a newer one.
const past = document.querySelector("[data-backtest-sheet]");
const pastResult = past.querySelector("[data-result]");
const pastStale = past.querySelector("[data-stale]");
const bar = past.querySelector("[data-progress]");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
let pastText = null;
let underWay = null; // the id of a backtest that is not done
form.querySelector("[data-zone]").value = zone;
area.addEventListener("input", () => { pastStale.hidden = pastText === null || area.value === pastText; });

function giveUp() {
  if (underWay) fetch(`/api/backtests/${underWay}`, { method: "DELETE", keepalive: true }).catch(() => {});
  underWay = null;
}
addEventListener("pagehide", giveUp);

async function follow(id) {
  for (;;) {
    const answer = await fetch(`/api/backtests/${id}`, { headers: { Accept: "application/json" } });
    const state = await answer.json();
    if (underWay !== id) return null;
    if (!answer.ok) return state.detail;
    if (!["waiting", "running"].includes(state.status)) break;
    bar.value = 100 * state.progress;
    pastResult.textContent = state.status === "waiting" ? "Others are being counted first …" : "Matching past events …";
    await new Promise((done) => { setTimeout(done, 300); });
  }
  const page = await (await fetch(`/backtests/${id}?part=result`, { headers: { Accept: "text/html" } })).text();
  if (underWay !== id) return null;
  pastResult.replaceChildren(...new DOMParser().parseFromString(page, "text/html").body.childNodes);
  return "";
}

form.querySelector("[data-backtest]").addEventListener("click", async (event) => {
  event.preventDefault();
  if (!area.value.trim()) { area.focus(); return; }
  giveUp();
  pastText = area.value;
  pastStale.hidden = true;
  past.hidden = false;
  pastResult.textContent = "";
  bar.hidden = false;
  bar.removeAttribute("value");
  past.querySelector("h2").focus({ preventScroll: true });
  past.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  let trouble;
  try {
    const begun = await post("/api/backtests", { text: pastText, schedule: { digest: "daily", zone } });
    underWay = begun.id ?? null;
    trouble = begun.id ? await follow(begun.id) : begun.detail ?? "It cannot be counted now.";
  } catch {
    trouble = "The service does not answer. Try again in a moment.";
  }
  if (trouble === null) return; // a newer one is under way
  if (trouble) pastResult.replaceChildren(Object.assign(document.createElement("p"), { className: "note bad", textContent: trouble }));
  underWay = null;
  bar.hidden = true;
});
