// What a project's script is given: requests, WebSockets, checks, and the project's own packages as
// clients. Everything that comes back is recorded for the comparison.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import http from "node:http";
import { WebSocket } from "ws";
import { headersOf, normaliser } from "./record.mjs";

const TIMEOUT_MS = 60_000;

/** One request; redirects are not followed, nothing is added. */
function send(url, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = http.request(url, { method, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => {
        const bytes = Buffer.concat(parts);
        resolve({ status: response.statusCode, headers: response.headers, bytes, text: bytes.toString() });
      });
    });
    sent.on("error", reject).on("timeout", () => sent.destroy(new Error(`${method} ${url}: no answer`)));
    sent.end(body);
  });
}

/** A body given as an object is JSON, as URLSearchParams a form. */
function encode({ json, form, ...options }) {
  const headers = { ...options.headers };
  if (json !== undefined) return { ...options, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(json) };
  if (form) return { ...options, headers: { "content-type": "application/x-www-form-urlencoded", ...headers }, body: new URLSearchParams(form).toString() };
  return { ...options, headers };
}

/** Cookies of one user. */
class Jar {
  #cookies = new Map();
  take(headers) {
    for (const line of headers["set-cookie"] ?? []) {
      const [pair, ...rest] = line.split(";"), at = pair.indexOf("=");
      const gone = rest.some((part) => /^\s*max-age=0\s*$/i.test(part)) || at === pair.length - 1;
      if (gone) this.#cookies.delete(pair.slice(0, at));
      else this.#cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
  }
  header() {
    return this.#cookies.size ? { cookie: [...this.#cookies].map(([k, v]) => `${k}=${v}`).join("; ") } : {};
  }
}

class ClientSocket extends WebSocket {
  constructor(...args) {
    super(...args);
    this.on("error", () => {});
  }
}

globalThis.WebSocket ??= ClientSocket; // for clients that ask for no other; Node.js 22 has one

/** A WebSocket whose messages are awaited one by one. */
class Socket {
  messages = [];
  #waiting = [];
  constructor(url, protocols, headers) {
    this.raw = new WebSocket(url.replace(/^http/, "ws"), protocols, { headers });
    this.raw.on("message", (data, binary) => {
      this.messages.push(binary ? data : data.toString());
      this.#wake();
    });
    this.raw.on("error", (error) => {
      this.error = error;
      this.#wake();
    });
    this.closed = new Promise((resolve) => this.raw.on("close", (code, reason) => {
      this.end = { code, reason: reason.toString() };
      resolve(this.end);
      this.#wake();
    }));
    this.opened = new Promise((resolve, reject) => this.raw.on("open", resolve).on("error", reject));
    this.opened.catch(() => {}); // whoever awaits it is told
  }
  #wake() {
    for (const wake of this.#waiting.splice(0)) wake();
  }
  send(data) {
    this.raw.send(typeof data === "string" || Buffer.isBuffer(data) || data instanceof Uint8Array ? data : JSON.stringify(data));
  }
  /** The first message not taken yet for which `wanted` holds; those before it stay. */
  async next(wanted = () => true) {
    const deadline = Date.now() + TIMEOUT_MS;
    for (;;) {
      const i = this.messages.findIndex((m) => wanted(m));
      if (i >= 0) return this.messages.splice(i, 1)[0];
      if (this.end || this.error || Date.now() > deadline)
        throw new Error(`the message did not come (${this.error ?? JSON.stringify(this.end) ?? "time"}); there were ${JSON.stringify(this.messages.map(String)).slice(0, 500)}`);
      await new Promise((resolve) => {
        const late = setTimeout(resolve, 1000);
        this.#waiting.push(() => (clearTimeout(late), resolve()));
      });
    }
  }
  async json(wanted = () => true) {
    return JSON.parse(await this.next((m) => typeof m === "string" && isJson(m) && wanted(JSON.parse(m))));
  }
  async close(code = 1000) {
    this.raw.close(code);
    return this.closed;
  }
}
const isJson = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

class Tester {
  constructor(project, dir, url, standIns) {
    this.url = url;
    this.dir = dir;
    this.standIns = standIns;
    this.seen = [];
    this.normal = normaliser(url, project.normalise);
    this.require = createRequire(path.join(dir, "package.json"));
  }

  /** For clients that want one: its errors are theirs to notice. */
  get WebSocket() {
    return ClientSocket;
  }

  /** Imports a package of the project, as a client of it would. */
  async load(name) {
    const module = await import(pathToFileURL(this.require.resolve(name)));
    return module.default?.__esModule ? module.default : module; // CommonJS made of an ES module
  }
  /** The same for packages that only have an ES module. */
  async loadFile(file) {
    return import(pathToFileURL(path.join(this.dir, "node_modules", file)));
  }

  /** A request whose answer is recorded whole. `quiet`: only its status. */
  async request(target, options = {}) {
    const { quiet, jar, ...rest } = options;
    const { method = "GET", headers, body } = encode(rest);
    const answer = await send(new URL(target, this.url), { method, headers: { ...jar?.header(), ...headers }, body });
    jar?.take(answer.headers);
    answer.json = () => {
      try {
        return JSON.parse(answer.text);
      } catch {
        throw new Error(`${method} ${target} answered ${answer.status}, not JSON: ${answer.text.slice(0, 1000)}`);
      }
    };
    const step = `${method} ${target.replace(this.url, "")}`;
    this.seen.push(this.normal(quiet ? { step, status: answer.status } : { step, status: answer.status, headers: headersOf(answer.headers), body: answer.text }));
    return answer;
  }
  get(target, options) {
    return this.request(target, options);
  }
  post(target, json, options) {
    return this.request(target, { method: "POST", json, ...options });
  }
  jar() {
    return new Jar();
  }

  async socket(target, { protocols = [], headers } = {}) {
    const socket = new Socket(new URL(target, this.url).href, protocols, headers);
    await socket.opened;
    (this.sockets ??= []).push(socket);
    return socket;
  }

  /** Asks until the condition holds: for what happens after an answer. */
  async until(condition, what) {
    for (const deadline = Date.now() + TIMEOUT_MS; ; ) {
      const value = await condition();
      if (value) return value;
      if (Date.now() > deadline) throw new Error(`${what} did not come`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Records a value that is no answer of HTTP. */
  note(step, value) {
    this.seen.push(this.normal({ step, value: structuredClone(value) }));
    return value;
  }
  check(condition, what, value) {
    if (!condition) throw new Error(`not so: ${what}${value === undefined ? "" : `: ${typeof value === "string" ? value : JSON.stringify(value)}`.slice(0, 1500)}`);
  }
  close() {
    for (const socket of this.sockets ?? []) socket.raw.terminate();
  }
}

/** Runs a project's script against a server: {failed, seen}. */
export async function runScript(project, dir, url, standIns) {
  const t = new Tester(project, dir, url, standIns);
  let late;
  try {
    await Promise.race([
      project.script(t),
      new Promise((_, reject) => { late = setTimeout(() => reject(new Error("the script did not end")), 3 * TIMEOUT_MS); }),
    ]);
    return { seen: t.seen };
  } catch (error) {
    return { failed: String(error.stack ?? error), seen: t.seen };
  } finally {
    clearTimeout(late);
    t.close();
  }
}
