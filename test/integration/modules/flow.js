// Gives objects of test/module/flow.c functions, stubs and streams, and takes theirs: a scenario for each path,
// which throws if something is not as it should be.
import assert from "node:assert";
import { DurableObject, RpcTarget } from "cloudflare:workers";

const fresh = (env) => env.FLOW.getByName(`flow ${crypto.randomUUID()}`);
const until = async (what, condition) => {
  for (const began = Date.now(); !(await condition()); await scheduler.wait(5)) {
    if (Date.now() - began > 30_000) throw new Error(`waited in vain: ${what}`);
  }
};
/** A byte stream of `count` pieces; `made` counts what was asked for. */
function pieces(count, size, made = { count: 0, cancelled: null }) {
  const stream = new ReadableStream({
    type: "bytes",
    pull(controller) {
      if (made.count === count) return controller.close(), controller.byobRequest?.respond(0);
      made.count++;
      controller.enqueue(new Uint8Array(size).fill(1));
    },
    cancel(reason) { made.cancelled = reason; },
  }, { highWaterMark: 0 });
  return { stream, made };
}
async function drain(stream) {
  let bytes = 0;
  for await (const piece of stream) bytes += piece.byteLength;
  return bytes;
}

class Target extends RpcTarget {
  constructor() { super(); this.disposed = false; }
  add(a, b) { return a + b; }
  get deep() { return { twice: (x) => 2 * x }; }
  throws() { throw new RangeError("thrown by the target"); }
  [Symbol.dispose]() { this.disposed = true; }
}

/** @type {Record<string, (env: any) => Promise<unknown>>} */
export const scenarios = {
  async functions(env) {
    const flow = fresh(env);
    const seen = [];
    assert.strictEqual(await flow.loop((x) => { seen.push(x); return x * 10; }, 5), 100);
    assert.deepStrictEqual(seen, [0, 1, 2, 3, 4]);
    assert.strictEqual(await flow.loop(async (x) => { await scheduler.wait(1); return x; }, 3), 3);
    await assert.rejects(async () => flow.loop(() => { throw new TypeError("no more"); }, 5), (error) => error instanceof TypeError && error.message === "no more");
    await assert.rejects(async () => flow.loop(17, 5), /no function and no stub/);
    await assert.rejects(async () => flow.loop({ a: 1 }, 5), /no function and no stub/);
  },
  async targets(env) {
    const flow = fresh(env);
    const target = new Target();
    await flow.keep(target);
    assert.strictEqual(await flow.use("add", [2, 3]), 5);
    assert.strictEqual(await flow.use("add", ["a", "b"]), "ab");
    assert.strictEqual(await flow.use("deep.twice", [21]), 42);
    await assert.rejects(async () => flow.use("throws", []), (error) => error instanceof RangeError && error.message === "thrown by the target");
    await assert.rejects(async () => flow.use("nothing", []), /does not implement/);
    await assert.rejects(async () => flow.use("add", "no array"), /the arguments of a call are an array/);
    assert.strictEqual(target.disposed, false);
    await flow.release();
    await until("the target is let go of", () => target.disposed);
    await assert.rejects(async () => flow.use("add", []), /nothing was kept/);
  },
  /** L1: what was not kept is the caller's again when the call is over. */
  async lent(env) {
    const flow = fresh(env);
    const target = new Target();
    await flow.who(target, { deep: [() => 1] });
    await until("the target is let go of", () => target.disposed);
  },
  async given(env) {
    const flow = fresh(env);
    await flow.keep((x) => x + 1);
    const back = await flow.give();
    assert.strictEqual(await back(41), 42);
    await flow.release();
    assert.strictEqual(await back(1), 2); // it counts by itself
    back[Symbol.dispose]();
    // What an object has returned, in another object's hands.
    const lender = env.LENDER.getByName("lender");
    await flow.keep(await lender.lend());
    assert.strictEqual(await flow.use(undefined, [5]), 50);
    await flow.release();
  },
  async stubs(env) {
    const flow = fresh(env);
    const { stub } = await flow.stub("FLOW", "another");
    assert.deepStrictEqual([await stub.who(), stub.name], ["another", "another"]);
    const { stub: own } = await flow.stub("");
    assert.strictEqual(`${own.id}`, `${flow.id}`);
    const { stub: js } = await flow.stub("LENDER", "by stub");
    assert.strictEqual(await js.who(), "by stub");
    await flow.keep(env.LENDER.getByName("kept"));
    assert.strictEqual(await flow.use("who", []), "kept");
    await flow.keep(env.FLOW.getByName("kept too"));
    assert.strictEqual(await flow.use("who", []), "kept too");
    await assert.rejects(async () => flow.use(undefined, []), /an object is no function/);
    const again = await flow.give();
    assert.strictEqual(await again.who(), "kept too");
    await assert.rejects(async () => flow.stub("NOWHERE", "x"), /no Durable Object binding for a stub/);
  },
  async reading(env) {
    const flow = fresh(env);
    assert.deepStrictEqual([...await flow.read(pieces(10, 1000).stream)].slice(1), [10_000, 10_000]);
    assert.deepStrictEqual([...await flow.read(new Uint8Array([1, 2, 3]))], [1, 3, 6]);
    assert.deepStrictEqual([...await flow.read("abc")], [1, 3, 294]);
    assert.deepStrictEqual([...await flow.read(null)], [0, 0, 0]);
    assert.deepStrictEqual([...await flow.read(new Response("").body)].slice(1), [0, 0]);
    await assert.rejects(async () => flow.read(5), /no stream, no bytes and no text/);
    await assert.rejects(async () => flow.openTwice(pieces(1, 1).stream), /opened already/);
    // L2: a reader that stops asks for nothing more, and the writer hears of it.
    const { stream, made } = pieces(1000, 1000);
    assert.strictEqual([...await flow.read(stream, 3)][0], 3);
    await until("the cancellation", () => made.cancelled !== null);
    assert.match(made.cancelled.message, /that is enough/);
    assert.ok(made.count < 20, `${made.count} pieces were made`);
    const failing = new ReadableStream({ type: "bytes", pull() { throw new Error("the source fails"); } });
    await assert.rejects(async () => flow.read(failing), /reading failed: .*the source fails/);
  },
  async writing(env) {
    const flow = fresh(env);
    assert.strictEqual(await drain(await flow.write(10, 1000)), 10_000);
    assert.strictEqual(await drain(await flow.write(30, 10_000, false, true)), 300_000);
    await assert.rejects(async () => drain(await flow.write(3, 10, true)), /disconnected prematurely/);
    const other = fresh(env);
    const reader = (await other.write(1e6, 50_000, false, true)).getReader();
    assert.ok((await reader.read()).value.byteLength >= 50_000);
    const [wanted] = await other.counts();
    assert.ok(wanted <= 3, `asked for more ${wanted} times`); // L3: it waits for the reader
    await reader.cancel(new Error("enough"));
    await until("the writer hears of it", async () => (await other.counts())[1] === 1);
    assert.strictEqual(await other.streams(), 1000); // those that are over are gone: L4
  },
  /** A stream that C writes and C, or JavaScript, reads. */
  async passing(env) {
    const flow = fresh(env);
    const sum = "w".charCodeAt(0) * 100_000;
    assert.deepStrictEqual([...await flow.send("FLOW", `reader ${crypto.randomUUID()}`, "read", 100)].slice(1), [100_000, sum]);
    assert.strictEqual(await flow.send("LENDER", "reader", "drain", 100), 100_000);
    assert.strictEqual(await drain(await flow.write(5, 10)), 50);
  },
  async requests(env) {
    const flow = fresh(env);
    const text = (pieces) => new TextDecoder().decode(new Uint8Array(pieces.flatMap((piece) => [...piece])));
    const answer = async (...args) => {
      const { status, headers, pieces } = await flow.fetchOf(...args);
      return { status, headers: Object.fromEntries(headers), text: text(pieces) };
    };
    const post = await answer("LENDER", "asked", "https://o/p?q=1", "POST", "a body");
    assert.deepStrictEqual([post.status, post.headers["x-seen"], post.text], [201, "POST https://o/p?q=1 c 1", "a body!"]);
    const json = await answer("LENDER", "asked", "https://o/json", "GET");
    assert.deepStrictEqual([json.status, json.headers["content-type"], json.text], [200, "application/json", '{"a":1}']);
    const plain = await answer("LENDER", "asked", "https://o/plain", "GET");
    assert.deepStrictEqual([plain.headers["content-type"], plain.text], ["text/plain;charset=UTF-8", "plain"]);
    const none = await answer("LENDER", "asked", "https://o/none", "GET");
    assert.deepStrictEqual([none.status, none.headers, none.text], [204, {}, ""]);
    assert.strictEqual((await answer("LENDER", "asked", "https://o/stream", "GET")).text.length, 5000);
    assert.strictEqual((await answer("LENDER", "asked", "https://o/redirect", "GET")).status, 302);
    assert.strictEqual((await answer("LENDER", "asked", "https://o/length", "POST", 50)).text, "50000");
    assert.strictEqual((await answer("FLOW", "asked in c", "https://o/echo", "POST", 100)).text.length, 100_000);
    assert.strictEqual((await answer("FLOW", "asked in c", "https://o/count", "POST", "abc")).text, "3 294");
    await assert.rejects(async () => flow.fetchOf("LENDER", "asked", "https://o/throws", "GET"), (error) => error instanceof RangeError && error.message === "thrown by fetch");
    assert.strictEqual((await answer("LENDER", "asked", "https://o/socket", "GET")).status, 101); // whose WebSocket nobody wants
    await assert.rejects(async () => flow.fetchOf("NOWHERE", "asked", "https://o/", "GET"), /no Durable Object binding/);
    await assert.rejects(async () => flow.fetchOf("LENDER", "asked", "https://o/", "G T"), /method|URL/i);
  },
  async bodies(env) {
    const flow = fresh(env);
    const count = async (body) => (await flow.fetch("https://o/count", { method: "POST", body })).text();
    assert.strictEqual(await count("abc"), "3 294");
    assert.strictEqual(await count(new Uint8Array(3)), "3 0");
    assert.strictEqual(await count(pieces(17, 1 << 20).stream), `${17 << 20} ${17 << 20}`); // more than a whole body may have
    assert.strictEqual(await count(new Uint8Array((16 << 20) + 1)), `${(16 << 20) + 1} 0`);
    assert.strictEqual(await (await flow.fetch("https://o/count")).text(), "0 0");
    const echoed = await flow.fetch("https://o/echo", { method: "POST", body: pieces(50, 4000).stream });
    assert.strictEqual(echoed.headers.get("content-type"), "application/octet-stream");
    assert.strictEqual(await drain(echoed.body), 200_000);
    assert.strictEqual(await (await flow.fetch("https://o/echo", { method: "POST", body: "text" })).text(), "text");
    // Backpressure all the way: what is not read is not made.
    const { stream, made } = pieces(10_000, 10_000);
    const slow = (await flow.fetch("https://o/echo", { method: "POST", body: stream })).body.getReader();
    await slow.read();
    await scheduler.wait(20);
    assert.ok(made.count < 50, `${made.count} pieces were made`);
    await slow.cancel(new Error("not wanted"));
    const endless = (await flow.fetch("https://o/endless")).body.getReader();
    await endless.read();
    await endless.cancel(new Error("not wanted"));
    assert.strictEqual(await (await flow.fetch("https://o/ignore", { method: "POST", body: pieces(100, 10).stream })).text(), "ignored");
    await assert.rejects(async () => flow.fetch("https://o/late"), (error) => error instanceof RangeError && error.message === "too late");
    await assert.rejects(async () => flow.fetch("https://o/both"), /a response has one body/);
    const failing = new ReadableStream({ type: "bytes", pull() { throw new Error("the source fails"); } });
    await assert.rejects(async () => (await flow.fetch("https://o/echo", { method: "POST", body: failing })).text(), /the source fails/);
    const controller = new AbortController();
    const waits = new ReadableStream({ type: "bytes", pull: () => new Promise(() => {}) });
    const asked = flow.fetch("https://o/count", { method: "POST", body: waits, signal: controller.signal });
    setTimeout(() => controller.abort(new Error("given up")), 10);
    await assert.rejects(async () => asked, /given up/);
    await until("its streams are over", async () => (await flow.streams()) === 1000);
  },
};

export class Lender extends DurableObject {
  who() { return this.ctx.id.name; }
  lend() { return (x) => x * 10; }
  async drain(stream) { return drain(stream); }
  async fetch(request) {
    const { pathname } = new URL(request.url);
    switch (pathname) {
      case "/json": return Response.json({ a: 1 });
      case "/plain": return new Response("plain");
      case "/none": return new Response(null, { status: 204 });
      case "/stream": return new Response(pieces(5, 1000).stream);
      case "/redirect": return new Response(null, { status: 302, headers: { location: "https://o/plain" } });
      case "/length": return new Response(`${(await request.bytes()).length}`);
      case "/throws": throw new RangeError("thrown by fetch");
      case "/socket": return new Response(null, { status: 101, webSocket: Object.values(new WebSocketPair())[0] });
    }
    const seen = `${request.method} ${request.url} ${request.headers.get("x-from")} ${request.headers.get("x-more")}`;
    return new Response(`${await request.text()}!`, { status: 201, headers: { "x-seen": seen } });
  }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, kind, name] = url.pathname.split("/");
    try {
      if (kind === "scenarios") return Response.json(Object.keys(scenarios));
      if (kind === "scenario") return Response.json((await scenarios[name](env)) ?? "ok");
      return env.FLOW.getByName("outside").fetch(request);
    } catch (error) {
      return new Response(`${error?.stack ?? error}\n${error?.message}`, { status: 500 });
    }
  },
};
