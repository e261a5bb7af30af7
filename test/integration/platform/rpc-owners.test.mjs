// RPC-4 RPC-6 RPC-9: what came for one event of a worker is not another's to pipeline or to send, its value is; what an
// event has lent runs as that event. Props of any kind; one ctx for all handlers that are no class's, with the flag.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

const code = `
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
let shared;
class Counter extends RpcTarget {
  #n = 0;
  add(n) { return (this.#n += n); }
  get inner() { return this; }
}
export class Maker extends WorkerEntrypoint {
  plain() { return { five: 5 }; }
  counter() { return new Counter(); }
  holder() { return { counter: new Counter() }; }
  async use(how) { return uses[how](); }
  give(callback) { return callback(new Counter()); }
  props() { return this.ctx.props; }
}
export class Box extends DurableObject {
  counter() { return (this.held = new Counter()); }
  async calls(callback) { await callback(this.counter()); return "called"; }
}
const uses = {
  value: async () => (await shared).five,
  send: async () => shared,
  pipeline: () => shared.add(1),
  property: async () => await shared.counter,
  deeper: () => shared.counter.add(1),
};
const told = async (call) => { try { return await call(); } catch (e) { return /different request.*\\(I\\/O type: (\\w+)\\)$/.exec(e.message)?.[1] ?? e.message; } };
let count = 0;
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    const maker = ctx.exports.Maker;
    if (pathname === "/others") {
      const out = [];
      for (const [make, how] of [["plain", "value"], ["counter", "send"], ["counter", "pipeline"], ["holder", "property"], ["holder", "deeper"]]) {
        shared = maker[make]();
        out.push(await told(() => maker.use(how)));
      }
      return Response.json(out);
    }
    if (pathname === "/own") {
      const counter = await maker.counter();
      const pipelined = [await maker.counter().add(2), await maker.holder().counter.add(3), await maker.counter().inner.add(4)];
      // What a callback gets, it gets for the event that has lent the callback.
      let got, promise;
      await maker.give((stub) => { got = stub.dup(); promise = stub.dup().inner; return null; });
      const fromCallback = [await got.add(1), await maker.give((stub) => stub.add(7)), await told(() => maker.give(async () => got.dup().add(1)))];
      const box = env.BOX.getByName("a");
      let later;
      const called = await box.calls((stub) => { later = stub.dup(); });
      return Response.json([await counter.add(1), ...pipelined, ...fromCallback, called, await later.add(5), await (await later.inner).add(1)]);
    }
    if (pathname === "/props") return Response.json([await env.NUMBER.props(), await env.LIST.props(), await env.NO.props(), await env.NONE.props()]);
    ctx.seen = (ctx.seen ?? 0) + 1;
    ctx.waitUntil(Promise.resolve().then(() => { count++; }));
    return Response.json([ctx.seen, JSON.stringify(ctx.props), count]);
  },
};`;
const toml = (name, flags) => `name = "${name}"
main = "index.js"
compatibility_date = "2026-04-21"
compatibility_flags = [${flags}]
${objects({ BOX: "Box" })}
${["NUMBER = 5", 'LIST = ["a", 1]', "NO = false", "NONE"].map((text) => {
  const [binding, props] = text.split(" = ");
  return `[[services]]\nbinding = "${binding}"\nservice = "${name}"\nentrypoint = "Maker"\n${props === undefined ? "" : `props = ${props}\n`}`;
}).join("")}`;

let server, reusing;
before(async () => {
  server = await serve(project({ "wrangler.toml": toml("owners", ""), "index.js": code }));
  reusing = await serve(project({ "wrangler.toml": toml("reusing", '"nonclass_entrypoint_reuses_ctx_across_invocations"'), "index.js": code }));
});
after(async () => {
  await server.stop();
  await reusing.stop();
});
const get = async (from, path) => (await from.fetch(path)).json();

test("RPC-4 RPC-6: another event may have the value of a promise, and neither pipeline on it nor send its stubs", async () => {
  assert.deepEqual(await get(server, "/others"), [5, "Client", "JsRpcPromise", "Pipeline", "JsRpcPromise"]);
});
test("RPC-4 RPC-8: one's own, and what comes to functions that one has lent, can be used", async () => {
  assert.deepEqual(await get(server, "/own"), [1, 2, 3, 4, 1, 7, 2, "called", 5, 6]);
});
test("RPC-9: props may be of any kind", async () => {
  assert.deepEqual(await get(server, "/props"), [5, ["a", 1], false, {}]);
});
test("RPC-9: each invocation has its ctx; with nonclass_entrypoint_reuses_ctx_across_invocations there is one", async () => {
  for (const expected of [1, 1]) assert.deepEqual((await get(server, "/")).slice(0, 2), [expected, "{}"]);
  for (const expected of [1, 2, 3]) assert.deepEqual((await get(reusing, "/")).slice(0, 2), [expected, "{}"]);
  assert.equal((await get(reusing, "/"))[2], 3);
});

test("DO-NS-1: a class that has a migration and no binding is reached by ctx.exports, and its ids too", async (t) => {
  const dir = project({
    "wrangler.json": JSON.stringify({ name: "own", main: "index.js", compatibility_date: "2026-01-01", migrations: [{ tag: "v1", new_sqlite_classes: ["Own"] }] }),
    "index.js": `import { DurableObject } from "cloudflare:workers";
      export class Own extends DurableObject { hello() { return this.ctx.id.name; } }
      export default { async fetch(request, env, ctx) {
        const { Own } = ctx.exports;
        return Response.json([await Own.getByName("a").hello(), await Own.get(Own.idFromString(Own.idFromName("b").toString())).hello() ?? null]);
      } };`,
  });
  const server = await serve(dir);
  t.after(() => server.stop());
  assert.deepEqual(await (await server.fetch("/")).json(), ["a", null]); // of an id the name is not known
});
