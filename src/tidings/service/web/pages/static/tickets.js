// Tickets of subscriptions that were begun in this browser. They are kept here, so that their owner need not type them;
// a service that asks for tokens gets none of them before a form is sent.

const KEY = "tidings.tickets";

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

export function keepTickets() {
  const shown = document.querySelector("[data-new-ticket]");
  if (shown) {
    try {
      localStorage.setItem(KEY, JSON.stringify({ ...kept(), [shown.dataset.for]: shown.dataset.newTicket }));
      for (const words of shown.querySelectorAll("[data-kept], [data-not-kept]")) words.classList.toggle("hidden", "notKept" in words.dataset);
    } catch { /* a browser that keeps nothing; the ticket is on the page */ }
  }
  const tickets = kept();
  for (const field of document.querySelectorAll("form[data-for] input[data-ticket]")) {
    const ticket = tickets[field.form.dataset.for];
    if (!ticket || field.value) continue;
    field.value = ticket;
    for (const words of field.closest(".field").querySelectorAll("[data-ticket-hint]")) words.hidden = true;
  }
}
