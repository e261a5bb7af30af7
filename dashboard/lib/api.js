// Requests to the control API. The token is kept for this tab only and goes along as a header, so that no other
// site's page can make a request in its name.
const KEY = "cairn.token";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let onDenied = () => {};
/** `callback` runs when a request is refused for want of a token. */
export const whenDenied = (callback) => { onDenied = callback; };

export const hasToken = () => Boolean(sessionStorage.getItem(KEY));
export const setToken = (token) => (token ? sessionStorage.setItem(KEY, token) : sessionStorage.removeItem(KEY));

/** A path of the API: path`/api/objects/${namespace}/${id}` encodes what is put in. */
export const path = (strings, ...values) => strings.reduce((text, part, i) => text + encodeURIComponent(values[i - 1]) + part);

/** The path of a key below `base`: what is nothing but dots a browser would take for folders. */
export const keyPath = (base, key) => (/^\.+$/.test(key) ? `${base}/?key=${encodeURIComponent(key)}` : `${base}/${encodeURIComponent(key)}`);

/** `?a=1&b=2` of those that are given. */
export function query(values) {
  const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return text.size ? `?${text}` : "";
}

async function failure(response) {
  const text = await response.text().catch(() => "");
  let error = {};
  try { const said = JSON.parse(text); error = said.error ?? said.errors?.[0] ?? {}; } catch {}
  if (response.status === 401) onDenied();
  const wait = response.headers.get("retry-after");
  return new ApiError(response.status, error.code, (error.message ?? (text.slice(0, 300) || `status ${response.status}`)) + (wait ? ` (${wait} s)` : ""));
}

/** The response, if it is one of success. */
export async function send(method, target, { body, headers, signal, token = sessionStorage.getItem(KEY) } = {}) {
  let response;
  try {
    response = await fetch(target, {
      method, body, signal, cache: "no-store", headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "the server does not answer");
  }
  if (!response.ok) throw await failure(response);
  return response;
}

async function json(method, target, body, options) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await send(method, target, { ...sent, ...options })).json();
}

export const get = (target, options) => json("GET", target, undefined, options);
export const post = (target, body = {}, options) => json("POST", target, body, options);
export const put = (target, body, options) => json("PUT", target, body, options);
export const patch = (target, body, options) => json("PATCH", target, body, options);
export const del = (target, options) => json("DELETE", target, undefined, options);

// --- SQL ---

const exact = (name, value, { source } = {}) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value;
const rawInteger = (name, value) => (typeof value === "bigint" ? (JSON.rawJSON?.(String(value)) ?? String(value)) : value);

/** Runs SQL on an object or a D1 database; integers beyond 2^53 stay what they are. */
export async function sql(target, statement, { params, readonly } = {}) {
  const body = JSON.stringify({ sql: statement, params, readonly }, rawInteger);
  const response = await send("POST", target, { body, headers: { "content-type": "application/json" } });
  return JSON.parse(await response.text(), exact);
}

// --- streams and files ---

/** The objects of a stream of JSON lines, as they come. */
export async function* lines(target, signal) {
  const response = await send("GET", target, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield parts.filter(Boolean).map((part) => JSON.parse(part));
  }
}

/** Saves bytes as a file. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Saves an answer as a file. */
export const download = async (target, name) => save(await (await send("GET", target)).blob(), name);
