// The end of an instance (a reload; worker/instance.h): what it has lent stays what it was, and what it leaves
// behind does no harm.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { project, serve } from "../lib/server.mjs";

const MB = 1 << 20;

/** Reloads and waits until the server says so. */
async function reload(server) {
  const before = server.output.split("reloaded").length;
  server.signal("SIGHUP");
  await server.untilTrue(() => server.output.split("reloaded").length > before, "the reload");
}

/** A client that asks and reads nothing until it is told to; then all of it until the server closes. */
class SlowReader {
  constructor(port, target) {
    this.chunks = [];
    this.socket = net.connect({ port, host: "127.0.0.1", readableHighWaterMark: 1024 });
    this.socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    this.begun = new Promise((resolve, reject) => {
      this.socket.once("readable", resolve);
      this.socket.once("error", reject);
    });
  }
  async body() {
    for await (const chunk of this.socket) this.chunks.push(chunk);
    const all = Buffer.concat(this.chunks);
    return all.subarray(all.indexOf("\r\n\r\n") + 4);
  }
}

test("X3: a reload does not change bodies that slow clients are still reading", async (t) => {
  const dir = project({
    "index.js": `globalThis.registry = new FinalizationRegistry((value) => console.log("collected " + value));
export default {
  fetch(request) {
    const url = new URL(request.url);
    if (url.searchParams.has("probe")) {
      for (let i = 0; i < 20; i++) registry.register({ i }, url.searchParams.get("probe"));
      return new Response("ok");
    }
    return new Response(new Uint8Array(${8 * MB}).fill(Number(url.searchParams.get("fill"))));
  },
};`,
  });
  const server = await serve(dir);
  t.after(() => server.kill());
  const readers = [1, 2, 3, 4].map((fill) => new SlowReader(server.port, `/?fill=${fill}`));
  await Promise.all(readers.map((reader) => reader.begun));
  await reload(server);
  // Others use the memory meanwhile, and the old instance goes with the first tick of the house:
  // two collections are waited for.
  for (const time of ["first", "second"]) {
    await server.text(`/?probe=${time}`);
    await server.untilTrue(async () => {
      await (await server.fetch("/?fill=99")).arrayBuffer();
      return server.output.includes(`collected ${time}`);
    }, "a collection");
  }
  await reload(server);
  const bodies = await Promise.all(readers.map((reader) => reader.body()));
  for (const [i, body] of bodies.entries()) {
    assert.equal(body.length, 8 * MB);
    const wrong = body.findIndex((byte) => byte !== i + 1);
    assert.equal(wrong, -1, `reader ${i} got ${body[wrong]} at ${wrong}`);
  }
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

const leftovers = `import { DurableObject, RpcTarget } from "cloudflare:workers";
class Target extends RpcTarget { hello() { return "hello"; } }
export class Giver extends DurableObject { give() { return new Target(); } }
globalThis.registry = new FinalizationRegistry((value) => {
  console.log("finalized " + value);
  setTimeout(() => console.log("too late"), 0);
  crypto.randomUUID();
});
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    for (let i = 0; i < 20; i++) {
      if (url.pathname === "/stubs") await (await env.GIVER.getByName("x").give()).hello();
      if (url.pathname === "/pairs") new WebSocketPair();
      if (url.pathname === "/accepted") new WebSocketPair()[0].accept();
      if (url.pathname === "/registered") registry.register({ i }, i);
      if (url.pathname === "/probe") registry.register({ i }, url.search);
    }
    return new Response("ok");
  },
};`;

test("X1: reloads with stubs, pairs and registered values that nobody has ended leave the server up", async (t) => {
  const config = `name = "x"\nmain = "index.js"\ncompatibility_date = "2026-01-01"
[[durable_objects.bindings]]\nname = "GIVER"\nclass_name = "Giver"
[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Giver"]\n`;
  const server = await serve(project({ "wrangler.toml": config, "index.js": leftovers }));
  t.after(() => server.kill());
  for (let i = 0; i < 2; i++) {
    for (const what of ["stubs", "pairs", "accepted", "registered"]) assert.equal(await server.text(`/${what}`), "ok");
    await reload(server);
    // Twice: garbage made after the reload has been found and told of, so what the old instance left was too.
    for (const time of ["first", "second"]) {
      await server.text(`/probe?${i}${time}`);
      await server.until(new RegExp(`finalized \\?${i}${time}`));
    }
  }
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});
