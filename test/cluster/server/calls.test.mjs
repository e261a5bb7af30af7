// Calls from node to node: every node answers for every object, whichever has it. RPC, fetch, bodies, errors, stubs, functions, order; and what becomes of
// calls when nodes die, move their shards or reload in the middle.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { WebSocket } from "ws";
import { Cluster, sanitized } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const names = Array.from({ length: 12 }, (_, i) => `n${i}`);

const project = {
  "wrangler.toml": `name = "calls"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }]
[[durable_objects.bindings]]
name = "ROOM"
class_name = "Room"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]
[cairn.cluster]
shards = 16
`,
  "index.js": `import { DurableObject, RpcTarget } from "cloudflare:workers";
const VERSION = 1;
class Counter extends RpcTarget {
  #value;
  constructor(value) { super(); this.#value = value; }
  get value() { return this.#value; }
  add(n) { return (this.#value += n); }
  async through(f) { return await f(this.#value); }
}
export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT)");
  }
  all() { return [...this.ctx.storage.sql.exec("SELECT value FROM entry ORDER BY at")].map((row) => row.value); }
  add(value) { this.ctx.storage.sql.exec("INSERT INTO entry(value) VALUES (?)", String(value)); return this.all().length; }
  echo(...args) { return args; }
  version() { return VERSION; }
  fail(message) { throw Object.assign(new RangeError(message), { code: 7, detail: { a: [1] } }); }
  counter(value) { return new Counter(value); }
  async call(f, ...args) { return await f(...args); }
  async slow(ms) { await new Promise((resolve) => setTimeout(resolve, ms)); return "slept"; }
  async deep(n, names) {
    if (n === 0) return 0;
    return 1 + await this.env.ROOM.getByName(names[n % names.length]).deep(n - 1, names);
  }
  stream(count) {
    return new ReadableStream({ async pull(controller) {
      if (count-- > 0) controller.enqueue(new TextEncoder().encode("line " + count + ";"));
      else controller.close();
    } });
  }
  webSocketMessage(socket, message) { socket.send("room: " + message); }
  webSocketClose(socket, code) { socket.close(code); }
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/upload") {
      let bytes = 0, sum = 0;
      for await (const chunk of request.body) { bytes += chunk.length; for (let i = 0; i < chunk.length; i += 997) sum = (sum + chunk[i]) % 65521; }
      return Response.json({ bytes, method: request.method, header: request.headers.get("x-test") });
    }
    if (url.pathname === "/download") {
      let left = Number(url.searchParams.get("size"));
      return new Response(new ReadableStream({ pull(controller) {
        const size = Math.min(left, 65536);
        if (size === 0) return controller.close();
        left -= size;
        controller.enqueue(new Uint8Array(size).fill(left % 251));
      } }), { status: 201, headers: { "x-room": "yes" } });
    }
    if (url.pathname === "/socket") {
      const [client, server] = Object.values(new WebSocketPair());
      this.ctx.acceptWebSocket(server);
      return new Response(null, { status: 101, webSocket: client });
    }
    return new Response("room " + request.method + " " + url.pathname, { headers: { "set-cookie": "a=1" } });
  }
}
const parts = (error) => ({ name: error.name, message: error.message, code: error.code, detail: error.detail, remote: error.remote, retryable: error.retryable, overloaded: error.overloaded, reset: error.durableObjectReset });
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, what, name, value] = url.pathname.split("/");
    const room = env.ROOM.getByName(name ?? "");
    try {
      switch (what) {
        case "id": return Response.json(String(env.ROOM.idFromName(name)));
        case "burst": { // none waits for the one before
          const results = await Promise.allSettled(Array.from({ length: Number(value) }, (_, i) => room.add(url.searchParams.get("from") * 1 + i)));
          return Response.json(results.map(({ status, reason }) => (status === "fulfilled" ? true : parts(reason))));
        }
        case "add": return Response.json(await room.add(value));
        case "all": return Response.json(await room.all());
        case "version": return Response.json(await room.version());
        case "echo": return Response.json(await room.echo(1, "two", { three: [3n === 3n] }, new Date(4).getTime(), "x".repeat(Number(value ?? 0)).length));
        case "large": return Response.json((await room.echo(new Uint8Array(Number(value))))[0].length);
        case "fail": return Response.json(await room.fail(value));
        case "slow": return Response.json(await room.slow(Number(value)));
        case "counter": {
          using counter = await room.counter(5);
          const results = [await counter.add(1), await counter.add(2), await counter.value, await counter.through((n) => n * 10)];
          return Response.json(results);
        }
        case "call": {
          const seen = [];
          const result = await room.call(async (a, b) => { seen.push(a); return a + b; }, 3, 4);
          return Response.json([result, seen]);
        }
        case "given": { // a stub of one object, used by another
          using counter = await room.counter(100);
          const other = env.ROOM.getByName(value);
          return Response.json(await other.call((n) => counter.add(n), 11));
        }
        case "deep": return Response.json(await room.deep(Number(value), ${JSON.stringify(Array.from({ length: 12 }, (_, i) => `n${i}`))}));
        case "stream": return new Response(await room.stream(Number(value)));
        case "put": return Response.json((await env.KV.put(name, value), "put"));
        case "get": return Response.json(await env.KV.get(name));
        case "sql": {
          await env.DB.exec("CREATE TABLE IF NOT EXISTS entry(value TEXT PRIMARY KEY)");
          await env.DB.prepare("INSERT OR IGNORE INTO entry VALUES (?)").bind(name).run();
          return Response.json((await env.DB.prepare("SELECT value FROM entry ORDER BY value").all()).results.map((row) => row.value));
        }
        case "room": return await room.fetch(new Request("http://room/" + value + url.search, request));
      }
      return new Response("?", { status: 404 });
    } catch (error) {
      return Response.json(parts(error), { status: 500 });
    }
  },
};
`,
};

async function start(t, lanes = 2) {
  const cluster = await Cluster.make(t, { project, args: lanes === 2 ? [] : ["--lanes", String(lanes)] });
  for (const name of ["a", "b", "c"]) await cluster.start(name);
  await cluster.whole();
  const least = "SELECT coalesce(min(count), 0) FROM (SELECT count(*) FROM cairn.shard GROUP BY owner HAVING count(*) < 12) x";
  await until(async () => (await cluster.engine.tryAsk(least)) === "5", "shards are in balance: what an object has lent ends when it moves", 200_000);
  return cluster;
}

const NODES = ["a", "b", "c"];
/** The answer of a node, which must be one. */
async function get(cluster, node, target) {
  const response = await fetch(cluster.nodes.get(node).url + target);
  const text = await response.text();
  assert.equal(response.status, 200, `${node} ${target}: ${text}`);
  return JSON.parse(text);
}

/** A WebSocket to the room by the node, and what it has heard. */
async function connect(cluster, node, name) {
  const socket = new WebSocket(`${cluster.nodes.get(node).url.replace("http", "ws")}/room/${name}/socket`);
  const heard = [];
  const closed = new Promise((resolve) => socket.addEventListener("close", ({ code }) => resolve(code)));
  socket.addEventListener("message", ({ data }) => heard.push(data));
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error(`${node}: no WebSocket`)));
  });
  return { socket, heard, closed };
}

for (const lanes of [2, 1])
  test(`every node answers for every object (${lanes} lanes)`, options, async (t) => {
    const cluster = await start(t, lanes);
    for (const name of names) {
      for (const [i, node] of NODES.entries()) assert.equal(await get(cluster, node, `/add/${name}/${i}`), i + 1);
      for (const node of NODES) assert.deepEqual(await get(cluster, node, `/all/${name}`), ["0", "1", "2"]);
    }
    for (const node of NODES) {
      for (const name of names.slice(0, 6)) {
        assert.deepEqual(await get(cluster, node, `/echo/${name}/200000`), [1, "two", { three: [true] }, 4, 200000]);
        assert.equal(await get(cluster, node, `/large/${name}/${20 << 20}`), 20 << 20);
        assert.deepEqual(await get(cluster, node, `/counter/${name}`), [6, 8, 8, 80]);
        assert.deepEqual(await get(cluster, node, `/call/${name}`), [7, [3]]);
        const failed = await fetch(`${cluster.nodes.get(node).url}/fail/${name}/oops`);
        assert.deepEqual(await failed.json(), { name: "RangeError", message: "oops", code: 7, detail: { a: [1] }, remote: true });
        const plain = await fetch(`${cluster.nodes.get(node).url}/room/${name}/hello`, { method: "PUT", body: "x" });
        assert.equal(await plain.text(), "room PUT /hello");
        assert.equal(plain.headers.get("set-cookie"), "a=1");
        const lines = await (await fetch(`${cluster.nodes.get(node).url}/stream/${name}/20`)).text();
        assert.equal(lines.split(";").length, 21);
      }
      for (const other of names.slice(0, 6)) assert.equal(await get(cluster, node, `/given/n0/${other}`), 111);
      assert.equal(await get(cluster, node, "/deep/n1/20"), 20);
      const tooDeep = await (await fetch(`${cluster.nodes.get(node).url}/deep/n1/60`)).json();
      assert.match(tooDeep.message, /depth limit/);
      await get(cluster, node, `/put/key-${node}/value`);
    }
    for (const node of NODES)
      for (const name of names) {
        const { socket, heard, closed } = await connect(cluster, node, name);
        for (let i = 0; i < 20; i++) socket.send(String(i));
        await until(() => heard.length === 20, "echoes");
        assert.deepEqual(heard, Array.from({ length: 20 }, (_, i) => `room: ${i}`));
        socket.close(1000);
        assert.equal(await closed, 1000);
      }
    for (const node of NODES) for (const other of NODES) assert.equal(await get(cluster, node, `/get/key-${other}`), "value");
    for (const [i, node] of NODES.entries()) assert.equal((await get(cluster, node, `/sql/row-${node}`)).length, i + 1);
  });

test("bodies go through both ways, piece by piece", options, async (t) => {
  const cluster = await start(t);
  const size = 50 << 20;
  const memory = () => Math.max(...NODES.map((node) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${cluster.nodes.get(node).child.pid}/status`, "utf8"))[1]) / 1024));
  for (const node of NODES) await get(cluster, node, "/add/n0/x");
  const before = memory();
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, memory())), 50);
  for (const node of NODES)
    for (const name of names.slice(0, 3)) {
      let left = size;
      const body = new ReadableStream({ pull(controller) {
        const chunk = new Uint8Array(Math.min(left, 1 << 16)).fill(left % 251);
        left -= chunk.length;
        if (chunk.length === 0) controller.close();
        else controller.enqueue(chunk);
      } });
      const up = await fetch(`${cluster.nodes.get(node).url}/room/${name}/upload`, { method: "POST", body, duplex: "half", headers: { "x-test": "kept" } });
      assert.deepEqual(await up.json(), { bytes: size, method: "POST", header: "kept" });
      const down = await fetch(`${cluster.nodes.get(node).url}/room/${name}/download?size=${size}`);
      assert.equal(down.status, 201);
      assert.equal(down.headers.get("x-room"), "yes");
      let bytes = 0;
      for await (const chunk of down.body) bytes += chunk.length;
      assert.equal(bytes, size);
      // A client that goes away ends it there, too.
      const gone = new AbortController();
      const cut = await fetch(`${cluster.nodes.get(node).url}/room/${name}/download?size=${size * 20}`, { signal: gone.signal });
      await cut.body.getReader().read();
      gone.abort();
    }
  clearInterval(watch);
  // (A sanitizer keeps what was freed for a while.)
  assert.ok(most - before < (sanitized ? 1500 : 150), `${before} MB before, ${most} MB at most`);
});

test("calls in the middle of moves and deaths: in order, at most once, and nothing that was answered is lost", options, async (t) => {
  const cluster = await start(t);
  const others = (node) => NODES.filter((name) => name !== node);

  // Moves while calls are made that do not wait for each other: all are carried out, once, in order.
  let made = 0;
  for (let i = 0; i < 4; i++) {
    const owner = await cluster.owner("n0");
    const from = others(owner)[i % 2];
    const bursts = [];
    const shard = Buffer.from(await get(cluster, from, "/id/n0"), "hex").readBigUInt64LE(16) % 16n;
    const moved = cluster.command("move", String(shard), others(owner)[(i + 1) % 2]);
    for (let k = 0; k < 10; k++, made += 20) bursts.push(await get(cluster, from, `/burst/n0/20?from=${made}`));
    await moved; // or it is refused: a target without a replica
    assert.deepEqual(bursts.flat().filter((result) => result !== true), []);
    assert.deepEqual(await get(cluster, from, "/all/n0"), Array.from({ length: made }, (_, n) => String(n)));
  }

  // Its owner is killed: what was sent may have happened, and says so; what comes then waits for the next owner.
  const owner = await cluster.owner("n1");
  const [asker, third] = others(owner);
  await get(cluster, asker, "/add/n1/first");
  const slow = fetch(`${cluster.nodes.get(asker).url}/slow/n1/600000`);
  const { socket, closed } = await connect(cluster, asker, "n1");
  const kill = cluster.nodes.get(owner);
  await get(cluster, asker, "/all/n1"); // the slow one was sent before
  kill.signal("SIGKILL");
  const lost = await slow;
  assert.equal(lost.status, 500);
  const { message, retryable } = await lost.json();
  assert.deepEqual({ message, retryable }, { message: "Network connection lost.", retryable: true });
  assert.deepEqual(await get(cluster, third, "/all/n1"), ["first"]);
  assert.equal(await get(cluster, asker, "/add/n1/second"), 2);
  assert.equal(await closed, 1012);
  socket.terminate();

  // Who asks is killed in the middle: the others go on, and what it had asked for ends.
  await cluster.start(owner);
  await cluster.whole();
  const target = await cluster.owner("n2");
  const [victim, witness] = others(target);
  const under = Promise.allSettled(Array.from({ length: 30 }, (_, n) => get(cluster, victim, `/add/n2/${n}`)));
  cluster.nodes.get(victim).signal("SIGKILL");
  const results = await under;
  const all = await get(cluster, witness, "/all/n2");
  assert.equal(new Set(all).size, all.length); // at most once
  results.forEach(({ status }, n) => status === "fulfilled" && assert.ok(all.includes(String(n))));
  for (const name of names) await cluster.ask(`/all/${name}`, { order: [target, witness] });
});
