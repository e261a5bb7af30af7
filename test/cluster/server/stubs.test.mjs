// What is lent from node to node, and for how long (src/remote/leases.h): a node that dies lets go of all it held, and breaks what it has lent; one that was taken
// for dead and wakes up has no stubs; a cut between nodes breaks nothing.
import assert from "node:assert/strict";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };
const NODES = ["a", "b", "c"];
const names = Array.from({ length: 12 }, (_, i) => `n${i}`);

const project = {
  "wrangler.toml": `name = "stubs"
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
`,
  "index.js": `import { DurableObject, RpcTarget } from "cloudflare:workers";
class Thing extends RpcTarget {
  #name; #log;
  constructor(name, log) { super(); this.#name = name; this.#log = log; }
  ping() { return this.#name; }
  slow(ms) { return new Promise((resolve) => setTimeout(() => resolve(this.#name), ms)); }
  [Symbol.dispose]() { this.#log.push("disposed " + this.#name); }
}
const log = []; // of this worker's instance on its lane
let held = null; // a stub of another node's
let kept = null; // a promise that outlives its request
export class Room extends DurableObject {
  log = [];
  things = new Map();
  held = null;
  thing(name) { return new Thing(name, this.log); }
  said() { return this.log; }
  /** Keeps a stub that it was given. */
  async keep(stub) { this.held = stub.dup(); return await this.held.ping(); }
  use() { return this.held.ping(); }
  give() { return this.held.dup(); }
  drop() { this.held[Symbol.dispose](); this.held = null; }
  lines() {
    const { log } = this;
    let n = 0;
    return new ReadableStream({ async pull(controller) { await new Promise((resolve) => setTimeout(resolve, 20)); controller.enqueue(new TextEncoder().encode("line " + n++)); }, cancel() { log.push("cancelled"); } });
  }
  fetch() { return new Response(this.lines()); }
}
const parts = (error) => ({ message: error.message, remote: error.remote, retryable: error.retryable, reset: error.durableObjectReset });
const told = (promise) => promise.then((value) => ({ value }), (error) => ({ error: parts(error) }));
export default {
  async fetch(request, env) {
    const [, what, name, value] = new URL(request.url).pathname.split("/");
    const room = env.ROOM.getByName(name ?? "");
    switch (what) {
      case "id": return Response.json(String(env.ROOM.idFromName(name)));
      case "said": return Response.json(await room.said());
      case "log": return Response.json(log);
      case "hold": held = await room.thing(value); return Response.json(await held.ping());
      case "hold2": { const stub = await room.thing(value); held = stub; return Response.json(await held.ping()); }
      case "use": return Response.json(held === null ? { none: true } : await told(held.ping()));
      case "slow": return Response.json(held === null ? { none: true } : await told(held.slow(Number(value))));
      case "keep": return Response.json(await room.keep(new Thing(value, log)));
      case "used": return Response.json(await told(room.use()));
      case "pass": { using stub = await env.ROOM.getByName(value).thing("passed"); return Response.json(await room.keep(stub)); }
      case "given": { held = await room.give(); return Response.json(await held.ping()); }
      case "drop": return Response.json((await room.drop(), "dropped"));
      case "stream": return room.fetch("http://room/");
    }
    return new Response("?", { status: 404 });
  },
};
`,
};

// One lane each: what a worker keeps in a variable is there for the next request.
async function start(t) {
  const cluster = await Cluster.make(t, { project, args: ["--lanes", "1"] });
  for (const name of NODES) await cluster.start(name);
  await cluster.whole();
  const least = "SELECT coalesce(min(count), 0) FROM (SELECT count(*) FROM cairn.shard GROUP BY owner HAVING count(*) < 12) x";
  await until(async () => (await cluster.engine.tryAsk(least)) === "5", "shards are in balance: what an object has lent ends when it moves", 200_000);
  return cluster;
}

async function get(cluster, node, target) {
  const response = await fetch(cluster.nodes.get(node).url + target);
  const text = await response.text();
  assert.equal(response.status, 200, `${node} ${target}: ${text}`);
  return JSON.parse(text);
}

/** An object for each node, which owns it. */
async function owned(cluster) {
  const of = {};
  for (const name of names) of[await cluster.owner(name)] ??= name;
  for (const node of NODES) assert.ok(of[node], `${node} owns one of ${names}`);
  return of;
}

test("a node that dies lets go of what it held: disposers run where it was lent", options, async (t) => {
  const cluster = await start(t);
  const of = await owned(cluster);
  // b holds something of an object of a; so does c, for itself.
  assert.equal(await get(cluster, "b", `/hold/${of.a}/one`), "one");
  assert.equal(await get(cluster, "c", `/hold/${of.a}/two`), "two");
  // An object of b holds something of the worker on a; and something of an object of a that the worker on c gave it.
  assert.equal(await get(cluster, "a", `/keep/${of.b}/worker's`), "worker's");
  assert.deepEqual(await get(cluster, "a", `/used/${of.b}`), { value: "worker's" });
  assert.deepEqual(await get(cluster, "a", `/said/${of.a}`), []);
  assert.deepEqual(await get(cluster, "a", "/log"), []);
  // A body of an object of a is on its way to a client of b.
  const body = (await fetch(`${cluster.nodes.get("b").url}/stream/${of.a}`)).body.getReader();
  await body.read();
  const killed = Date.now();
  cluster.nodes.get("b").signal("SIGKILL");
  await until(async () => (await get(cluster, "a", `/said/${of.a}`)).length === 2, "the disposer and the stream's cancel ran", 10_000);
  t.diagnostic(`disposed ${Date.now() - killed} ms after kill -9`);
  assert.deepEqual((await get(cluster, "a", `/said/${of.a}`)).sort(), ["cancelled", "disposed one"]);
  await until(async () => (await get(cluster, "a", "/log")).length === 1, "what the worker has lent, too", 10_000);
  assert.deepEqual(await get(cluster, "a", "/log"), ["disposed worker's"]);
  // What c has lives.
  assert.deepEqual(await get(cluster, "c", "/use"), { value: "two" });
  await body.cancel().catch(() => {});
});

test("what was given on belongs to who has it, not to who gave it", options, async (t) => {
  const cluster = await start(t);
  const of = await owned(cluster);
  // The worker on c gives a thing of a's object to b's object, which duplicates it; then the worker on c asks b's object for it.
  assert.equal(await get(cluster, "c", `/pass/${of.b}/${of.a}`), "passed");
  assert.deepEqual(await get(cluster, "a", `/used/${of.b}`), { value: "passed" });
  assert.equal(await get(cluster, "c", `/given/${of.b}`), "passed");
  assert.equal(await get(cluster, "a", `/drop/${of.b}`), "dropped");
  assert.deepEqual(await get(cluster, "a", `/said/${of.a}`), []);
  cluster.nodes.get("b").signal("SIGKILL");
  await until(async () => (await cluster.engine.tryAsk("SELECT count(*) FROM cairn.session WHERE live")) === "2", "b is gone", 20_000);
  await new Promise((resolve) => setTimeout(resolve, 1000)); // nothing is to happen
  assert.deepEqual(await get(cluster, "c", "/use"), { value: "passed" });
  assert.deepEqual(await get(cluster, "a", `/said/${of.a}`), []);
  cluster.nodes.get("c").signal("SIGKILL");
  await until(async () => (await get(cluster, "a", `/said/${of.a}`)).length === 1, "its last holder is gone", 10_000);
});

test("a node that dies breaks what it has lent", options, async (t) => {
  const cluster = await start(t);
  const of = await owned(cluster);
  assert.equal(await get(cluster, "b", `/hold/${of.a}/object's`), "object's");
  assert.equal(await get(cluster, "a", `/keep/${of.c}/worker's`), "worker's");
  const slow = get(cluster, "b", `/slow/x/600000`);
  assert.deepEqual(await get(cluster, "b", "/use"), { value: "object's" }); // the slow one was sent before
  cluster.nodes.get("a").signal("SIGKILL");
  const { error } = await slow;
  assert.deepEqual(error, { message: "Network connection lost.", retryable: true, reset: true });
  // Of a worker: at once, and for ever. (The object lets the error out: so it is remote, too.)
  await until(async () => (await get(cluster, "b", `/used/${of.c}`)).error?.message === "The worker that this stub belongs to has ended.", "it is known", 10_000);
  assert.deepEqual((await get(cluster, "b", `/used/${of.c}`)).error, { message: "The worker that this stub belongs to has ended.", remote: true, retryable: true, reset: true });
  // Of an object: it lives elsewhere now, and has lent nothing there.
  const { error: gone } = await get(cluster, "b", "/use");
  assert.match(gone.message, /no longer running/);
  assert.equal(gone.remote, true);
  // A new stub works.
  assert.equal(await get(cluster, "b", `/hold/${of.a}/new`), "new");
  assert.deepEqual(await get(cluster, "b", "/use"), { value: "new" });
  // Its next life is not the one that has lent it.
  await cluster.start("a");
  await cluster.whole();
  assert.equal((await get(cluster, "b", `/used/${of.c}`)).error.reset, true);
});

test("a node that was taken for dead and wakes up has no stubs", options, async (t) => {
  const cluster = await start(t);
  const of = await owned(cluster);
  assert.equal(await get(cluster, "b", `/hold/${of.a}/frozen's`), "frozen's");
  assert.equal(await get(cluster, "c", `/hold/${of.a}/other's`), "other's");
  const frozen = cluster.nodes.get("b");
  frozen.signal("SIGSTOP");
  await until(async () => (await get(cluster, "a", `/said/${of.a}`)).length === 1, "its share is given back", 20_000);
  assert.deepEqual(await get(cluster, "a", `/said/${of.a}`), ["disposed frozen's"]);
  frozen.signal("SIGCONT");
  const { error } = await get(cluster, "b", "/use");
  assert.ok(error.reset && error.retryable || /no longer running|connection lost/.test(error.message), JSON.stringify(error));
  await until(async () => (await get(cluster, "b", "/use")).error.reset === true, "it knows that its session is over", 20_000);
  assert.deepEqual((await get(cluster, "b", "/use")).error, { message: "This stub has ended: its node was taken for dead meanwhile.", retryable: true, reset: true });
  // Nobody else's is touched, and new ones work.
  assert.deepEqual(await get(cluster, "c", "/use"), { value: "other's" });
  await cluster.whole();
  await until(async () => (await cluster.try("b", `/hold/${of.a}/new`)).value === "new", "it is a node again", 20_000);
  assert.deepEqual(await get(cluster, "b", "/use"), { value: "new" });
  assert.ok(!(await get(cluster, "a", `/said/${of.a}`)).includes("disposed other's"));
});
