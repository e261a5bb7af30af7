// A worker that is everybody's enemy. GET /run?seed=N&count=M makes M calls that follow from the seed (and &large=I one with gigabytes):
// of natives (if the build lends them, as globalThis.__native), of everything that is public, on the
// right receivers and on wrong ones. What it does goes to the answer; the server has to survive.
import { DurableObject, WorkerEntrypoint, RpcTarget } from "cloudflare:workers";
import { connect } from "cloudflare:sockets";
import * as buffer from "node:buffer";
import * as crypto_ from "node:crypto";
import * as stream from "node:stream";
import * as util from "node:util";
import * as zlib from "node:zlib";
import { random as randomOf } from "./random.js";
import { events, later, objectScenes, scenes, warmUp } from "./scenes.js";
import { Values } from "./values.js";

const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
const { apply, construct, ownKeys } = Reflect;
const mapGet = Function.prototype.call.bind(Map.prototype.get), mapSet = Function.prototype.call.bind(Map.prototype.set);
const native = globalThis.__native;
const natives = native ? Reflect.ownKeys(native).filter((k) => typeof native[k] === "function").sort() : [];
// What the prelude itself gives to the natives is the best to start from: some calls of each are kept, to be made again with something changed.
const TEMPLATES = 6, templates = Object.create(null);
let recorded = 0, recent = []; // the names of those that this request has made the prelude call
if (native) for (const name of natives) {
  const original = native[name], own = (templates[name] = []);
  native[name] = function (...args) {
    recorded = (recorded + 1) % 1024;
    if (recent.length < 256) recent[recent.length] = name;
    if (own.length < TEMPLATES) own[own.length] = args;
    else if (recorded % 61 === 0) own[recorded % TEMPLATES] = args;
    return apply(original, this, args);
  };
  native[name].original = original;
}
/** Arguments of an earlier call of a native with one or two others, or what comes to mind. */
function argumentsOf(name, random, values) {
  const own = templates[name];
  if (own.length === 0 || random.chance(0.4)) return values.values(7);
  const args = [...random.pick(own)];
  for (let i = random.below(3); i > 0; i--) {
    const at = random.below(args.length + 1);
    // A number may stand for something: the ones beside it stand for what is somebody else's, or was.
    args[at] = typeof args[at] === "number" && random.chance(0.5) ? args[at] + random.pick([1, -1, 2, -2, 2 ** 20, 2 ** 24, 2 ** 32, -(2 ** 32)]) : values.value();
  }
  return args;
}
// These are meant to end or to hold the process's work: calling them says nothing.
const excluded = new Set(["native.gc"]);
const pristine = snapshot();

/** What can be patched, as it was. */
function snapshot() {
  const found = [];
  const prototypes = [Object, Function, Array, String, Number, Boolean, Symbol, RegExp, Date, Map, Set, WeakMap, WeakSet, Promise, ArrayBuffer, DataView, Uint8Array, Error]
    .map((c) => c.prototype).concat([Object.getPrototypeOf(Uint8Array.prototype), Object.getPrototypeOf([][Symbol.iterator]()), Object.getPrototypeOf(new Map()[Symbol.iterator]()), Reflect, JSON, Object, Promise, Array, Math]);
  for (const object of prototypes)
    for (const key of Reflect.ownKeys(object)) {
      const descriptor = Object.getOwnPropertyDescriptor(object, key);
      if (descriptor.configurable && key !== "constructor" && (typeof descriptor.value === "function" || descriptor.get)) found.push([object, key, descriptor]);
    }
  return found;
}
const restore = () => { for (let i = 0; i < pristine.length; i++) defineProperty(pristine[i][0], pristine[i][1], pristine[i][2]); };

/** Everything public that can be called: [name, holder, key]. */
function surface(roots, depth = 0) {
  const found = [], seen = new Set();
  const walk = (object, name, depth) => {
    if (object === null || (typeof object !== "object" && typeof object !== "function") || seen.has(object) || depth > 4) return;
    seen.add(object);
    for (const key of ownKeys(object)) {
      if (object === globalThis && (key === "__native" || key === "globalThis" || key === "self")) continue;
      const descriptor = getOwnPropertyDescriptor(object, key);
      const label = `${name}.${String(key)}`;
      if (descriptor.get) found.push({ label: `get ${label}`, call: (receiver, args) => apply(descriptor.get, receiver, args) });
      if (descriptor.set) found.push({ label: `set ${label}`, call: (receiver, args) => apply(descriptor.set, receiver, args) });
      let value = descriptor.value;
      if (descriptor.get) try { value = apply(descriptor.get, object, []); } catch { continue; }
      if (typeof value === "function") {
        found.push({ label, call: (receiver, args) => apply(value, receiver ?? object, args), holder: object });
        if (value.prototype) found.push({ label: `new ${label}`, call: (receiver, args) => construct(value, args), constructs: true });
      }
      walk(value, label, depth + 1);
    }
    const proto = getPrototypeOf(object);
    if (proto !== null) walk(proto, `${name}.[proto]`, depth + 1);
  };
  for (const [name, root] of Object.entries(roots)) walk(root, name, depth);
  return found;
}
const quiet = (ops) => ops.filter((op) => !/setTimeout|setInterval|sleep|\.exit$|\.abort$|gc$|kill/.test(op.label));
/** What can be called on things of this kind. */
const kinds = new Map();
function operationsOf(things) {
  const found = [];
  for (let i = 0; i < things.length; i++) {
    const thing = things[i];
    if (thing === null || typeof thing !== "object") continue;
    const kind = getPrototypeOf(thing) ?? thing;
    let ops = mapGet(kinds, kind);
    if (!ops) mapSet(kinds, kind, (ops = quiet(surface({ thing }, 3))));
    for (let k = 0; k < ops.length; k++) found[found.length] = ops[k];
  }
  return found;
}

let api = null;
let turns = 0;
const kept = []; // results of earlier calls, of earlier requests too: stale things
const keep = (value) => {
  if (value === undefined || value === null || typeof value === "boolean") return;
  if (kept.length < 400) kept.push(value);
  else kept[(turns += 7) % kept.length] = value;
};

async function instances(env, ctx, request) {
  const stub = env.OBJECT.get(env.OBJECT.idFromName("a"));
  const pair = new WebSocketPair();
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt", "decrypt"]);
  return [
    env, ctx, request, env.KV, env.DB, env.R2, env.QUEUE, env.AE, env.OBJECT, stub, stub.id, env.DB.prepare("SELECT 1"), pair, pair[0], pair[1], key,
    new Response("x"), new Request("http://a/", { method: "POST", body: "y" }), new Headers({ a: "b" }), new URL("http://a/b?c"), new URLSearchParams("a=b"), new Blob(["x"]), new File(["x"], "f"),
    new FormData(), new ReadableStream(), new TransformStream(), new WritableStream(), new TextDecoder(), new TextEncoder(), new TextDecoder("shift_jis"), new CompressionStream("gzip"), new DecompressionStream("deflate"),
    new AbortController(), AbortSignal.timeout(5), new HTMLRewriter(), new EventTarget(), new Event("x"), new MessageChannel().port1, caches.default, crypto.subtle, new URLPattern({ pathname: "/:a" }),
    new RpcTarget(), new IdentityTransformStream(), new FixedLengthStream(4), new DOMException("x"), performance, navigator, scheduler,
    new ReadableStream({ type: "bytes" }).getReader({ mode: "byob" }), new WritableStream().getWriter(), buffer.Buffer.from("x"), new stream.Readable({ read() {} }), zlib.createGzip(), crypto_.createHash("sha256"), crypto_.createHmac("sha1", "k"),
  ];
}

function trapsOf(random, values, env) {
  const detach = () => { for (let i = 0; i < kept.length; i++) if (kept[i] instanceof Uint8Array && kept[i].buffer instanceof ArrayBuffer && random.chance(0.2)) try { kept[i].buffer.transfer(); } catch {} };
  return [
    () => { throw new Error("trap"); },
    () => { throw null; },
    () => undefined,
    () => 7,
    detach,
    () => { // re-enters
      if (native && random.chance(0.5)) try { keep(native[random.pick(natives)](...values().values(3))); } catch {}
    },
    () => { const op = api && random.pick(api); if (op) try { keep(op.call(values().value(), values().values(3))); } catch {} },
    () => { kept.length = Math.min(kept.length, 50); },
    () => { for (let i = 0; i < 300; i++) new ArrayBuffer(10000); },
  ];
}

/** Builtins that spy, lie or throw, until restore(). */
function patch(random, values) {
  for (let i = random.below(4) + 1; i > 0; i--) {
    const [object, key, descriptor] = random.pick(pristine);
    const original = descriptor.value ?? descriptor.get;
    const lie = function (...args) {
      if (random.chance(0.02)) keep(this);
      if (args.length > 0 && random.chance(0.02)) keep(args[0]);
      if (random.chance(0.01)) throw new Error("patched");
      if (random.chance(0.01)) return values.number();
      return new.target ? construct(original, args) : apply(original, this, args);
    };
    try { defineProperty(object, key, descriptor.get ? { ...descriptor, get: lie } : { ...descriptor, value: lie }); } catch {}
  }
}

/**
 * Arguments of an earlier call of a native, with so many bytes in place of some that sizes of what is made of them overflow. The natives
 * take turns: there is no time for many such calls. The array is one for all, for the engine would collect it late; of zeros, for other
 * bytes take long.
 */
let gigabytes = null;
const hasBytes = (args) => args.some((a) => ArrayBuffer.isView(a));
function largeCall(random, turn) {
  // What fills its bytes is at it for half a minute, with sanitizers. Those with the fewest arguments come first: they have nothing but a size to look at.
  const able = natives.filter((name) => name !== "randomFill" && templates[name].some(hasBytes)).sort((a, b) => templates[a][0].length - templates[b][0].length);
  if (able.length === 0) return;
  try { gigabytes ??= new Uint8Array(2 ** 31 + 2); } catch (error) { return void console.log(`no large array: ${error.message}`); }
  const name = able[turn % able.length], size = [2 ** 31, 2 ** 31 + 1, 2 ** 31 - 1, 2 ** 29][Math.floor(turn / able.length) % 4];
  const args = [...random.pick(templates[name].filter(hasBytes))];
  args[random.pick([...args.keys()].filter((i) => ArrayBuffer.isView(args[i])))] = gigabytes.subarray(0, size);
  console.log(`large ${name} ${size}`); // the engine says nothing when it ends the process
  try { apply(native[name].original, native, args); } catch {}
  if (gigabytes[2 ** 20] !== 0) gigabytes.fill(0);
}

async function run({ seed, count, large, only }, env, ctx, request) {
  const random = randomOf(seed);
  const log = [];
  const values = new Values(random, kept, []);
  values.traps = trapsOf(random, () => values, env);
  recent = [];
  for (const job of later.splice(0)) job();
  if (!api) await warmUp(env, ctx);
  const receivers = await instances(env, ctx, request);
  api ??= quiet(surface({
    globalThis, env, ctx, buffer, crypto_, stream, util, zlib, connect, DurableObject, WorkerEntrypoint, RpcTarget,
    ...Object.fromEntries(receivers.map((r, i) => [`i${i}`, r])),
  }));
  const patched = random.chance(0.3);
  const made = (label, call) => {
    if (excluded.has(label)) return undefined;
    if (__trace) console.log(`${seed}:${log.length} ${label}`);
    try {
      const result = call();
      keep(result);
      if (result && typeof result === "object" && random.chance(0.3)) Promise.resolve(result).then(keep, () => {});
      log.push(label);
      return result;
    } catch (error) {
      log.push(`${label}!`);
      if (random.chance(0.05)) keep(error);
      return undefined;
    }
  };
  /** One call: of a native, preferably one that was just called; of what `things` can do; of anything. */
  const call = (things, near) => {
    if (natives.length > 0 && random.chance(0.5)) {
      const name = only && natives.includes(only) ? only : recent.length > 0 && random.chance(0.4) ? random.pick(recent) : random.pick(natives);
      const args = argumentsOf(name, random, values);
      return made(`native.${name}`, () => apply(native[name].original, native, args));
    }
    const op = near.length > 0 && random.chance(0.6) ? random.pick(near) : random.pick(api);
    const receiver = things.length > 0 && random.chance(0.5) ? random.pick(things) : random.chance(0.6) ? random.pick(receivers) : random.chance(0.5) ? op.holder : values.value();
    const args = values.values(4);
    return made(op.label, () => op.call(receiver, args));
  };
  let left = count, inside = 0;
  /** In a scene, an eighth of the calls at a time; not again while one is under way. */
  const go = (things) => {
    if (inside > 0) return;
    inside++;
    for (let i = 0; i < things.length; i++) keep(things[i]);
    const near = operationsOf(things);
    for (let i = Math.ceil(count / 8); i > 0 && left > 0; i--, left--) call(things, near);
    inside--;
  };
  /** Something that one of them can do, on it, with little or nothing. */
  const use = (things) => {
    const thing = random.pick(things), ops = operationsOf([thing]);
    if (ops.length === 0 || left-- <= 0) return;
    const op = random.pick(ops), args = random.chance(0.5) ? [] : values.values(3);
    made(op.label, () => op.call(thing, args));
  };
  if (large >= 0) largeCall(random, large), await null;
  if (patched) patch(random, values);
  try {
    if (random.chance(0.5)) try { await random.pick(ctx.storage ? [...scenes, ...objectScenes] : scenes)(go, { env, ctx, request, native, random }, use); } catch {}
    for (; left > 0; left--) {
      const result = call([], []);
      if (random.chance(0.02)) await Promise.race([Promise.resolve(result).catch(() => {}), null]);
    }
  } finally {
    restore();
  }
  return log;
}

let __trace = false;
const swallow = (event) => event.preventDefault?.();
addEventListener("unhandledrejection", swallow);

export class Thing extends DurableObject {
  async run(options) {
    return (await run(options, this.env, this.ctx, new Request("http://object/"))).length;
  }
  found() { return found(this.env); }
  target() { return new Target(); }
  feed() { return new ReadableStream({ type: "bytes", pull(c) { c.enqueue(new Uint8Array(100)); } }); }
  keep(stub) { keep(stub); }
  async end() { this.ctx.abort("end"); }
  async fetch() { return new Response("object"); }
  async alarm() { events.handler?.([this.ctx, this.ctx.storage]); }
  async webSocketMessage(socket) { events.handler?.([this.ctx, socket]); }
  async webSocketClose(socket) { events.handler?.([this.ctx, socket]); }
}
class Target extends RpcTarget {
  ping() { return "pong"; }
  again() { return new Target(); }
}
export class Entry extends WorkerEntrypoint {
  ping() { return "pong"; }
}

/** What was found once, call by call: each is refused, or harmless, and the process goes on. Gives what was not refused. */
async function found(env) {
  const wrong = [];
  const refused = (label, call) => { try { call(); wrong.push(label); } catch {} };
  const id = String(env.OBJECT.idFromName("found")), bytes = new Uint8Array(4), nothing = () => {};
  // C1: kinds of calls that are not a script's to send, and services, which would take them for their own.
  for (const kind of [2, 3, 4, 5, 6, 2 ** 32]) {
    for (let ns = 0; ns < 20; ns++) refused(`objectCall ${ns} ${kind}`, () => native.objectCall(ns, id, undefined, kind, "m", bytes, nothing));
    for (let ns = 0; ns < 20; ns++) try { refused(`localCall ${ns} ${kind}`, () => native.localCall(native.targetNew(ns, id, undefined), 0, kind)); } catch {}
  }
  for (let ns = 0; ns < 20; ns++) try { native.targetCall(`o${ns}:${native.idFromName(ns, "0", 0)}`, "m", bytes, nothing); } catch {}
  // C2: ids of what no binding names cannot be made up.
  let made = 0;
  for (let ns = 0; ns < 20; ns++) try { native.idFromName(ns, "own", 0); made++; } catch {}
  if (made !== 1) wrong.push(`ids of ${made} namespaces`);
  // The locks of an object are given back by whoever took them.
  const object = native.clock()[1];
  for (let i = 0; i < 3; i++) native.objectUnlock(object);
  native.objectLock(object), native.objectUnlock(object), native.objectUnlock(object);
  // Savepoints count from 1.
  for (const level of [0, -1, -(2 ** 31), NaN]) refused(`savepointEnd ${level}`, () => native.savepointEnd(object, level, true));
  for (let operation = 0; operation < 17; operation++) for (const kind of [0, 7, 100, 2 ** 32 - 1]) try { native.crypto(operation, false, kind, kind, 1, 1, bytes, bytes, bytes); } catch {}
  for (const what of [0, 1, 2, 2 ** 40, NaN]) native.nodeSpkac(what, new Uint8Array(0)), native.nodeSpkac(what, new Uint8Array([32, 10]));
  try { native.kvGet(0, ""); } catch {}
  return wrong;
}

/** The same for the body of a request, whose rest comes while this waits: callbacks that are none, and two readers (E4). */
async function foundBody(request, kind) {
  const wrong = [], { requestHeader } = native;
  let h;
  native.requestHeader = (handle, name) => { h = handle; return requestHeader(handle, name); };
  request.headers.get("x-nothing");
  native.requestHeader = requestHeader;
  const refused = (label, call) => { try { call(); wrong.push(label); } catch {} };
  if (kind === "read") native.requestRead(h, 5);
  else if (kind === "collect") native.requestCollect(h, true, 5);
  else if (native.requestBytes(h) !== undefined) wrong.push("the body is whole"); // what has come is taken
  else if (kind === "pipe") {
    native.respondStart(h, 200, undefined, "", -1);
    if (native.respondPipe(h, 5) !== true) wrong.push("no pipe");
    refused("requestRead", () => native.requestRead(h, () => {}));
    refused("requestCollect", () => native.requestCollect(h, true, () => {}));
    if (native.requestText(h) !== undefined) wrong.push("requestText");
    if (native.respondPipe(h, () => {}) !== false) wrong.push("a second pipe");
  } else {
    native.respondStart(h, 200, undefined, "", 1); // one byte, but there are three
    native.respondPipe(h, () => native.eventDone(h));
  }
  if (wrong.length) console.error(`found wrong: ${wrong}`);
  await scheduler.wait(300);
  return new Response("late");
}

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname === "/found-body" && native) return foundBody(request, url.searchParams.get("kind"));
    if (url.pathname === "/ping") return new Response("pong");
    if (url.pathname === "/found") return Response.json(native ? [...await found(env), ...await env.OBJECT.get(env.OBJECT.idFromName("found")).found()] : []);
    if (url.pathname === "/natives") return Response.json(natives);
    __trace = url.searchParams.has("trace");
    for (const name of (url.searchParams.get("skip") ?? "").split(",")) excluded.add(name);
    const number = (name) => Number(url.searchParams.get(name) ?? -1), seed = number("seed");
    const options = { seed, count: number("count"), large: number("large"), only: url.searchParams.get("only") };
    if (url.pathname === "/object") return new Response(String(await env.OBJECT.get(env.OBJECT.idFromName(`o${seed % 5}`)).run(options)));
    return Response.json((await run(options, env, ctx, request)).length);
  },
};
