// The event "tail": https://developers.cloudflare.com/workers/runtime-apis/handlers/tail/
//
// C has the traces of other workers' invocations as JSON (src/worker/trace.c).
import { currentTrace } from "../internal/turn.js";
import { native } from "../internal/native.js";
import trace from "part:../internal/trace.js";

const SENSITIVE_HEADER = /auth|jwt|key|secret|token|^(?:set-)?cookie$/i;
const WORD = /[A-Za-z0-9_+-]+/g;

/** Identifiers that may be secrets: 32 hexadecimal digits, or 21 characters of a mixed kind. */
function isIdentifier(word) {
  const count = (pattern) => (word.match(pattern) ?? []).length;
  if (/^[0-9a-f+_-]+$/i.test(word)) {
    if (count(/[0-9a-f]/gi) >= 32) return true;
  }
  return word.length >= 21 && count(/[A-Z]/g) >= 2 && count(/[a-z]/g) >= 2 && count(/[0-9]/g) >= 2;
}

const redactUrl = (url) => url.replace(WORD, (word) => (isIdentifier(word) ? "REDACTED" : word));

function redactHeaders(headers) {
  const redacted = {};
  for (const name of Object.keys(headers)) redacted[name] = SENSITIVE_HEADER.test(name) ? "REDACTED" : headers[name];
  return redacted;
}

class TraceRequest {
  #whole;
  constructor(whole, redacts) {
    this.#whole = whole;
    this.cf = whole.cf;
    this.headers = redacts ? redactHeaders(whole.headers) : whole.headers;
    this.method = whole.method;
    this.url = redacts ? redactUrl(whole.url) : whole.url;
  }
  getUnredacted() {
    return new TraceRequest(this.#whole, false);
  }
}

class TraceItem {
  constructor({ kind, event, ...rest }) {
    if (event.request !== undefined) event.request = new TraceRequest(event.request, true);
    if (kind === "alarm") event.scheduledTime = new Date(event.scheduledTime);
    this.event = Object.keys(event).length === 0 ? null : event;
    Object.assign(this, rest);
  }
}

export async function handleTail(entry, bytes) {
  const items = JSON.parse(native.utf8Decode(bytes)).map((item) => new TraceItem(item));
  if (currentTrace() !== 0) trace().noteTail(items);
  await entry.handle("tail", items);
  return new Uint8Array(0);
}
