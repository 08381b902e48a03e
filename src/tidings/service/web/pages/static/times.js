// Keeps "3 minutes ago" true while a page is looked at. The words are those of the server's pages.

const UNITS = [[31536000, "year"], [2592000, "month"], [86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];

export function relative(at, now = Date.now()) {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 5) return seconds <= 0 ? "just now" : "in a moment";
  const span = seconds > 0 ? seconds * 1.005 : -seconds; // 30 days that have just begun are 30 days
  const [size, unit] = UNITS.find(([size, unit]) => span >= size * (unit === "month" ? 2 : 1));
  const count = Math.floor(span / size);
  const words = `${count.toLocaleString("en")} ${unit}${count === 1 ? "" : "s"}`;
  return seconds > 0 ? `in ${words}` : `${words} ago`;
}

function update() {
  for (const time of document.querySelectorAll("time[datetime]:not([data-fixed])")) {
    const words = relative(Date.parse(time.dateTime));
    if (time.textContent !== words) time.textContent = words;
  }
}

export function keepTrue() {
  setInterval(() => { if (!document.hidden) update(); }, 5000);
  document.addEventListener("visibilitychange", update);
}
