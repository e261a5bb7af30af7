// RPC-10: stubs that are kept in storage and in props (allow_irrevocable_stub_storage; R1 and R2 of prelude/workers/object/rpc.js).
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";
import { services } from "../lib/toml.mjs";

const FLAG = '"allow_irrevocable_stub_storage"';

const keeperConfig = (flag) => `name = "keeper"
main = "index.js"
compatibility_date = "2026-04-21"
compatibility_flags = [${flag ? `${FLAG}, ` : ""}"service_binding_extra_handlers"]
[[durable_objects.bindings]]
name = "VAULT"
class_name = "Vault"
${services({ OTHER: { service: "other", entrypoint: "Minter" } })}
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Vault"]
`;
const keeper = `
import { DurableObject, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
class Counter extends RpcTarget { add() { return 1; } }
export class Greeter extends WorkerEntrypoint {
  greet(name) { return this.ctx.props.greeting + ", " + name; }
  fetch(request) { return new Response(this.ctx.props.greeting + " " + new URL(request.url).pathname); }
}
export class User extends WorkerEntrypoint {
  async run() { return [await this.ctx.props.greeter.greet("props"), await this.ctx.props.vault.read("plain")]; }
  async keep(key) { await this.ctx.exports.Vault.getByName("props").put(key, this.ctx.props.greeter); }
}
export class Vault extends DurableObject {
  async put(key, value) { await this.ctx.storage.put(key, value); }
  putSync(key, value) { this.ctx.storage.kv.put(key, value); }
  read(key) { return this.ctx.storage.get(key); }
  async use(key, name) { return (await this.ctx.storage.get(key)).greet(name); }
  async useSync(key, name) { return this.ctx.storage.kv.get(key).map.get("deep")[0].greet(name); }
  async useFetch(key) { return (await (await this.ctx.storage.get(key)).fetch("https://x/there")).text(); }
  async useListed(key, name) { return (await this.ctx.storage.list({ prefix: key })).get(key).greet(name); }
  async useVault(key, inner) { return (await this.ctx.storage.get(key)).read(inner); }
  async same(key) { const { a, b } = await this.ctx.storage.get(key); return a === b; }
  async putLoopback(key) { await this.ctx.storage.put(key, this.ctx.exports.Greeter); }
  async putLive(key) { await this.ctx.storage.put(key, { stub: new Counter() }); }
}
export class Queue extends WorkerEntrypoint {
  queue(batch) { for (const message of batch.messages) globalThis.seen = message.body; }
}
const told = async (work) => { try { return await work(); } catch (e) { return e.name + ": " + e.message; } };
const cases = {
  async write({ vault, exports }) {
    const greeter = exports.Greeter({ props: { greeting: "Hello" } });
    await vault.put("service", greeter);
    await vault.putSync("nested", { map: new Map([["deep", [greeter]]]) });
    await vault.put("twice", { a: greeter, b: greeter });
    const other = exports.Vault.getByName("second");
    await other.put("plain", "of the second");
    await vault.put("object", other);
    await vault.put("unnamed", exports.Vault.get(exports.Vault.idFromString(exports.Vault.idFromName("second").toString())));
    return "written";
  },
  async read({ vault }) {
    return [await vault.use("service", "A"), await vault.useSync("nested", "B"), await vault.useFetch("service"), await vault.useListed("service", "C"),
      await vault.same("twice"), await vault.useVault("object", "plain"), await vault.useVault("unnamed", "plain"), await (await vault.read("service")).greet("D")];
  },
  async refused({ env, vault, exports }) {
    return [
      await told(() => vault.put("x", env.OTHER)),
      await told(() => vault.put("x", env.VAULT.getByName("second"))),
      await told(() => vault.put("x", env.VAULT.get(exports.Vault.idFromName("second")))),
      await told(() => vault.putLoopback("x")),
      await told(() => vault.put("x", new Counter())),
      await told(() => vault.put("x", () => 1)),
      await told(() => vault.putLive("x")),
      await told(() => structuredClone(exports.Greeter({ props: {} }))),
      await told(() => structuredClone(env.VAULT.getByName("a"))),
      await told(() => exports.Greeter({ props: { f: () => 1 } })),
      (await vault.read("x")) === undefined,
    ];
  },
  async props({ vault, exports }) {
    const second = exports.Vault.getByName("second");
    await second.put("plain", "of the second");
    const user = exports.User({ props: { greeter: exports.Greeter({ props: { greeting: "Yo" } }), vault: second } });
    await vault.put("user", user);
    await user.keep("kept");
    return [await user.run(), await (await vault.read("user")).run(), await exports.Vault.getByName("props").use("kept", "E")];
  },
  async other({ env, vault }) {
    await vault.put("other", await env.OTHER.mint("Target"));
    await vault.put("otherObject", await env.OTHER.object());
    return [await vault.use("other", "F"), await vault.useVault("otherObject", "k")];
  },
  otherAgain: async ({ vault }) => [await told(() => vault.use("other", "F")), await told(() => vault.useVault("otherObject", "k")), await told(() => vault.useFetch("other"))],
  mintUnkept: async ({ env, vault }) => told(async () => vault.put("y", await env.OTHER.mint("Target"))),
  // Bytes of a script's own making: version, tag 0x36 of a service stub, {worker: "other"}.
  async forged({ exports }) {
    const out = [];
    for (const tag of [0x30, 0x35, 0x36, 0x3a, 0x3e]) {
      const name = (text) => [text.length * 4 + 1, ...new TextEncoder().encode(text)];
      const bytes = new Uint8Array([1, tag, 0x10, ...name("worker"), 0x45, ...new TextEncoder().encode("other"), 0]);
      globalThis.seen = undefined;
      const result = await exports.Queue.queue("q", [{ id: "1", timestamp: 0, attempts: 1, serializedBody: bytes }]);
      out.push(globalThis.seen === undefined ? result.outcome : "made");
    }
    return out;
  },
};
export default {
  async fetch(request, env, ctx) {
    const name = new URL(request.url).pathname.slice(1);
    return Response.json(await told(() => cases[name]({ env, exports: ctx.exports, vault: env.VAULT.getByName("first") })));
  },
};`;

const otherConfig = (flag, classes = true) => `name = "other"
main = "index.js"
compatibility_date = "2026-04-21"
${flag ? `compatibility_flags = [${FLAG}]` : ""}
${classes ? '[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"' : ""}
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Box"]
${classes ? "" : '[[migrations]]\ntag = "v2"\ndeleted_classes = ["Box"]'}
`;
const other = (target = "Target", classes = true) => `
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
export class ${target} extends WorkerEntrypoint {
  greet(name) { return "other greets " + name; }
  fetch() { return new Response("other"); }
}
export class Minter extends WorkerEntrypoint {
  mint(name) { return this.ctx.exports[name]({ props: {} }); }
  object() { return this.ctx.exports.Box.getByName("b"); }
}
${classes ? 'export class Box extends DurableObject { read(key) { return "box " + key; } }' : ""}
export default { fetch() { return new Response("other"); } };`;

const KEPT = ["Hello, A", "Hello, B", "Hello /there", "Hello, C", true, "of the second", "of the second", "Hello, D"];
const GONE = /stub refers to a worker or a Durable Object class that does not exist any more/;
const DROPPED = /^Error: Invoked a Worker from a stored stub, but the target worker no longer has the allow_irrevocable_stub_storage compatibility flag enabled\.$/;
const NOT_OPTED = "DataCloneError: Cannot store this stub because the target worker does not have the allow_irrevocable_stub_storage compatibility flag enabled.";

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    const keeperDir = project({ "wrangler.toml": keeperConfig(true), "index.js": keeper });
    const otherDir = project({ "wrangler.toml": otherConfig(true), "index.js": other() });
    const data = tempDir();
    let server;
    const start = async () => { server = await serve([keeperDir, otherDir], { lanes, data, args: ["--allow-delete", "Box"] }); };
    const run = async (name) => (await server.fetch(`/${name}`, { headers: { host: "keeper" } })).json();
    const set = (dir, name, text) => writeFileSync(path.join(dir, name), text);
    const reload = async () => {
      const before = server.output.length;
      server.signal("SIGHUP");
      await server.untilTrue(() => / info  reloaded|last good version/.test(server.output.slice(before)), "the reload", 30_000);
      assert.match(server.output.slice(before), / info  reloaded/);
    };
    before(start);
    after(() => server.stop());

    test("RPC-10 what ctx.exports has made is stored, and works when it is read", async () => {
      assert.equal(await run("write"), "written");
      assert.deepEqual(await run("read"), KEPT);
    });
    test("RPC-10 after a restart, and after kill -9", async () => {
      await server.stop();
      await start();
      assert.deepEqual(await run("read"), KEPT);
      await server.kill();
      await start();
      assert.deepEqual(await run("read"), KEPT);
    });
    test("RPC-10 bindings, live targets and functions are refused; clones too", async () => {
      const [service, object, mixed, loopback, live, callable, own, clone, cloned, props, nothing] = await run("refused");
      assert.deepEqual([service, object, mixed], [NOT_OPTED, NOT_OPTED, NOT_OPTED]);
      assert.match(loopback, /^DataCloneError: Could not serialize object of type "LoopbackServiceStub"/);
      assert.equal(live, "DataCloneError: RpcStub cannot be serialized in this context because it is not a persistent stub.");
      assert.equal(callable, live);
      assert.equal(own, "DataCloneError: Remote RPC references can only be serialized for RPC.");
      assert.equal(clone, "DataCloneError: ServiceStub cannot be serialized in this context.");
      assert.equal(cloned, clone);
      assert.match(props, /^DataCloneError: .* could not be cloned/);
      assert.equal(nothing, true);
    });
    test("RPC-10 stubs in props, sent, stored and used", async () => {
      const both = ["Yo, props", "of the second"];
      assert.deepEqual(await run("props"), [both, both, "Yo, E"]);
    });
    test("R1: bytes that a script has made name nobody", async () => {
      assert.deepEqual(await run("forged"), Array(5).fill("exception"));
    });
    test("R2: another worker's stubs end with its flag, its entrypoint, its class", async () => {
      const works = ["other greets F", "box k"];
      assert.deepEqual(await run("other"), works);
      set(otherDir, "wrangler.toml", otherConfig(false));
      await reload();
      for (const text of await run("otherAgain")) assert.match(text, DROPPED);
      assert.equal(await run("mintUnkept"), NOT_OPTED);
      set(otherDir, "wrangler.toml", otherConfig(true));
      set(otherDir, "index.js", other("Renamed"));
      await reload();
      const [entry, object] = await run("otherAgain");
      assert.match(entry, /The worker has no entrypoint "Target"/);
      assert.equal(object, "box k");
      set(otherDir, "index.js", other("Target", false));
      set(otherDir, "wrangler.toml", otherConfig(true, false));
      await reload();
      const [again, gone] = await run("otherAgain");
      assert.equal(again, "other greets F");
      assert.match(gone, GONE);
    });
    test("R2: a worker that does not have the flag any more neither reads nor writes them", async () => {
      set(keeperDir, "wrangler.toml", keeperConfig(false));
      await reload();
      assert.equal(await run("read"), "DataCloneError: ServiceStub cannot be deserialized in this context.");
      assert.equal(await run("write"), "DataCloneError: ServiceStub cannot be serialized in this context.");
      set(keeperDir, "wrangler.toml", keeperConfig(true));
      await reload();
      assert.deepEqual(await run("read"), KEPT);
    });
  });
}
