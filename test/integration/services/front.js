// The worker that calls: GET /NAME runs the script of that name and answers with JSON.
import { DurableObject, RpcStub, RpcTarget, WorkerEntrypoint, env as importedEnv, exports, waitUntil, withEnv } from "cloudflare:workers";

export class Box extends DurableObject {
  put(key, value) { this.ctx.storage.kv.put(key, value); }
  get(key) { return this.ctx.storage.kv.get(key); }
  calls(f) { return f(); }
  hangs() { setInterval(() => {}, 5); this.env.BACK.callback(() => new Promise(() => {})).catch(() => {}); return "hanging"; }
  callsBack(n) { return this.env.BACK.who(n); }
  greets() { return this.ctx.exports.Greeter({ props: { name: "from an object" } }).greet(); }
}

export class Greeter extends WorkerEntrypoint {
  greet() { return `hello ${this.ctx.props.name}`; }
}

class Counter extends RpcTarget {
  constructor(seen) { super(); this.seen = seen; }
  n = 2;
  next() { return ++this.n; }
  [Symbol.dispose]() { this.seen.disposed = true; }
}

const failure = async (f) => { try { return ["no error", await f()]; } catch (error) { return error; } };

const scripts = {
  async fetch(env) {
    const response = await env.BACK.fetch("https://any.example/p?q=1", { method: "POST", body: "sent", headers: { "x-test": "h" } });
    return [response.status, response.headers.get("x-from"), await response.json()];
  },
  async streamed(env) {
    const size = (await (await env.BACK.fetch("https://x/big")).arrayBuffer()).byteLength;
    let n = 0;
    const body = new ReadableStream({ async pull(c) { await new Promise((r) => setTimeout(r, 1)); c.enqueue(new TextEncoder().encode("chunk")); if (++n === 3) c.close(); } });
    return [size, +(await (await env.BACK.fetch("https://x/chunks", { method: "POST", body })).text())];
  },
  async echo(env, request) { return +(await (await env.BACK.fetch(new Request("https://x/size", request))).text()); },
  async fetchThrows(env) { const e = await failure(() => env.BACK.fetch("https://x/throw")); return [e.name, e.message, e.code, e.remote]; },
  async redirects(env) {
    const followed = await (await env.BACK.fetch("https://x/moved")).json();
    const posted = await (await env.BACK.fetch("https://x/moved", { method: "POST", body: "b" })).json();
    const manual = await env.BACK.fetch("https://x/moved", { redirect: "manual" });
    return [followed.url, posted.method, posted.body, manual.status, (await failure(() => env.BACK.fetch("https://x/moved", { redirect: "error" }))).name,
      (await failure(() => env.BACK.fetch("https://x/loop"))).message, (await failure(() => env.BACK.fetch("https://x/nothing"))).name];
  },
  async fetchAborted(env) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 5);
    return (await failure(() => env.BACK.fetch("https://x/slow", { signal: controller.signal }))).name;
  },
  async rpc(env) { return [await env.BACK.who(1), await env.ADMIN.props(), await env.BACK.props(), await env.BACK.add(40, 2)]; },
  async state(env) { return [await env.BACK.next(), await env.BACK.next()]; },
  async references(env) {
    const cart = await env.BACK.cart();
    const box = env.BOX.getByName("by reference");
    return [await env.BACK.callback((x) => x), [await cart.add("a"), await cart.add("b"), await cart.total],
      await new Response(await env.BACK.stream()).text(), await env.BACK.read(new Response("from the front").body), await env.BACK.viaStub(box)];
  },
  async hidden(env) {
    const calls = [() => env.BACK.count(), () => env.BACK.secret(), () => env.BACK.env.WHO(), () => env.BACK.constructor(), () => env.BACK.nothing()];
    return Promise.all(calls.map(async (call) => (await failure(call)).name));
  },
  async pipelining(env) { using cart = env.BACK.cart(); return [await cart.add("x"), await cart.self().add("y")]; },
  async errors(env) { const e = await failure(() => env.BACK.throws()); return [e instanceof TypeError, e.name, e.message, e.code, e.remote]; },
  async plain(env) {
    return [await env.PLAIN.double(5), (await failure(() => env.PLAIN.double(1, 2))).name, await (await env.PLAIN.fetch("https://x/")).text()];
  },
  async missing(env) { return [(await failure(() => env.MISSING.fetch("https://x/"))).message, (await failure(() => env.MISSING.any())).message]; },
  async self(env, request) {
    const depth = +new URL(request.url).searchParams.get("depth");
    return depth === 0 ? 0 : 1 + (await (await env.SELF.fetch(`https://x/self?depth=${depth - 1}`)).json());
  },
  async aborts(env) { return (await failure(() => env.BACK.aborts())).message; },
  async abortsSelf(env, request, ctx) { try { ctx.abort("no more"); } catch {} return "went on"; },
  async endless(env) { return (await failure(() => env.BACK.endless())).message; },
  async hanging(env, request) { return env.BOX.getByName(new URL(request.url).searchParams.get("name")).hangs(); },
  async endlessLater(env) { return (await failure(() => env.BACK.endlessLater())).message; },
  async endlessCallback(env) { return (await failure(() => env.BOX.getByName("spins").calls(() => { for (;;); }))).message; },
  async waits(env) { return [await env.BACK.waits(), await env.BACK.waited()]; },
  async objects(env) { const box = env.BOX.getByName("calls"); return [await box.callsBack(9), await env.BACK.viaStub(box)]; },
  async exports(env, request, ctx) {
    const box = ctx.exports.Box.getByName("through exports");
    await box.put("k", 7);
    const bad = await failure(() => ctx.exports.Greeter({ props: 5 }));
    return [await ctx.exports.Greeter.greet(), await ctx.exports.Greeter({ props: { name: "world" } }).greet(), bad.name,
      await env.BOX.getByName("through exports").get("k"), await box.greets(), Object.keys(ctx.exports).sort()];
  },
  async module(env) {
    let ran = false;
    waitUntil(Promise.resolve().then(() => { ran = true; }));
    const inside = withEnv({ X: "other" }, () => importedEnv.X);
    await new Promise((resolve) => setTimeout(resolve, 1));
    return [typeof importedEnv.BACK.fetch, await exports.Greeter.greet(), inside, typeof importedEnv.BACK, ran, importedEnv.X === undefined];
  },
  async stubs() {
    const seen = { disposed: false };
    const stub = new RpcStub(new Counter(seen));
    const again = stub.dup();
    const first = await stub.next();
    stub[Symbol.dispose]();
    const second = await again.next();
    const kept = !seen.disposed;
    again[Symbol.dispose]();
    for (let i = 0; i < 100 && !seen.disposed; i++) await new Promise((resolve) => setTimeout(resolve, 1));
    return [first, second, kept, seen.disposed, (await failure(() => again.next())).message];
  },
};

export default {
  async fetch(request, env, ctx) {
    try {
      return Response.json(await scripts[new URL(request.url).pathname.slice(1)](env, request, ctx));
    } catch (error) {
      return Response.json({ error: error.stack }, { status: 500 });
    }
  },
};
