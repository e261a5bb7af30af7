// A script that does not come back: what the engine can interrupt is ended in its time, what it cannot is noticed from outside
// (src/worker/watchdog.h), and neither keeps the server from stopping.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import WebSocket from "ws";
import { project, serve, write } from "../lib/cairn.mjs";
import { without } from "../lib/engine.mjs";

const config = (more = "", cpu = 200) => `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-03-01"\nlimits = { cpu_ms = ${cpu} }\n${more}`;
const objects = `[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Box"]\n`;

// Lists of millions of names, made in one call.
const lists = {
  "JSON.stringify": "JSON.stringify(new Uint8Array(2e7))",
  "JSON.stringify, inside": "JSON.stringify({ a: [{ b: new Float32Array(2e7) }] })",
  "Object.keys": "Object.keys(new Uint8Array(2e7))",
  "Object.keys of an array": "Object.keys(new Array(2e7).fill(1))",
  "Object.keys of a string": 'Object.keys(Object("x".repeat(2e7)))',
  "Object.entries": "Object.entries(new Uint8Array(2e7))",
  "Object.getOwnPropertyDescriptors": "Object.getOwnPropertyDescriptors(new Int16Array(2e7))",
  "Reflect.ownKeys": "Reflect.ownKeys(new Uint8Array(2e7))",
  "for-in": "for (const name in new Uint8Array(2e7)) globalThis.seen = name",
  spread: "({ ...new Uint8Array(2e7) })",
};

test("a list of millions of names ends with its turn, and nothing wrong is seen", { skip: without("names") }, async (t) => {
  const dir = project(t, {
    "wrangler.toml": config(),
    "index.js": `let after = 0;
      const lists = { ${Object.entries(lists).map(([name, code]) => `${JSON.stringify(name)}() { ${code}; after++; }`).join(",\n")} };
      export default { async fetch(request) {
        const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
        if (name) try { lists[name](); } catch { after++; }
        return new Response(String(after));
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  for (const name of Object.keys(lists)) assert.equal((await server.fetch(`/${encodeURIComponent(name)}`)).status, 503, name);
  assert.equal(await server.text("/"), "0"); // the script went on after none of them, and has not been restarted
  assert.doesNotMatch(server.output, /starts itself anew/);
});

test("a hash of many bytes ends with its turn, in the middle", { skip: without("clock") }, async (t) => {
  const dir = project(t, {
    "wrangler.toml": config('compatibility_flags = ["nodejs_compat"]\n'),
    "index.js": `import { createHash } from "node:crypto";
      const hash = createHash("sha3-512");
      export default { async fetch(request) {
        if (new URL(request.url).pathname === "/update") hash.update(new Uint8Array(2 ** 28));
        return new Response(hash.copy().digest("hex"));
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  assert.equal((await server.fetch("/update")).status, 503);
  const got = await server.text("/");
  assert.equal(got.length, 128);
  assert.notEqual(got, createHash("sha3-512").update(new Uint8Array(2 ** 28)).digest("hex"));
});

// Each in one call that looks at nothing; the sizes are a tenth of the largest that fit.
const uninterrupted = {
  "Object.freeze": "Object.freeze(new Array(2e6).fill(1))",
  "Object.seal": "Object.seal(new Array(2e6).fill(1))",
  sort: "Array.from({ length: 5e5 }, (_, n) => n * 7919 % 500009).sort()",
  normalize: '"\\u1e9b\\u0323".repeat(2e6).normalize("NFKD")',
  toLocaleUpperCase: '"\u00df".repeat(5e6).toLocaleUpperCase()',
  "nested runs": '/^(a+)+$/.test("a".repeat(40) + "b")',
  "BigInt.prototype.toString": "((1n << 500000n) - 1n).toString()",
  "BigInt.prototype.toString, too large": "((1n << 20000000n) - 1n).toString()",
  "Atomics.wait": "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9)",
};

test("what cannot be interrupted and fits into memory ends by itself, and the lane goes on without a restart", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config("", 100),
    "index.js": `let after = 0;
      const calls = { ${Object.entries(uninterrupted).map(([name, code]) => `${JSON.stringify(name)}() { ${code}; }`).join(",\n")} };
      export default { async fetch(request) {
        const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
        if (name) try { calls[name](); } catch (error) { return new Response(error.name); }
        return new Response(String(++after));
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  const ended = {};
  for (const name of Object.keys(uninterrupted)) {
    const response = await server.fetch(`/${encodeURIComponent(name)}`, { signal: AbortSignal.timeout(60_000) });
    ended[name] = response.status === 503 ? 503 : await response.text();
    assert.ok(response.status === 503 || response.status === 200, `${name}: ${response.status}`);
  }
  assert.equal(ended["BigInt.prototype.toString, too large"], "RangeError");
  assert.equal(ended["Atomics.wait"], "TypeError");
  assert.equal((await server.fetch("/")).status, 200);
  assert.doesNotMatch(server.output, /starts itself anew/);
});

// Half a million comparisons of long texts that are alike up to their ends, in one call: minutes.
const endless = 'new Array(5e5).fill("x".repeat(4e6) + "b").concat(new Array(5e5).fill("x".repeat(4e6) + "a")).sort()';

test("a lane that is stuck in one call makes the server start itself anew: the same process, the same address, nothing lost", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config(`${objects}[cairn.limits]\nstuck_ms = 300\n`, 1000),
    "index.js": `import { DurableObject } from "cloudflare:workers";
      export class Box extends DurableObject { add() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; } }
      export default { async fetch(request, env) {
        if (new URL(request.url).pathname === "/stuck") return new Response(${endless}.length);
        return new Response(String(await env.BOX.getByName("a").add()));
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  assert.equal(await server.text("/"), "1");
  server.fetch("/stuck").catch(() => {}); // it gets no answer
  await server.until(/lane 0: worker w has held it for \d+ s in a call that cannot be interrupted/);
  await server.until(/the server starts itself anew/);
  // Who connects now waits, and is answered by the next one.
  const answer = new Promise((resolve, reject) => {
    const socket = net.connect(server.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    let text = "";
    socket.setEncoding("latin1").on("data", (part) => (text += part)).on("end", () => resolve(text)).on("error", reject);
  });
  await server.until(/ready on[^]*ready on/);
  const text = await answer;
  assert.match(text, /^HTTP\/1.1 200/);
  assert.match(text, /\r\n\r\n2$/);
  assert.equal(server.exit, undefined);
  const ready = server.output.match(/ready on \S+/g);
  assert.equal(ready[0], ready[1]);
  assert.equal((await server.stop()).code, 0);
});

test("the server ends on a signal although a lane is stuck, and says whose fault it was", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config("[cairn.limits]\nstuck_ms = 3600000\n", 1000),
    "index.js": `export default { async fetch(request) { return new Response(request.url.endsWith("/stuck") ? ${endless}.length : "here"); } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "2"] });
  server.fetch("/stuck").catch(() => {});
  await server.until(/worker w is in a call that cannot be interrupted/);
  server.signal("SIGTERM");
  await server.until(/finishing the requests under way/);
  assert.equal((await server.stop()).code, 1);
  assert.match(server.output, /worker w did not end/);
  assert.match(server.output, /the time to stop is over/);
});

test("a loop that would run for minutes does not keep the server from stopping", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config("", 300_000),
    "index.js": 'export default { async fetch(request) { if (request.url.endsWith("/loop")) { console.log("loops"); for (;;); } return new Response("here"); } };',
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  const looping = server.fetch("/loop").catch(() => {});
  await server.until(/loops/);
  server.signal("SIGTERM");
  await server.until(/finishing the requests under way/);
  assert.equal((await server.stop()).code, 0); // the second one: the turn is ended
  await looping;
});

test("cairn dev: corrected code takes the place of an endless loop as soon as it is saved", async (t) => {
  const looping = 'export default { async fetch(request) { if (request.url.endsWith("/loop")) { console.log("loops"); for (;;); } return new Response("old"); } };';
  const dir = project(t, { "wrangler.toml": config("", 300_000), "index.js": looping });
  const server = await serve(t, dir, { command: "dev" });
  assert.equal(await server.text("/"), "old");
  server.fetch("/loop").catch(() => {});
  await server.until(/loops/);
  write(dir, { "index.js": 'export default { fetch() { return new Response("new"); } };' });
  await server.until(/reloaded/);
  assert.equal(await server.text("/"), "new");
});

test("cairn dev: a turn is ended by the clock on the wall, long before its CPU time", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config("", 300_000),
    "index.js": 'export default { async fetch(request) { if (request.url.endsWith("/loop")) for (;;); return new Response("here"); } };',
  });
  const server = await serve(t, dir, { command: "dev" });
  const response = await server.fetch("/loop", { signal: AbortSignal.timeout(60_000) });
  assert.equal(response.status, 503);
  await server.until(/ran for longer than a script may hold its lane/);
  assert.equal(await server.text("/"), "here");
});

test("a limit that ends an alarm, a message or a timer of an object leaves a line that names the object", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config(objects, 100),
    "index.js": `import { DurableObject } from "cloudflare:workers";
      export class Box extends DurableObject {
        async fetch() { const [client, server] = Object.values(new WebSocketPair()); this.ctx.acceptWebSocket(server); return new Response(null, { status: 101, webSocket: client }); }
        webSocketMessage() { for (;;); }
        alarm() { for (;;); }
        async soon() { await this.ctx.storage.setAlarm(Date.now()); }
        later() { setTimeout(() => { for (;;); }, 1); }
        here() { return "here"; }
      }
      export default { async fetch(request, env) {
        const [, name, what] = new URL(request.url).pathname.split("/");
        const box = env.BOX.getByName(name);
        return what === "socket" ? box.fetch(request) : new Response(String(await box[what]()));
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1", "--data", path.join(dir, "data")] });
  const line = (name) => new RegExp(`worker=w .*object [0-9a-f]{64} \\("${name}"\\) of class Box: Durable Object exceeded its CPU time limit and was reset`);
  await server.text("/alarmed/soon");
  await server.until(line("alarmed"));
  await server.text("/timed/later");
  await server.until(line("timed"));
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/spoken/socket`);
  t.after(() => socket.terminate());
  socket.on("open", () => socket.send("loop")).on("error", () => {});
  await server.until(line("spoken"));
  assert.equal(await server.text("/spoken/here"), "here");
});
