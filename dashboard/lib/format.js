// How numbers, sizes and times are written.

export function count(value) {
  return value === undefined || value === null ? "–" : value.toLocaleString("en-US");
}

/** "1 message", "2 messages". */
export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** Three significant digits with k, M, G. */
export function short(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (Math.abs(value) >= limit) return `${digits(value / (limit === 1e4 ? 1e3 : limit))}${unit}`;
  return digits(value);
}

export function digits(value) {
  const size = Math.abs(value);
  return size >= 100 || Number.isInteger(value) ? String(Math.round(value)) : size >= 10 ? value.toFixed(1) : size === 0 ? "0" : value.toFixed(2);
}

export function bytes(value) {
  if (value === undefined || value === null) return "–";
  for (const [limit, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (value >= limit) return `${digits(value / limit)} ${unit}`;
  return `${digits(value)} B`;
}

export function seconds(value) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  if (value === Infinity) return "> 60 s";
  if (value >= 1) return `${digits(value)} s`;
  if (value >= 1e-3) return `${digits(value * 1e3)} ms`;
  return value === 0 ? "0 ms" : `${digits(value * 1e6)} µs`;
}

const pad = (value, size = 2) => String(value).padStart(size, "0");

/** 2026-01-31 12:00:00, in local time; with milliseconds if wanted. */
export function time(ms, fraction = false) {
  if (ms === undefined || ms === null) return "–";
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return "–";
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${clock(ms, fraction)}`;
}

export function clock(ms, fraction = false) {
  const at = new Date(ms);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}${fraction ? `.${pad(at.getMilliseconds(), 3)}` : ""}`;
}

/** The value of a field of type datetime-local, which is local time; new Date() reads it. */
export const field = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);

/** "3 min ago", "in 2 h". */
export function ago(ms, now = Date.now()) {
  if (ms === undefined || ms === null) return "–";
  const seconds = Math.abs(now - ms) / 1000;
  let text;
  if (seconds < 5) return "now";
  if (seconds < 100) text = `${Math.round(seconds)} s`;
  else if (seconds < 6000) text = `${Math.round(seconds / 60)} min`;
  else if (seconds < 100 * 3600) text = `${Math.round(seconds / 3600)} h`;
  else text = `${Math.round(seconds / 86400)} days`;
  return ms > now ? `in ${text}` : `${text} ago`;
}

/** The beginning of an id. */
export const brief = (id, size = 12) => (id.length > size + 1 ? `${id.slice(0, size)}…` : id);
