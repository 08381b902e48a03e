// What arrives while a page is looked at. The stream only says that there is something: how it looks is asked of the
// server, which draws it as it draws everything else. So there is one drawing, and no HTML is made here.

async function fragment(address, after) {
  const url = new URL(address, location.href);
  if (after !== undefined) url.searchParams.set("after", after);
  const answer = await fetch(url, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html").body;
}

// A failing operator sends thousands: the line of a cause counts them.
function count(causes, fresh) {
  const known = [...causes.children].find((line) => line.dataset.cause === fresh.dataset.cause);
  if (known) {
    const sum = Number(known.dataset.count) + Number(fresh.dataset.count);
    if ("more" in known.dataset) fresh.dataset.more = "";
    fresh.dataset.count = sum;
    fresh.querySelector("[data-counted]").textContent = sum.toLocaleString("en") + ("more" in fresh.dataset ? "+" : "");
    fresh.querySelector("[data-because]").textContent = fresh.dataset.cause;
    known.remove();
  }
  causes.prepend(fresh);
  causes.classList.remove("hidden");
}

function raise(unread) {
  if (!unread) return;
  const number = unread.querySelector("b");
  number.textContent = Number(number.textContent) + 1;
  unread.classList.remove("hidden");
}

export function follow(list) {
  const sign = list.closest("section").querySelector("[data-live-state]");
  const empty = list.parentElement.querySelector("[data-empty]");
  const causes = list.parentElement.querySelector("[data-causes]");
  let last = Number(list.dataset.last);
  let looking = false;
  let again = false;

  const say = (on, words) => {
    sign.classList.remove("hidden");
    sign.classList.toggle("on", on);
    sign.textContent = words;
  };

  async function look() {
    if (looking) { again = true; return; }
    looking = true;
    try {
      do {
        again = false;
        const news = await fragment(list.dataset.fragment, last);
        const arrived = news.querySelector("[data-reached]");
        for (const item of [...arrived.children]) {
          if (Number(item.dataset.number) <= last) continue;
          item.classList.add("fresh");
          list.prepend(item);
          raise(document.querySelector(`[data-unread="${item.dataset.subscription}"]`));
        }
        for (const cause of news.querySelectorAll("[data-cause]")) count(causes, cause);
        if (empty && list.children.length) empty.hidden = true;
        while (list.children.length > Number(list.dataset.most)) list.lastElementChild.remove();
        list.dataset.last = last = Number(arrived.dataset.reached);
        list.dispatchEvent(new Event("arrived"));
        if ("full" in arrived.dataset) again = true;
      } while (again);
    } catch { /* the stream tells again when the service is back */ }
    looking = false;
  }

  // A browser opens few connections to one service: pages that nobody looks at leave theirs to the others, and
  // catch up when they are looked at again.
  let stream = null;
  function listen() {
    if (stream) return;
    stream = new EventSource(list.dataset.live);
    stream.addEventListener("open", () => { say(true, "live"); look(); });
    stream.addEventListener("error", (event) => {
      const over = event.target.readyState === EventSource.CLOSED;
      say(false, over ? "not live; load the page again" : "connecting");
    });
    for (const name of ["notification", "notice", "missed", "message"]) stream.addEventListener(name, look);
  }
  function leave() {
    stream?.close();
    stream = null;
  }
  listen();
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : listen()));
  addEventListener("pagehide", leave);
  addEventListener("pageshow", listen);
}

export function refresh(part, every = 5000) {
  setInterval(async () => {
    if (document.hidden || part.querySelector(".moment:hover")) return; // whose values are just being read
    try {
      const fresh = await fragment(part.dataset.refresh);
      const open = [...part.querySelectorAll("details[open][id]")].map((shown) => shown.id);
      if (part.contains(document.activeElement)) return; // the focus would be lost
      for (const id of open) fresh.querySelector(`#${id}`)?.setAttribute("open", "");
      part.replaceChildren(...fresh.childNodes);
    } catch { /* the figures stay as they were */ }
  }, every);
}
