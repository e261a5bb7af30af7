// How calls between nodes end when they do not end by themselves: a caller that goes away, a deadline, new code on either side, a node that is stopped. Whoever
// looks must not be able to tell whether the object was on another node.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const NODES = ["a", "b", "c"];

const config = `name = "ends"
main = "index.js"
compatibility_date = "2026-01-01"
[[durable_objects.bindings]]
name = "ROOM"
class_name = "Room"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]
[cairn.cluster]
shards = 16
`;
const code = (version) => `import { DurableObject } from "cloudflare:workers";
const VERSION = ${version};
export class Room extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.log = [];
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry(at INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT)");
  }
  said() { return this.log.splice(0); }
  all() { return [...this.ctx.storage.sql.exec("SELECT value FROM entry ORDER BY at")].map((row) => row.value); }
  add(value) { this.ctx.storage.sql.exec("INSERT INTO entry(value) VALUES (?)", String(value)); return VERSION; }
  version() { return VERSION; }
  async slow(ms) {
    this.log.push("begun");
    await new Promise((resolve) => setTimeout(resolve, ms));
    this.add("slept " + ms);
    return "slept";
  }
  watch(signal) {
    this.log.push("begun");
    return new Promise((resolve) => signal.addEventListener("abort", () => { this.log.push("aborted " + signal.reason.name); resolve("ended"); }));
  }
  async fetch(request) {
    const { pathname } = new URL(request.url);
    this.log.push("begun");
    if (pathname.startsWith("/pieces/")) {
      let left = Number(pathname.slice(8));
      return new Response(new ReadableStream({ async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (left-- === 0) controller.close();
        else controller.enqueue(new TextEncoder().encode("piece\\n"));
      } }));
    }
    if (pathname === "/down") {
      const { log } = this;
      return new Response(new ReadableStream({ async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        controller.enqueue(new Uint8Array(100_000));
      }, cancel() { log.push("cancelled"); } }));
    }
    if (pathname === "/up") {
      try {
        let bytes = 0;
        for await (const chunk of request.body) bytes += chunk.length;
        this.log.push("whole");
      } catch { this.log.push("cut"); }
      return new Response("up");
    }
    request.signal.addEventListener("abort", () => this.log.push("signal"));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    this.log.push("waited");
    return new Response("waited");
  }
}
const parts = (error) => ({ name: error.name, message: error.message, remote: error.remote, retryable: error.retryable, overloaded: error.overloaded, reset: error.durableObjectReset });
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, what, name, value] = url.pathname.split("/");
    const room = env.ROOM.getByName(name ?? "");
    try {
      switch (what) {
        case "id": return Response.json(String(env.ROOM.idFromName(name)));
        case "said": return Response.json(await room.said());
        case "all": return Response.json(await room.all());
        case "add": return Response.json(await room.add(value));
        case "version": return Response.json([VERSION, await room.version()]);
        case "slow": return Response.json(await room.slow(Number(value)));
        case "pieces": return await room.fetch("http://room/pieces/" + value);
        case "down": return await room.fetch("http://room/down");
        case "up": return await room.fetch("http://room/up", { method: "POST", body: request.body });
        case "wait": return await room.fetch("http://room/wait", { signal: request.signal });
        case "deadline": return await room.fetch("http://room/wait", { signal: AbortSignal.timeout(Number(value)) });
        case "abort": {
          const controller = new AbortController();
          setTimeout(() => controller.abort(new DOMException("enough", "AbortError")), Number(value));
          return Response.json(await room.watch(controller.signal));
        }
        case "burst": {
          const from = Number(url.searchParams.get("from"));
          const results = await Promise.allSettled(Array.from({ length: Number(value) }, (_, i) => room.add(from + i)));
          return Response.json(results.map(({ status, reason }) => (status === "fulfilled" ? true : parts(reason))));
        }
      }
    } catch (error) {
      return Response.json(parts(error), { status: 500 });
    }
    return new Response("?", { status: 404 });
  },
};
`;

async function start(t) {
  const cluster = await Cluster.make(t, { project: { "wrangler.toml": config, "index.js": code(1) } });
  for (const name of NODES) await cluster.start(name);
  await cluster.whole();
  const least = "SELECT coalesce(min(count), 0) FROM (SELECT count(*) FROM cairn.shard GROUP BY owner HAVING count(*) < 12) x";
  await until(async () => (await cluster.engine.tryAsk(least)) === "5", "shards are in balance", 200_000);
  return cluster;
}

async function get(cluster, node, target, status = 200) {
  const response = await fetch(cluster.nodes.get(node).url + target);
  const text = await response.text();
  assert.equal(response.status, status, `${node} ${target}: ${text}`);
  return JSON.parse(text);
}

/** What the object has said since it was asked last, once it has said this. */
async function said(cluster, node, name, last) {
  const all = [];
  await until(async () => (all.push(...(await get(cluster, node, `/said/${name}`))), all.includes(last)), `${node}: the object says ${last}, so far ${all}`, 10_000);
  return all;
}

test("who goes away ends what he has asked for, on another node as on his own", options, async (t) => {
  const cluster = await start(t);
  const name = "n0", owner = await cluster.owner(name), other = NODES.find((node) => node !== owner);
  let seen;
  for (const node of [owner, other]) {
    const { url } = cluster.nodes.get(node);
    const begun = () => until(async () => (await get(cluster, owner, `/said/${name}`)).includes("begun"), `${node}: it has begun`, 10_000);
    { // its client stops reading
      const gone = new AbortController();
      const response = await fetch(`${url}/down/${name}`, { signal: gone.signal });
      await response.body.getReader().read();
      gone.abort();
      assert.deepEqual((await said(cluster, owner, name, "cancelled")).filter((text) => text !== "begun"), ["cancelled"], node);
    }
    { // its client goes before there is an answer
      const gone = new AbortController();
      const waits = fetch(`${url}/wait/${name}`, { signal: gone.signal }).catch((error) => error.name);
      await begun();
      gone.abort();
      assert.equal(await waits, "AbortError");
      // As it is there: the signal of a client's own request ends nothing but that.
      (seen ??= await said(cluster, owner, name, "waited"));
      if (node !== owner) assert.deepEqual(await said(cluster, owner, name, "waited"), seen);
    }
    { // in the middle of what it sends
      const gone = new AbortController();
      const body = new ReadableStream({ async pull(controller) { await new Promise((resolve) => setTimeout(resolve, 10)); controller.enqueue(new Uint8Array(1000)); } });
      const sends = fetch(`${url}/up/${name}`, { method: "POST", body, duplex: "half", signal: gone.signal }).catch((error) => error.name);
      await begun();
      gone.abort();
      assert.equal(await sends, "AbortError");
      assert.deepEqual(await said(cluster, owner, name, "cut"), ["cut"], node);
    }
    // A deadline, a signal that is an argument.
    assert.equal((await get(cluster, node, `/deadline/${name}/100`, 500)).name, "TimeoutError");
    assert.deepEqual(await said(cluster, owner, name, "waited"), ["begun", "signal", "waited"], node);
    assert.equal(await get(cluster, node, `/abort/${name}/100`), "ended");
    assert.deepEqual(await said(cluster, owner, name, "aborted AbortError"), ["begun", "aborted AbortError"], node);
    // A call that nobody waits for is carried out, once.
    const gone = new AbortController();
    const slow = fetch(`${url}/slow/${name}/300`, { signal: gone.signal }).catch((error) => error.name);
    await begun();
    gone.abort();
    assert.equal(await slow, "AbortError");
    await until(async () => (await get(cluster, owner, `/all/${name}`)).length === (node === owner ? 1 : 2), `${node}: it was carried out`, 10_000);
  }
  assert.deepEqual(await get(cluster, other, `/all/${name}`), ["slept 300", "slept 300"]);
});

test("new code in the middle of calls, on either side", options, async (t) => {
  const cluster = await start(t);
  const name = "n1", owner = await cluster.owner(name), other = NODES.find((node) => node !== owner);
  const reload = async (node, version) => {
    writeFileSync(`${cluster.project}/index.js`, code(version));
    const server = cluster.nodes.get(node), from = server.output.length;
    server.signal("SIGHUP");
    await until(async () => (await get(cluster, node, `/version/${name}`))[0] === version, `${node} runs version ${version}: ${server.output.slice(from)}`, 30_000);
  };
  // Whoever called: he is replaced, and gets his answer.
  const slow = get(cluster, other, `/slow/${name}/1500`);
  await said(cluster, owner, name, "begun");
  await reload(other, 2);
  assert.equal(await slow, "slept");
  assert.deepEqual(await get(cluster, other, `/version/${name}`), [2, 1]);
  // Whoever is called: a caller there and one elsewhere are told the same.
  const near = fetch(`${cluster.nodes.get(owner).url}/slow/${name}/20000`), far = fetch(`${cluster.nodes.get(other).url}/slow/${name}/20000`);
  const both = [];
  await until(async () => (both.push(...(await get(cluster, owner, `/said/${name}`))), both.filter((text) => text === "begun").length === 2), "both have begun", 10_000);
  await reload(owner, 3);
  const [nearly, farther] = await Promise.all([near, far].map(async (response) => [(await response).status, await (await response).json()]));
  assert.deepEqual(farther, nearly);
  t.diagnostic(`a call to an object whose code is replaced: ${JSON.stringify(farther)}`);
  assert.deepEqual(await get(cluster, other, `/version/${name}`), [2, 3]);
  // Under load, both ends again and again: at most once, in order, and what was told to have happened has.
  let made = 0, over = false;
  const before = (await get(cluster, other, `/all/${name}`)).length, good = [];
  const load = (async () => {
    while (!over) {
      const results = await get(cluster, other, `/burst/${name}/20?from=${made}`);
      results.forEach((result, i) => {
        if (result === true) good.push(made + i);
        else assert.ok(result.reset || result.retryable, JSON.stringify(result));
      });
      made += 20;
    }
  })();
  for (let version = 4; version < 10; version++) await reload(version % 2 ? owner : other, version);
  over = true;
  await load;
  const all = (await get(cluster, other, `/all/${name}`)).slice(before).map(Number);
  assert.deepEqual(all, [...new Set(all)].sort((a, b) => a - b), "each once, in order");
  for (const number of good) assert.ok(all.includes(number), `${number} was acknowledged`);
  t.diagnostic(`${good.length} of ${made} calls succeeded during six reloads`);
});

test("a node that is drained lets streams of its objects end, for five seconds, and serves all else meanwhile", options, async (t) => {
  const cluster = await start(t);
  const name = "n4", owner = await cluster.owner(name), other = NODES.find((node) => node !== owner);
  const stream = async (node, pieces) => {
    const from = Date.now();
    let text = "";
    try {
      const response = await fetch(`${cluster.nodes.get(node).url}/pieces/${name}/${pieces}`);
      for await (const chunk of response.body) text += Buffer.from(chunk).toString();
      return { pieces: text.split("\n").length - 1, ms: Date.now() - from };
    } catch (error) {
      return { pieces: text.split("\n").length - 1, ms: Date.now() - from, error: String(error.cause ?? error) };
    }
  };
  // Three seconds and a half, read on either node; and without an end in time.
  const streams = [stream(owner, 35), stream(other, 35), stream(other, 400)];
  await said(cluster, other, name, "begun");
  const drained = await cluster.command("drain", owner);
  assert.equal(drained.code, 0, drained.stderr);
  let moved = false, made = 0, slowest = 0;
  const moves = until(async () => (await cluster.owner(name)) !== owner, "its shard has moved", 60_000).then(() => (moved = true));
  while (!moved) {
    const from = Date.now();
    assert.equal(await get(cluster, other, `/add/${name}/${made++}`), 1);
    slowest = Math.max(slowest, Date.now() - from);
  }
  await moves;
  const [near, far, endless] = await Promise.all(streams);
  for (const whole of [near, far]) assert.deepEqual([whole.pieces, whole.error], [35, undefined], JSON.stringify(whole));
  assert.ok(endless.error, "a stream without an end is cut");
  assert.deepEqual(await get(cluster, owner, `/all/${name}`), Array.from({ length: made }, (_, i) => String(i)));
  t.diagnostic(`${made} calls while it was drained, the slowest ${slowest} ms; the endless stream was cut after ${endless.ms} ms`);
});

test("a node that is stopped lets calls of other nodes end", options, async (t) => {
  const cluster = await start(t);
  const name = "n2", owner = await cluster.owner(name), [other, third] = NODES.filter((node) => node !== owner);
  const slow = get(cluster, other, `/slow/${name}/2500`);
  await said(cluster, other, name, "begun");
  let made = 0, over = false;
  const bad = [];
  const load = (async () => {
    while (!over) {
      const results = await get(cluster, third, `/burst/n3/10?from=${made}`);
      bad.push(...results.filter((result) => result !== true));
      made += 10;
    }
  })();
  const stopped = cluster.nodes.get(owner);
  stopped.signal("SIGTERM");
  assert.equal(await slow, "slept");
  await until(() => stopped.exit, "it has ended", 30_000);
  over = true;
  await load;
  assert.deepEqual(bad, []);
  assert.deepEqual(await get(cluster, other, `/all/${name}`), ["slept 2500"]);
  assert.deepEqual(await get(cluster, other, "/all/n3"), Array.from({ length: made }, (_, n) => String(n)));
  assert.doesNotMatch(stopped.output, /could not leave|requests were still running/);
});
