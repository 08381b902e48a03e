// Sends the requests of the page that describes the API, and shows their answers. An answer is shown as text, never as HTML.

const MOST = 20000; // characters that are shown
const token = document.querySelector("#api-token");

for (const hidden of document.querySelectorAll("form[data-send] [data-with-script]")) hidden.classList.remove("hidden");

function request(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = { Accept: "application/json, */*;q=0.5" };
  for (const field of form.querySelectorAll("[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.dataset.name}}`, encodeURIComponent(value));
    else if (!value) continue;
    else if (field.dataset.in === "header") headers[field.dataset.name] = value;
    else for (const one of "many" in field.dataset ? value.split(",") : [value]) query.append(field.dataset.name, one.trim());
  }
  if (token.value.trim()) headers.Authorization = `Bearer ${token.value.trim()}`;
  const body = form.querySelector("[data-body]")?.value;
  if (body?.trim()) headers["Content-Type"] = form.querySelector("[data-kind]").value;
  const address = query.size ? `${path}?${query}` : path;
  return [address, { method: form.dataset.send, headers, body: body?.trim() ? body : undefined }];
}

function shown(text, type) {
  if (/json/.test(type)) {
    try {
      text = JSON.stringify(JSON.parse(text), null, 2);
    } catch { /* as it came */ }
  }
  return text.length > MOST ? `${text.slice(0, MOST)}\n…` : text;
}

async function send(form) {
  const place = form.parentElement.querySelector("[data-answer]");
  const [address, settings] = request(form);
  const words = document.createElement("p");
  const body = document.createElement("pre");
  const began = performance.now();
  try {
    const answer = await fetch(address, settings);
    const text = await answer.text();
    const took = Math.round(performance.now() - began);
    words.textContent = `${settings.method} ${address}: ${answer.status} ${answer.statusText} after ${took} ms`;
    words.className = answer.ok ? "good" : "bad";
    body.textContent = text ? shown(text, answer.headers.get("Content-Type") ?? "") : "(no body)";
  } catch (error) {
    words.textContent = `${settings.method} ${address}: no answer (${error.message})`;
    words.className = "bad";
  }
  body.tabIndex = 0; // it scrolls
  place.replaceChildren(words, ...(body.textContent ? [body] : []));
  place.hidden = false;
}

for (const form of document.querySelectorAll("form[data-send]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}

// An address such as /api#create_token opens that operation.
function open() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
  }
}
addEventListener("hashchange", open);
open();
