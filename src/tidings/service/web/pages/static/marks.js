// Stars without loading the page anew, and read positions that move on while a subscription's page is looked at. Both
// are plain forms, which do the same without a script.

async function send(address, body) {
  const answer = await fetch(address, { method: "POST", redirect: "manual", body: new URLSearchParams(body) });
  return answer.type === "opaqueredirect";
}

export function keepStars() {
  document.getElementById("star-form")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    if (!(await send(button.formAction, new FormData(event.target, button)))) return;
    const starred = button.value === "yes";
    button.value = starred ? "no" : "yes";
    button.setAttribute("aria-pressed", starred);
    button.firstElementChild.textContent = starred ? "★" : "☆";
  });
}

export function moveOn(list) {
  const csrf = document.querySelector("meta[name=form-token]").content;
  const form = list.parentElement.querySelector(`form[action="${list.dataset.read}"]`);
  let read = "";
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const number = list.dataset.last;
      if (document.hidden || number === read) return;
      read = number;
      if (await send(list.dataset.read, { csrf, number })) form?.remove();
    }, 300);
  };
  later();
  list.addEventListener("arrived", later);
  document.addEventListener("visibilitychange", later);
}
