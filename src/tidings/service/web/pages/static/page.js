// What every page does better with a script than without. Nothing here is needed to read a page or to send a form.

import { useKeys } from "./keys.js";
import { follow, refresh } from "./live.js";
import { keepStars, moveOn } from "./marks.js";
import { keepTickets } from "./tickets.js";
import { keepTrue } from "./times.js";

keepTickets();
keepTrue();
keepStars();
useKeys();
for (const list of document.querySelectorAll("[data-read]")) moveOn(list);
for (const list of document.querySelectorAll("[data-live]")) {
  follow(list);
  list.addEventListener("arrived", () => {
    for (const field of list.parentElement.querySelectorAll("input[data-number]")) field.value = list.dataset.last;
  });
}
for (const part of document.querySelectorAll("[data-refresh]")) refresh(part);

for (const button of document.querySelectorAll("[data-copy], [data-copy-text]")) {
  button.classList.remove("hidden");
  const words = button.textContent;
  button.addEventListener("click", async () => {
    const text = button.dataset.copyText ?? document.querySelector(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy";
    }
    setTimeout(() => { button.textContent = words; }, 2000);
  });
}

for (const button of document.querySelectorAll("[data-sure]")) {
  button.addEventListener("click", (event) => {
    if (!confirm(button.dataset.sure)) event.preventDefault();
  });
}

// A search field begins the search anew when it is emptied by its cross.
for (const field of document.querySelectorAll('input[type="search"]')) {
  field.addEventListener("search", () => { if (!field.value && field.defaultValue) field.form.submit(); });
}

for (const field of document.querySelectorAll("input[data-zone]")) {
  field.value ||= Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
}
