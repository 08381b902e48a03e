// Single keys, for those who read with the keyboard. Each does what a link, a field or a button of the page does too.
// They can be switched off: a speech input or a shaking hand presses keys that nobody meant.

const KEY = "tidings.keys";
const typing = "input, textarea, select, [contenteditable]";

function step(by) {
  const items = [...document.querySelectorAll(".news > li")];
  const at = items.indexOf(document.activeElement.closest(".news > li"));
  items[Math.max(0, Math.min(items.length - 1, at + by))]?.focus();
}

export function useKeys() {
  const help = document.getElementById("keys");
  const button = document.querySelector("[data-keys]");
  button.classList.remove("hidden");
  button.addEventListener("click", () => help.showModal());
  const on = document.getElementById("keys-on");
  try { on.checked = localStorage.getItem(KEY) !== "off"; } catch { /* a browser that keeps nothing */ }
  on.addEventListener("change", () => {
    try { localStorage.setItem(KEY, on.checked ? "on" : "off"); } catch { /* it holds for this page */ }
  });
  const actions = {
    "/": () => {
      const field = document.querySelector("[data-search]");
      if (field) field.focus();
      else location.assign("/notifications");
    },
    n: () => location.assign("/subscriptions/new"),
    j: () => step(1),
    k: () => step(-1),
    s: () => document.activeElement.closest(".news > li")?.querySelector(".star")?.click(),
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open || !on.checked) return;
    if (event.target.closest(typing) || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}
