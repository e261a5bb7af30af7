// The memory of the process is bounded (src/base/account.h): whoever takes it, clients or scripts, the sum stays below memory_bytes and a
// tenth, the one that takes too much is named and gives way, and others keep their state and their answers.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { test } from "node:test";
import WebSocket from "ws";
import { folder, serve, write } from "../lib/cairn.mjs";
import { without } from "../lib/engine.mjs";

const MB = 1 << 20;
// Who holds what is known by a patch of the engine; without it the process has its bound all the same (docs/reference/limits.md).
const skip = without("alloc");

/** The memory of the process that is its own, in bytes, now. */
function anonymous(pid) {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) * 1024;
}

/** Looks at it until the test ends; `.peak` is the most that was seen. */
function watch(t, pid) {
  const seen = { peak: 0 };
  const timer = setInterval(() => { try { seen.peak = Math.max(seen.peak, anonymous(pid)); } catch { /* it has ended */ } }, 10);
  t.after(() => clearInterval(timer));
  return seen;
}

/** A request for a host: {status, text, headers}. */
function ask(server, host, path, { method = "GET", body, timeout = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: "127.0.0.1", port: server.port, path, method, headers: { host }, timeout }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part)).on("end", () => resolve({ status: response.statusCode, text, headers: response.headers }));
      response.on("error", reject);
    });
    request.on("error", reject).on("timeout", () => request.destroy(new Error("no answer")));
    request.end(body);
  });
}

/** A state that only memory has: it is lost if the worker is restarted. */
const innocent = `
  let count = 0;
  export default { async fetch(request) {
    if (request.url.endsWith("/compute")) { let sum = 0; for (let i = 0; i < 3e7; i++) sum += i; return new Response(String(sum)); }
    new Array(1000).fill({}); return new Response(String(++count)); } };`;

const hog = `
  import { DurableObject } from "cloudflare:workers";
  const kept = [];
  export class Box extends DurableObject {
    started = Math.random();
    fill(megabytes) { this.kept = Array.from({ length: megabytes }, () => new Uint8Array(1 << 20).fill(1)); return this.started; }
    async busy(megabytes) { this.fill(megabytes); await new Promise((resolve) => setTimeout(resolve, 3600_000)); }
    alarm() { // rows of SQL are bytes that C has lent
      (this.kept ??= []).push(...this.ctx.storage.sql.exec("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20) SELECT randomblob(500000) AS b FROM c"));
      return this.ctx.storage.setAlarm(Date.now());
    }
    ring() { return this.ctx.storage.setAlarm(Date.now()); }
    small(kilobytes) { this.kept = new Uint8Array(kilobytes << 10).fill(1); return this.started; }
    read() { return this.started; }
    async fetch() {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    broadcast(count, bytes) {
      for (let i = 0; i < count; i++) {
        const message = new Uint8Array(bytes).fill(i);
        for (const socket of this.ctx.getWebSockets()) try { socket.send(message); } catch {}
      }
      return this.ctx.getWebSockets().length;
    }
  }
  export default {
    async fetch(request, env) {
      const url = new URL(request.url), [, what, a, b, c] = url.pathname.split("/");
      if (what === "burst") { const all = []; for (;;) all.push(new Uint8Array(10e6).fill(1)); }
      if (what === "objects") { const all = []; for (;;) all.push({ n: all.length, of: [1, 2, 3] }); }
      if (what === "wasm") { const all = []; for (;;) { const memory = new WebAssembly.Memory({ initial: 160 }); new Uint8Array(memory.buffer).fill(1); all.push(memory); } }
      if (what === "grow") { const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 }); for (;;) { memory.grow(160); new Uint8Array(memory.buffer).fill(1); } }
      if (what === "resizable") { const all = []; for (;;) { const buffer = new ArrayBuffer(0, { maxByteLength: 10e6 }); buffer.resize(10e6); new Uint8Array(buffer).fill(1); all.push(buffer); } }
      if (what === "hoard") { for (let i = 0; i < Number(a); i++) kept.push(new Uint8Array(1 << 20).fill(1)); return new Response(String(kept.length)); }
      if (what === "messages") {
        for (let i = 0; i < Number(a); i++) {
          const pair = new WebSocketPair();
          pair[0].accept();
          pair[0].send(new Uint8Array(1 << 20).fill(1)); // to an end that nobody reads
          kept.push(pair);
        }
        return new Response(String(kept.length));
      }
      if (what === "big") return new Response(new Uint8Array(8 << 20).fill(1));
      if (what === "body") { const bytes = await request.arrayBuffer(); return new Response(String(bytes.byteLength)); }
      if (what === "box") {
        const box = env.BOX.getByName(a);
        if (b === "socket") return box.fetch(request);
        return new Response(String(await box[b](...(c ?? "").split(",").map(Number))));
      }
      return new Response("hog");
    },
  };`;

async function start(t, limits, { lanes = 1 } = {}) {
  const dir = folder(t);
  write(dir, {
    "hog/wrangler.toml": `name = "hog"\nmain = "index.js"\ncompatibility_date = "2026-03-01"
routes = ["hog.test/*"]
[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"
[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Box"]
[cairn.limits]\n${limits}\n`,
    "hog/index.js": hog,
    "innocent/wrangler.toml": 'name = "innocent"\nmain = "index.js"\ncompatibility_date = "2026-03-01"\nroutes = ["innocent.test/*"]\n',
    "innocent/index.js": innocent,
  });
  const server = await serve(t, dir, { projects: [`${dir}/hog`, `${dir}/innocent`], args: ["--lanes", String(lanes), "--data", `${dir}/data`] });
  let count = 0;
  return {
    server,
    seen: watch(t, server.pid),
    hog: (path, init) => ask(server, "hog.test", path, init),
    /** It answers, and has not been restarted since the last time. */
    async innocentIsThere() {
      const answer = await ask(server, "innocent.test", "/");
      if (answer.status === 503) return false; // the whole server is short: not for long
      assert.equal(answer.status, 200);
      assert.equal(answer.text, String(++count), server.output);
      return true;
    },
  };
}

for (const what of ["burst", "objects", "wasm", "grow", "resizable"]) {
  test(`a turn that allocates without end (${what}) is ended before the process is past its limit, and nobody else is`, async (t) => {
    const { server, seen, hog, innocentIsThere } = await start(t, `memory_bytes = ${500 * MB}`);
    await innocentIsThere();
    const { status, text } = await hog(`/${what}`);
    assert.ok(status === 503 || (status === 500 && /RangeError/.test(server.output)), `${status} ${text} ${server.output}`);
    await server.untilTrue(innocentIsThere, "an answer of the innocent");
    assert.ok(seen.peak < 550 * MB, `${seen.peak >> 20} MB`);
    assert.doesNotMatch(server.output, /worker innocent .* restarted/);
  });
  test(`the same past heap_bytes, with memory to spare (${what})`, { skip }, async (t) => {
    const { seen, hog, innocentIsThere } = await start(t, `heap_bytes = ${64 * MB}`);
    await innocentIsThere();
    const { status } = await hog(`/${what}`);
    assert.ok(status === 503 || status === 500, String(status));
    assert.equal(await innocentIsThere(), true);
    assert.ok(seen.peak < 400 * MB, `${seen.peak >> 20} MB`);
  });
}

test("a script that hoards is restarted, named, and alone", { skip }, async (t) => {
  const { server, hog, innocentIsThere } = await start(t, `heap_bytes = ${96 * MB}`);
  await innocentIsThere();
  assert.equal((await hog("/hoard/110")).text, "110");
  await server.until(/over its limit of 96 MB; new requests of worker hog get 503 \(worker hog holds 1\d\d MB\)/);
  await innocentIsThere();
  await server.until(/worker hog held \d+ MB and is restarted/);
  await innocentIsThere();
  await server.untilTrue(async () => (await hog("/hoard/1")).text === "1", "a hog without memory");
});

test("a busy object that holds too much is reset and named; others of its class, and its script, stay", { skip }, async (t) => {
  const { server, hog, innocentIsThere } = await start(t, `heap_bytes = ${96 * MB}\nobject_idle_ms = 600000`);
  await innocentIsThere();
  const other = (await hog("/box/other/small/100")).text;
  assert.equal((await hog("/hoard/1")).text, "1");
  const busy = hog("/box/large/busy/110", { timeout: 60_000 });
  await server.until(/object [0-9a-f]{64} \("large"\) of class Box, worker hog held \d+ MB and is restarted/);
  assert.ok((await busy).status >= 500);
  await innocentIsThere();
  // Idle ones may have been evicted to make room; the script's own memory is as it was.
  await server.untilTrue(async () => (await hog("/hoard/1")).text === "2", "the script's memory");
  assert.equal(typeof other, "string");
  // It was one reset, not one after the other.
  assert.equal(server.output.match(/and is restarted/g).length, 1);
});

test("after a flood of objects requests are answered again at once", async (t) => {
  const { server, hog, innocentIsThere } = await start(t, `heap_bytes = ${64 * MB}\nobject_idle_ms = 600000`);
  for (let i = 0; i < 20; i++)
    await Promise.all(Array.from({ length: 100 }, (_, k) => hog(`/box/o${i * 100 + k}/small/100`).catch(() => {}))); // 200 MB in all
  await server.untilTrue(async () => (await hog("/")).status === 200 && (await hog("/box/o5/read")).status === 200, "an answer", 30_000);
  await innocentIsThere();
});

test("D3: a turn that allocates nothing is not ended for what the turn before it has left, here or on another lane", { skip }, async (t) => {
  const { server, hog } = await start(t, `memory_bytes = ${300 * MB}`, { lanes: 2 });
  let ended = 0, computed = 0;
  const compute = async () => {
    while (ended < 3 || !computed) {
      const { status, text } = await ask(server, "innocent.test", "/compute", { timeout: 60_000 });
      if (status === 503) assert.match(text, /^cairn: the server is short of memory/); // refused before it began
      else assert.equal(status, 200, text);
      if (status === 200) computed++;
    }
  };
  const hogs = async () => { while (ended < 3) { await hog("/objects", { timeout: 60_000 }); ended++; } };
  await Promise.all([hogs(), compute(), compute(), compute()]);
  assert.doesNotMatch(server.output, /worker=innocent/);
});

test("R6 R7: a script that stops growing just below the limit is restarted, and others are not refused for what it holds", { skip }, async (t) => {
  const limit = 300 * MB;
  const { server, hog } = await start(t, `memory_bytes = ${limit}`);
  const innocent = () => ask(server, "innocent.test", "/");
  assert.equal((await innocent()).text, "1");
  // To 91 % and no further, however late the server looks: at 100 % all requests are refused.
  await server.untilTrue(async () => {
    if (anonymous(server.pid) < limit * 0.91) await hog("/hoard/1");
    return /level (requests|reset)/.test(server.output);
  }, "memory that is short", 60_000);
  // Nothing more comes from it, and nothing else gives way: it cannot stay like that.
  let count = 1;
  while (!/worker hog held \d+ MB and is restarted/.test(server.output)) {
    const { status, text } = await innocent();
    assert.equal(status, 200, text);
    assert.equal(text, String(++count));
  }
  await server.untilTrue(async () => (await hog("/hoard/1")).text === "1", "a hog without memory", 30_000);
});

test("messages that nobody reads count for the script that holds the ends", { skip }, async (t) => {
  const limit = 300 * MB;
  const { server, seen, hog, innocentIsThere } = await start(t, `memory_bytes = ${limit}`);
  await innocentIsThere();
  await server.untilTrue(async () => { await hog("/messages/8"); return /worker hog held \d+ MB and is restarted/.test(server.output); }, "a restart", 30_000);
  await server.untilTrue(innocentIsThere, "the innocent", 30_000);
  assert.ok(seen.peak < limit * 1.1, `${seen.peak >> 20} MB`);
});

test("M5: an object that keeps rows of SQL and is never idle is reset, and named", { skip }, async (t) => {
  const limit = 300 * MB;
  const { server, seen, hog, innocentIsThere } = await start(t, `memory_bytes = ${limit}`);
  await innocentIsThere();
  void hog("/box/ringing/busy/0").catch(() => {}); // between two alarms it is not idle
  await hog("/box/ringing/ring");
  // Either between two alarms, or in the middle of one.
  const line = /object [0-9a-f]{64} \("ringing"\) of class Box(, worker hog held \d+ MB and is restarted|: Durable Object exceeded its memory limit)/;
  await server.untilTrue(() => line.test(server.output), "a reset that names the object", 60_000);
  await server.untilTrue(innocentIsThere, "the innocent", 30_000);
  assert.ok(seen.peak < limit * 1.1, `${seen.peak >> 20} MB`);
});

test("R1 R4: a script whose large answers nobody reads is not restarted for them: the readers are cut", { skip }, async (t) => {
  const limit = 300 * MB;
  const { server, seen, hog, innocentIsThere } = await start(t, `memory_bytes = ${limit}`);
  await innocentIsThere();
  assert.equal((await hog("/hoard/1")).text, "1");
  let cut = 0;
  const readers = Array.from({ length: 300 }, () => {
    const socket = net.connect(server.port, "127.0.0.1").on("error", () => {}).on("close", () => cut++);
    socket.pause();
    socket.write("GET /big HTTP/1.1\r\nHost: hog.test\r\n\r\n");
    // What does not read does not see its end: it writes now and then.
    const timer = setInterval(() => socket.write("\r\n"), 200);
    t.after(() => { clearInterval(timer); socket.destroy(); });
    return socket;
  });
  await server.untilTrue(() => cut > 0, "a reader that is cut", 30_000);
  await server.untilTrue(async () => (await hog("/hoard/1")).text === "2", "the script's memory", 30_000);
  await server.untilTrue(innocentIsThere, "the innocent", 30_000);
  assert.doesNotMatch(server.output, /and is restarted/);
  assert.ok(seen.peak < limit * 1.1, `${seen.peak >> 20} MB`);
  assert.equal(readers.length, 300);
});

test("WebSockets that do not read a broadcast are closed with 1013 before memory is short; one that reads stays", async (t) => {
  const limit = 400 * MB;
  const { server, seen, hog, innocentIsThere } = await start(t, `memory_bytes = ${limit}\nwebsocket_output_bytes = ${64 * MB}`);
  await innocentIsThere();
  const slow = [];
  const open = (paused) => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/box/room/socket`, { headers: { host: "hog.test" }, perMessageDeflate: false });
    socket.on("open", () => { if (paused) socket._socket.pause(); resolve(socket); }).on("error", reject);
  });
  for (let i = 0; i < 60; i++) slow.push(await open(true));
  const reader = await open(false);
  let messages = 0, closed = 0;
  reader.on("message", () => messages++).on("close", () => closed++);
  t.after(() => { for (const socket of [...slow, reader]) socket.terminate(); });
  // Each message is for all, and of 3 KB: it is copied into the streams that have room. 300 MB wait for each slow one, if they may.
  let sent = 0;
  for (; sent < 100_000 && !/1013/.test(server.output); sent += 400) {
    const { status } = await hog("/box/room/broadcast/400,3000");
    if (status !== 200 && status !== 503) assert.fail(`${status}: ${server.output}`);
  }
  await server.until(/a WebSocket was closed with 1013/);
  await server.untilTrue(innocentIsThere, "the innocent");
  assert.ok(seen.peak < limit * 1.1, `${seen.peak >> 20} MB`);
  assert.equal(closed, 0);
  await server.untilTrue(async () => (await hog("/box/room/broadcast/1,10")).status === 200, "a broadcast");
  // A client that reads again finds whole messages and then the reason.
  const code = new Promise((resolve) => slow[0].on("close", resolve));
  slow[0]._socket.resume();
  assert.ok([1013, 1006].includes(await code));
});

test("unfinished uploads get 503 when they take too much together; the memory is there again", async (t) => {
  const limit = 500 * MB;
  const { server, seen, hog, innocentIsThere } = await start(t, `memory_bytes = ${limit}`);
  await innocentIsThere();
  const part = Buffer.alloc(1 * MB, 1);
  const answers = [];
  const upload = () => {
    const socket = net.connect(server.port, "127.0.0.1");
    socket.on("error", () => {}).setEncoding("latin1").on("data", (text) => answers.push(text.slice(0, 12)));
    socket.write(`POST /body HTTP/1.1\r\nHost: hog.test\r\nContent-Length: ${95 * MB}\r\n\r\n`);
    for (let i = 0; i < 90; i++) socket.write(part); // and never the rest
    return socket;
  };
  const sockets = Array.from({ length: 20 }, upload);
  t.after(() => { for (const socket of sockets) socket.destroy(); });
  await server.untilTrue(() => answers.some((text) => text === "HTTP/1.1 503"), "a refusal", 30_000);
  await server.untilTrue(innocentIsThere, "the innocent");
  assert.ok(seen.peak < limit * 1.1, `${seen.peak >> 20} MB`);
  for (const socket of sockets) socket.destroy();
  const whole = await new Promise((resolve, reject) => server.untilTrue(async () => {
    const answer = await hog("/body", { method: "POST", body: Buffer.alloc(5 * MB) });
    if (answer.status === 200) resolve(answer.text);
    return answer.status === 200;
  }, "an upload that is taken").catch(reject));
  assert.equal(whole, String(5 * MB));
});

test("W5: bodies of R2 that are begun faster than they are read wait, and hold nothing", async (t) => {
  const dir = folder(t);
  write(dir, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"
[[r2_buckets]]\nbinding = "R2"\nbucket_name = "b"\n[cairn.limits]\nmemory_bytes = ${400 * MB}\n`,
    "index.js": `export default { async fetch(request, { R2 }) {
        await R2.put("a", new Uint8Array(20e6).fill(7));
        const sums = [];
        for (let i = 0; i < 150; i++) {
          sums.push(R2.get("a").then((object) => object.arrayBuffer()).then((bytes) => bytes.byteLength)); // none is kept
          await scheduler.wait(0);
        }
        return Response.json(new Set(await Promise.all(sums)).size);
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1", "--data", `${dir}/data`] }), seen = watch(t, server.pid);
  assert.equal(await server.text("/"), "1");
  assert.ok(seen.peak < 440 * MB, `${seen.peak >> 20} MB`);
});

const held = (name, code) => test(`M7: ${name} count for who began them`, { skip }, async (t) => {
  const dir = folder(t);
  write(dir, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]
[cairn.limits]\nmemory_bytes = ${300 * MB}\n`,
    "index.js": `import zlib from "node:zlib";\nconst kept = [];\nexport default { async fetch(request) {
        if (request.url.endsWith("/alive")) return new Response("alive");
        const bytes = new Uint8Array(1e5).fill(65), text = "x".repeat(10e6);
        for (let i = 0; i < 4000; i++) { ${code}; if (i % 8 === 0) await scheduler.wait(0); }
        return new Response("all");
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] }), seen = watch(t, server.pid);
  const deaf = net.createServer((socket) => socket.pause().on("error", () => {})).listen(0, "127.0.0.1");
  t.after(() => deaf.close());
  await once(deaf, "listening");
  assert.notEqual((await ask(server, "w", `/?http://127.0.0.1:${deaf.address().port}/`)).text, "all"); // refused, or ended
  for (let i = 0; i < 100 && (await ask(server, "w", "/alive")).text !== "alive"; i++) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal((await ask(server, "w", "/alive")).text, "alive");
  assert.ok(seen.peak < 330 * MB, `${seen.peak >> 20} MB`);
});
held("compressors of gzip", `const stream = new CompressionStream("gzip"), writer = stream.writable.getWriter(); writer.write(bytes).catch(() => {}); kept.push(stream);
  await Promise.race([stream.readable.getReader().read(), scheduler.wait(1)])`);
held("compressors of zstd", `const stream = zlib.createZstdCompress({ params: { [zlib.constants.ZSTD_c_compressionLevel]: 22, [zlib.constants.ZSTD_c_windowLog]: 27 } });
  kept.push(stream); await new Promise((resolve, reject) => stream.on("error", reject).write(bytes, () => resolve()))`);
held("compressors of brotli", `const stream = zlib.createBrotliCompress({ params: { [zlib.constants.BROTLI_PARAM_LGWIN]: 24 } });
  kept.push(stream); await new Promise((resolve, reject) => stream.on("error", reject).write(bytes, () => resolve()))`);
held("bodies of fetches", `const sent = fetch(request.url.slice(request.url.indexOf("?") + 1), { method: "POST", body: text });
  kept.push(sent); await Promise.race([sent, scheduler.wait(5)])`);

test("Q1: rows that statements sort count for their object, and are bounded; a neighbour's small ones go on", { skip }, async (t) => {
  const dir = folder(t);
  write(dir, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"
[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Box"]\n[cairn.limits]\nmemory_bytes = ${300 * MB}\n`,
    "index.js": `import { DurableObject } from "cloudflare:workers";\nconst kept = [];
      const rows = (n) => "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < " + n + ") SELECT n, randomblob(1000000) AS b FROM c ORDER BY b";
      export class Box extends DurableObject {
        sorts() { for (let i = 0; i < 10; i++) { const cursor = this.ctx.storage.sql.exec(rows(100)); cursor.next(); kept.push(cursor); } }
        small() { return this.ctx.storage.sql.exec("SELECT column1 AS n FROM (VALUES (1), (2)) ORDER BY -n").toArray().length; }
      }
      export default { async fetch(request, { BOX }) {
        if (request.url.endsWith("/small")) return new Response(String(await BOX.getByName("b").small()));
        try { await BOX.getByName("a").sorts(); return new Response("all"); } catch (error) { return new Response(error.message); }
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1", "--data", `${dir}/data`] }), seen = watch(t, server.pid);
  assert.match((await ask(server, "w", "/")).text, /SQLITE_NOMEM|memory/);
  assert.equal((await ask(server, "w", "/small")).text, "2");
  assert.ok(seen.peak < 330 * MB, `${seen.peak >> 20} MB`);
});

test("a single array past every bound is a RangeError, and the lane goes on", { skip }, async (t) => {
  const dir = folder(t);
  write(dir, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n',
    "index.js": `const all = {
        array: () => new Uint8Array(2 ** 32), text: () => "x".repeat(2 ** 30 - 25).at(-1), buffer: () => new ArrayBuffer(2 ** 33),
        floats: () => new Float64Array(2 ** 29).fill(1), list: () => new Array(2 ** 28).fill(0.5), joined: () => new Array(2 ** 29).join("xyz"),
      };
      export default { async fetch(request) {
        try { return Response.json(String(all[new URL(request.url).pathname.slice(1)]()).slice(0, 5)); } catch (error) { return Response.json(error.name); }
      } };`,
  });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  for (const name of ["array", "text", "buffer", "floats", "list", "joined"]) assert.match(await server.text(`/${name}`), /Error|exceeded a limit/, name);
});
