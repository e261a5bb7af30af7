// A worker that takes as much memory as each of its APIs gives: nothing here names one. What there is, is found by going through the
// globals, the bindings, the state of an object and the modules (modules.js, written by hog.mjs); what each wants, by trying.
import { DurableObject } from "cloudflare:workers";
import modules from "./modules.js";

const SIZE = 1 << 20;
const bytes = () => new Uint8Array(SIZE).fill(7);
const text = () => "\0\u00e9".repeat(SIZE / 3);
const stream = () => new ReadableStream({ pull(controller) { controller.enqueue(bytes()); } });
const nothing = () => {};
const sql = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 30) SELECT hex(zeroblob(450000)) AS a FROM c";
const grows = [0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 5, 1, 1, 103, 0, 0, 10, 8, 1, 6, 0, 32, 0, 64, 0, 11];

/** Arguments, one list after the other: whatever an API is, some of them are its. */
const lists = [
  () => [], () => [bytes()], () => [text()], () => ["key"], () => ["key", bytes()], () => ["key", text()], () => [bytes(), bytes()], () => [[bytes(), bytes()]],
  () => [sql], () => ["http://hog.test/echo", { method: "POST", body: bytes() }], () => ["http://hog.test/echo", new Response(bytes(), { headers: { "cache-control": "max-age=100" } })],
  () => [new Response(bytes())], () => [new Blob([bytes()])], () => [stream()], () => ["key", stream()], () => [4e6], () => [4e6, { maxByteLength: 8e6 }],
  () => [{ initial: 64, maximum: 65536, element: "externref" }], () => [new Uint8Array(grows)], () => ["gzip"], () => ["SHA-256", bytes()], () => [bytes(), nothing],
  () => [nothing, 1e6], () => [{ a: text(), b: bytes() }], () => [text(), text()], () => ["key", { type: "arrayBuffer" }], () => [Array.from({ length: 4 }, () => ({ body: bytes() }))],
  () => [1, bytes()], () => [1, 0, SIZE], () => [1, text(), bytes(), nothing], () => [bytes(), "", 16384, 64, "sha256"], () => ["id", 16],
];

/** What would end the request or the process rather than take memory, or does nothing but wait. */
const left = /(^|[.#])(exit|abort|reallyExit|kill|crash|wait|waitAsync|execArgv|_cleanup)$/;

const isClass = (value) => typeof value === "function" && value.prototype && Object.getOwnPropertyNames(value.prototype).length > 1;
function namesOf(value) {
  const names = new Set();
  for (let at = value; at && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) if (name !== "constructor") names.add(name);
  return names;
}
const read = (holder, name) => { try { return holder[name]; } catch { return undefined; } };

/** Everything that can be called, by name: {make() -> [function, this], construct}. */
function walk(value, path, found = new Map(), seen = new Set(), depth = 0) {
  if (seen.has(value)) return found;
  seen.add(value);
  for (const name of namesOf(value)) {
    const member = read(value, name), here = `${path}.${name}`;
    if (typeof member === "function") {
      if (seen.has(member) || left.test(here)) continue; // the same by another name
      seen.add(member);
      if (/^[a-z_]/.test(name) || !isClass(member)) found.set(here, { make: () => [member, value] });
      if (isClass(member)) {
        found.set(`new ${here}`, { make: () => [member], construct: true });
        for (const method of namesOf(member.prototype)) {
          if (left.test(`#${method}`) || typeof Object.getOwnPropertyDescriptor(member.prototype, method)?.value !== "function") continue;
          found.set(`${here}#${method}`, { make: () => { const made = instance(member); return [made[method], made]; } });
        }
        for (const own of Object.getOwnPropertyNames(member))
          if (typeof read(member, own) === "function" && !left.test(own)) found.set(`${here}.${own}`, { make: () => [member[own], member] });
      }
    } else if (member && typeof member === "object" && depth < 2 && !Array.isArray(member) && !ArrayBuffer.isView(member)) walk(member, here, found, seen, depth + 1);
  }
  return found;
}

function instance(type) {
  for (const list of lists) try { return new type(...list()); } catch { /* the next */ }
  throw new TypeError("cannot be made");
}

const hoard = [];
let turn = 0;
const keep = (value) => { hoard.push(value); if (typeof value?.catch === "function") value.catch(nothing); };

/** What came of a call has methods too: a body that can be read, a statement that can be run. */
function explore(value) {
  if (!value || typeof value !== "object" || Array.isArray(value) || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return;
  for (const name of namesOf(value)) {
    const member = read(value, name);
    if (typeof member !== "function" || left.test(`.${name}`)) continue;
    try { keep(member.apply(value, lists[turn++ % 5]())); } catch { /* not with these */ }
  }
}

/** Calls it as fast as it goes, with every list that it does not always refuse, and keeps all that comes of it. */
async function run({ make, construct }, ms) {
  const began = Date.now(), good = lists.map(() => 3);
  let calls = 0;
  for (let n = 0; Date.now() - began < ms && n < 5000; n++) {
    const i = n % lists.length;
    if (n % 4 === 3) await scheduler.wait(0);
    if (good[i] <= 0) continue;
    try {
      const [callee, self] = make();
      const value = construct ? new callee(...lists[i]()) : callee.apply(self, lists[i]());
      keep(value);
      calls++;
      if (typeof value?.then === "function") value.then(explore, () => { good[i]--; });
      else explore(value);
    } catch { good[i]--; }
  }
  return calls;
}

const inObject = (state) => walk({ state }, "object");
export class Box extends DurableObject {
  list() { return [...inObject(this.ctx).keys()]; }
  run(name, ms) { return run(inObject(this.ctx).get(name), ms); }
  echo(value) { return value; }
  async fetch(request) { return new Response(request.body); }
  webSocketMessage() {}
  alarm() {}
  async fill() {
    for (let i = 0; i < 30; i++) await this.ctx.storage.put(`key${i}`, text());
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t(a)");
    for (let i = 0; i < 30; i++) this.ctx.storage.sql.exec("INSERT INTO t VALUES (?)", bytes());
  }
}

function outside(env, ctx) {
  const seen = new Set(), found = walk(globalThis, "global", new Map(), seen);
  walk(env, "env", found, seen);
  walk({ ctx }, "event", found, seen);
  for (const [name, module] of Object.entries(modules)) walk(module, name, found, seen);
  return found;
}

/** Much in every service, for the routes of the administration. */
async function fill(env) {
  for (const binding of Object.values(env)) {
    for (let i = 0; i < 30; i++) {
      await binding.put?.(`key${i}`, text(), { metadata: { a: "x".repeat(900) } })?.catch?.(nothing);
      await binding.send?.("x".repeat(100_000))?.catch?.(nothing);
      try { binding.writeDataPoint?.({ blobs: ["x".repeat(5000)], indexes: [`i${i}`] }); } catch { /* not that */ }
    }
    if (binding.prepare) {
      await binding.prepare("CREATE TABLE IF NOT EXISTS t(a)").run();
      for (let i = 0; i < 30; i++) await binding.prepare("INSERT INTO t VALUES (hex(zeroblob(450000)))").run();
    }
    await binding.getByName?.("box").fill();
  }
}

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url), name = url.searchParams.get("name"), ms = Number(url.searchParams.get("ms"));
    if (url.pathname === "/echo") return new Response(request.body);
    if (url.pathname === "/hello") return new Response("hello");
    if (url.pathname === "/forget") { hoard.length = 0; return new Response("forgotten"); }
    if (url.pathname === "/fill") { await fill(env); return new Response("filled"); }
    const box = env.BOX.getByName(`box${name ?? ""}`);
    if (url.pathname === "/list") return Response.json([...outside(env, ctx).keys(), ...(await box.list())]);
    const calls = name.startsWith("object.") ? await box.run(name, ms) : await run(outside(env, ctx).get(name), ms);
    return new Response(String(calls));
  },
  queue() {},
};
