// What could come next, in a list at the caret. The textarea is a combobox that keeps the focus; the list is moved
// through with the arrow keys, taken from with Enter or Tab, and left with Escape. Enter and Tab take only what is
// chosen: by the arrow keys, or because it completes the word before the caret.

const OFFERED = ["comparison", "value"]; // after a blank; anything else would be in the way there

export class Completion {
  constructor(area, editor, paint, changed) {
    Object.assign(this, { area, editor, paint, changed, items: [], chosen: -1, asked: 0, waiting: 0 });
    this.list = document.createElement("ul");
    this.list.className = "options";
    this.list.id = "options";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Completions");
    this.list.hidden = true;
    editor.append(this.list);
    for (const [name, value] of Object.entries({
      role: "combobox", "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-expanded": "false", "aria-controls": "options",
    })) area.setAttribute(name, value);
    area.addEventListener("input", (event) => this.typed(event));
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("blur", () => this.close());
    area.addEventListener("pointerdown", () => this.close());
    // The pointer must not take the focus from the textarea.
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = event.target.closest("li");
      if (option) { this.chosen = Number(option.dataset.place); this.take(); }
    });
  }

  get open() { return !this.list.hidden; }

  typed(event) {
    clearTimeout(this.waiting);
    if (this.taking || event.inputType?.startsWith("delete") || event.inputType === "insertFromPaste") { this.close(); return; }
    const before = this.area.value.slice(0, this.area.selectionStart);
    // Where a word is being written, and where a comparison or a value comes next. Not behind a text that is closed.
    const quoted = (before.match(/'/g)?.length ?? 0) % 2 === 1;
    if (/[\w:?.<>=!/-]$/u.test(before) || (quoted && before.endsWith("'"))) this.waiting = setTimeout(() => this.ask(), 120);
    else {
      this.close();
      if (/[ (,]$/.test(before)) this.waiting = setTimeout(() => this.ask(OFFERED), 120);
    }
  }

  async ask(kinds = null) {
    const number = ++this.asked;
    const { value: text, selectionStart: at } = this.area;
    // The service counts characters, a string halves of pairs.
    const query = new URLSearchParams({ text, at: [...text.slice(0, at)].length });
    let found;
    try {
      const answer = await fetch(`/api/complete?${query}`, { headers: { Accept: "application/json" } });
      found = await answer.json();
    } catch { return; }
    if (number !== this.asked || this.area.selectionStart !== at || this.area.value !== text) return;
    this.items = found.items ?? [];
    this.at = at;
    if (kinds && !kinds.includes(this.items[0]?.kind)) this.items = [];
    if (!this.items.length || document.activeElement !== this.area) { this.close(); return; }
    this.show();
  }

  show() {
    this.list.replaceChildren(...this.items.map((item, place) => {
      const option = document.createElement("li");
      option.id = `option-${place}`;
      option.dataset.place = place;
      option.setAttribute("role", "option");
      const what = document.createElement("span");
      what.className = "what";
      what.textContent = item.text;
      const kind = document.createElement("span");
      kind.className = "kind";
      const tells = item.detail && item.kind !== "keyword" && !item.text.endsWith(item.detail);
      kind.textContent = item.kind === "comparison" ? item.detail : tells ? `${item.kind} · ${item.detail}`.slice(0, 60) : item.kind;
      option.append(what, kind);
      return option;
    }));
    this.list.hidden = false;
    this.area.setAttribute("aria-expanded", "true");
    this.choose(this.completes(this.items[0]) ? 0 : -1);
    this.put();
  }

  start(item) {
    return [...this.area.value].slice(0, item.start).join("").length;
  }

  completes(item) {
    const bare = (text) => text.replace(/^'/, "").toLowerCase();
    const typed = bare(this.area.value.slice(this.start(item), this.at));
    return /\w$/u.test(typed) && bare(item.text).startsWith(typed);
  }

  put() {
    // Where the caret is, by what is painted behind the text up to there.
    const range = document.createRange();
    let left = this.at;
    const walker = document.createTreeWalker(this.paint, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (left <= node.length) {
        range.setStart(node, Math.max(0, left - 1));
        range.setEnd(node, left);
        break;
      }
      left -= node.length;
    }
    const caret = [...range.getClientRects()].at(-1) ?? this.editor.getBoundingClientRect();
    const frame = this.editor.getBoundingClientRect();
    const room = frame.width - this.list.offsetWidth - 4;
    this.list.style.left = `${Math.max(0, Math.min(caret.right - frame.left - 8, room))}px`;
    const top = caret.bottom - frame.top + 4;
    this.list.style.top = `${top}px`;
    // The list stays inside the editor, so that it covers neither the verdict nor the buttons: the editor grows.
    const needed = Math.ceil(top + this.list.offsetHeight + 6);
    if (needed > this.editor.clientHeight) this.area.style.minHeight = `${needed}px`;
  }

  choose(place) {
    this.chosen = place;
    for (const option of this.list.children) option.setAttribute("aria-selected", Number(option.dataset.place) === this.chosen);
    const option = this.list.children[this.chosen];
    if (!option) { this.area.removeAttribute("aria-activedescendant"); return; }
    this.area.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  take() {
    const item = this.items[this.chosen];
    const start = this.start(item);
    this.area.setSelectionRange(start, this.at);
    this.taking = true;
    if (!document.execCommand("insertText", false, item.text)) this.area.setRangeText(item.text, start, this.at, "end");
    this.taking = false;
    this.close();
    this.changed();
    if (/[:( ]$/.test(item.text)) this.ask(item.text.endsWith(":") ? null : OFFERED);
  }

  close() {
    this.asked++;
    clearTimeout(this.waiting);
    if (!this.open) return;
    this.list.hidden = true;
    this.area.setAttribute("aria-expanded", "false");
    this.area.removeAttribute("aria-activedescendant");
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); this.ask(); return; }
    if (!this.open || event.isComposing) return;
    const last = this.items.length - 1;
    const moves = {
      ArrowDown: () => this.choose(this.chosen < last ? this.chosen + 1 : 0),
      ArrowUp: () => this.choose(this.chosen > 0 ? this.chosen - 1 : last),
      Escape: () => this.close(),
    };
    const takes = (event.key === "Enter" || event.key === "Tab") && !event.shiftKey && !event.ctrlKey;
    if (moves[event.key]) moves[event.key]();
    else if (takes && this.chosen >= 0 && this.area.selectionStart === this.at) this.take();
    else {
      if (takes) this.close();
      if (["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key)) this.close();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
