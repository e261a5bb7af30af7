// What a server answered, without what depends on time, chance and its port; and where two differ.

/** Headers that say how bytes travel, or when: no part of a project's answer. */
const TRANSPORT = new Set(["date", "connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "server"]);

/** Documented in docs/reference/static-assets.md: no cache before the server, ranges, what a 405 must say. */
const DOCUMENTED = new Set(["cf-cache-status", "accept-ranges", "allow"]);

const COMMON = [
  [/"[0-9a-f]{32}"/g, "<tag>"], // entity tags of assets: a hash, of what is each server's business
  [/((\\\\)?\\n|\n) +at [^"\\\n]*/g, ""], // stacks: each engine has its own
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "<uuid>"],
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?/g, "<time>"],
  [/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, "<time>"],
  [/\b1[6-9]\d{11}\b/g, "<ms>"],
  [/\b1[6-9]\d{8}\b/g, "<s>"],
];

/** A function that makes a value independent of this run. */
export function normaliser(url, patterns = []) {
  const { host, port } = new URL(url);
  const text = (value) => {
    value = value.replaceAll(host, "<host>").replaceAll(`localhost:${port}`, "<host>").replaceAll(encodeURIComponent(host), "<host>");
    for (const [pattern, replacement] of [...patterns, ...COMMON]) value = value.replace(pattern, replacement);
    return value;
  };
  const any = (value) => {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return value.map(any);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [text(k), any(v)]));
    return value === undefined ? null : value;
  };
  return any;
}

/** The headers that count. */
export const headersOf = (headers) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !TRANSPORT.has(name) && !DOCUMENTED.has(name)).sort(([a], [b]) => (a < b ? -1 : 1)));

const show = (value) => {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};

/** The first place where two values differ: [path, a, b], or null. */
function firstDifference(a, b, at) {
  if (a && b && typeof a === "object" && typeof b === "object" && Array.isArray(a) === Array.isArray(b)) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const found = firstDifference(a[key], b[key], `${at}.${key}`);
      if (found) return found;
    }
    return null;
  }
  if (typeof a === "string" && typeof b === "string" && a !== b && a.length + b.length > 300) {
    let i = 0;
    while (a[i] === b[i]) i++;
    return [`${at}[${i}]`, a.slice(Math.max(0, i - 40), i + 120), b.slice(Math.max(0, i - 40), i + 120)];
  }
  return a === b ? null : [at, a, b];
}

/**
 * In words, every step whose answers differ; "" if none does. `known` are differences that a project's
 * file explains, {step, why}: of such a step only the status is compared.
 */
export function difference(wrangler, cairn, known) {
  const lines = [];
  for (let i = 0; i < Math.max(wrangler.length, cairn.length); i++) {
    const [a, b] = [wrangler[i], cairn[i]].map((step) => step && known.some((k) => step.step.startsWith(k.step)) ? { step: step.step, status: step.status } : step);
    const found = firstDifference(a, b, "");
    if (found) lines.push(`${a?.step ?? b?.step}${found[0]}: wrangler ${show(found[1])}, cairn ${show(found[2])}`);
  }
  return lines.join("\n");
}
