// Numbers, sizes and times as people read them, as the command line writes them.

const NUMBERS = new Intl.NumberFormat("en-US");

export const count = (number) => (number === null || number === undefined ? "–" : NUMBERS.format(number));
export const plural = (number, noun, many = `${noun}s`) => `${count(number)} ${number === 1 ? noun : many}`;

export function bytes(size) {
  if (size === null || size === undefined) return "–";
  let [value, unit] = [size, 0];
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  let left = Math.floor(seconds);
  const texts = [];
  for (const [size, unit] of parts) {
    const number = Math.floor(left / size);
    left -= number * size;
    if (number || texts.length) texts.push(`${number}${unit}`);
    if (texts.length === 2) break;
  }
  return texts.filter((text) => !text.startsWith("0")).join(" ");
}

export const ago = (ms, now = Date.now()) =>
  ms === null || ms === undefined ? "never" : ms > now + 999 ? `in ${duration(ms - now)}`
    : now - ms < 1000 ? "just now" : `${duration(now - ms)} ago`;

export const ratio = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));

export const clockTime = (ms) => new Date(ms).toLocaleTimeString("en-GB");

export function time(ms) {
  if (ms === null || ms === undefined) return "–";
  const at = new Date(ms);
  const pad = (n) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${clockTime(ms)}`;
}

export const change = (before, after, text = count) =>
  before === after ? text(after) : `${text(before)} → ${text(after)}`;

export const CAUSES = {
  superseded: "superseded", expired_tombstone: "expired tombstones", no_key: "without a key",
  past_retention: "past retention", below_start: "below the log start",
};

export function removed(losers) {
  const texts = Object.entries(CAUSES).filter(([name]) => losers[name]).map(([name, text]) => `${count(losers[name])} ${text}`);
  return texts.join(", ") || "nothing";
}

export const sum = (items, value) => items.reduce((total, item) => total + (value(item) || 0), 0);

export function horizon(log) {
  if (log.horizon_limited_by === "log end") return "The horizon is at the log end.";
  const by = log.horizon_held_by ? ` (${log.horizon_held_by.split("/").pop()})` : "";
  return `The horizon is held at ${count(log.horizon)} by ${log.horizon_limited_by}${by}.`;
}
