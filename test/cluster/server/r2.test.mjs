// R2 in a cluster: every acknowledged body is on two disks, byte for byte, whichever node is lost; what a disk has missed, lost or damaged comes back;
// what nobody refers to goes, on every disk.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 900_000 };
const BUCKETS = 4;
/** A sleep between two tries. */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const script = `export default {
  async fetch(request, env) {
    const url = new URL(request.url), [, what, bucket, key] = url.pathname.split("/");
    const r2 = env["R" + bucket];
    if (what === "list") return Response.json((await r2.list()).objects.map((object) => object.key));
    if (what === "multi") {
      const upload = await r2.createMultipartUpload(key), parts = [];
      for (let i = 1; i <= 3; i++) parts.push(await upload.uploadPart(i, new Uint8Array(i < 3 ? 5 << 20 : 100000).fill(i)));
      return Response.json((await upload.complete(parts)).size);
    }
    if (request.method === "PUT") return Response.json((await r2.put(key, request.body)).size);
    if (request.method === "DELETE") return Response.json((await r2.delete(key), "gone"));
    const range = request.headers.get("x-range");
    const object = await r2.get(key, range ? { range: { offset: Number(range.split("-")[0]), length: Number(range.split("-")[1]) } } : {});
    return object ? new Response(object.body) : new Response("none", { status: 404 });
  },
};
`;

/** Bytes that differ by name, and are the same each time. */
function bytes(name, size) {
  const out = Buffer.alloc(size);
  let seed = createHash("sha256").update(name).digest().readUInt32LE(0) | 1;
  for (let i = 0; i < size; i += 4) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    out.writeUInt32LE(seed, Math.min(i, size - 4));
  }
  return out;
}

async function make(t) {
  const cluster = await Cluster.make(t);
  const buckets = Array.from({ length: BUCKETS }, (_, i) => `[[r2_buckets]]\nbinding = "R${i}"\nbucket_name = "bucket-${i}"\n`).join("");
  writeFileSync(path.join(cluster.project, "wrangler.toml"), `name = "bodies"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${buckets}[cairn.cluster]\nshards = 16\n`);
  writeFileSync(path.join(cluster.project, "index.js"), script);
  return cluster;
}

/** One try at one node: {status, body}. */
async function request(cluster, node, method, target, { body, headers = {}, timeout = 20_000 } = {}) {
  const server = cluster.nodes.get(node);
  if (!server?.url || server.exit) return { status: 0 };
  try {
    const response = await fetch(server.url + target, { method, body, headers, signal: AbortSignal.timeout(timeout) });
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()), owner: response.headers.get("cairn-owner") };
  } catch (error) {
    return { status: 0, body: Buffer.from(String(error)) };
  }
}

/** Asks nodes in turn until one answers with one of these. */
async function ask(cluster, method, target, { want = [200], limit = 90_000, order = [...cluster.nodes.keys()], ...more } = {}) {
  let last;
  for (const deadline = Date.now() + limit; Date.now() < deadline; await pause(50))
    for (const node of order) {
      last = { node, ...(await request(cluster, node, method, target, more)) };
      if (want.includes(last.status)) return last;
    }
  throw new Error(`${method} ${target}: nobody answers: ${last.node} ${last.status} ${String(last.body).slice(0, 300)}`);
}

/** The files of bodies on a node's disk: id -> path. */
function bodies(cluster, node) {
  const found = new Map(), base = path.join(cluster.base, node, "blobs");
  for (const shard of existsSync(base) ? readdirSync(base) : [])
    if (/^\d+$/.test(shard))
      for (const folder of readdirSync(path.join(base, shard)))
        for (const id of readdirSync(path.join(base, shard, folder))) found.set(id, path.join(base, shard, folder, id));
  return found;
}

const union = (cluster, nodes) => new Set(nodes.flatMap((node) => [...bodies(cluster, node).keys()]));

/** By the engine, which disk has replicas of which shard: every body of a shard is on all of them. */
async function settled(cluster, nodes, count) {
  await until(async () => {
    const has = new Map(nodes.map((node) => [node, bodies(cluster, node)])), ids = new Set([...has.values()].flatMap((map) => [...map.keys()]));
    if (count !== undefined && ids.size !== count) return false;
    const rows = (await cluster.engine.tryAsk("SELECT string_agg(s.id || ':' || (SELECT string_agg(d.node, ',') FROM cairn.disk d WHERE d.id = ANY (s.disks)), ' ') FROM cairn.shard s")) ?? "";
    const replicas = new Map(rows.split(" ").map((row) => [Number(row.split(":")[0]), row.split(":")[1]?.split(",") ?? []]));
    for (const id of ids) {
      const shard = Buffer.from(id.slice(28), "hex").readUInt16LE(0), on = replicas.get(shard) ?? [];
      if (on.filter((node) => nodes.includes(node)).length < 2) return false;
      for (const node of nodes) if (has.get(node).has(id) !== on.includes(node)) return false;
    }
    return true;
  }, `every body is on the replicas of its shard, and nowhere else (${nodes}, ${count ?? "any number of"} bodies)`, 240_000);
}

test("bodies are put, read, in parts and in ranges, and deleted, as on one server", options, async (t) => {
  const cluster = await make(t);
  for (const name of ["a", "b", "c"]) await cluster.start(name);
  await cluster.whole();
  const sizes = [10, 20_000, 300_000, 3_000_000];
  for (let bucket = 0; bucket < BUCKETS; bucket++)
    for (const size of sizes) await ask(cluster, "PUT", `/r2/${bucket}/k${size}`, { body: bytes(`${bucket}k${size}`, size) });
  for (let bucket = 0; bucket < BUCKETS; bucket++)
    for (const size of sizes) {
      assert.ok((await ask(cluster, "GET", `/r2/${bucket}/k${size}`)).body.equals(bytes(`${bucket}k${size}`, size)), `${bucket} ${size}`);
      if (size > 1000) {
        const part = (await ask(cluster, "GET", `/r2/${bucket}/k${size}`, { headers: { "x-range": "777-5000" } })).body;
        assert.ok(part.equals(bytes(`${bucket}k${size}`, size).subarray(777, 5777)));
      }
    }
  assert.equal(String((await ask(cluster, "GET", "/multi/0/large")).body), String(10 * 2 ** 20 + 100_000));
  const large = (await ask(cluster, "GET", "/r2/0/large")).body;
  assert.equal(large.length, 10 * 2 ** 20 + 100_000);
  assert.deepEqual([large[0], large[5 << 20], large[10 << 20]], [1, 2, 3]);
  await settled(cluster, ["a", "b", "c"], BUCKETS * 3 + 3);
  // A body that is replaced or deleted goes from every disk, a minute later.
  await ask(cluster, "DELETE", "/r2/0/large");
  await ask(cluster, "PUT", "/r2/1/k20000", { body: bytes("other", 20_000) });
  assert.equal((await ask(cluster, "GET", "/r2/0/large", { want: [404] })).status, 404);
  await settled(cluster, ["a", "b", "c"], BUCKETS * 3);
  assert.ok((await ask(cluster, "GET", "/r2/1/k20000")).body.equals(bytes("other", 20_000)));
  for (const server of cluster.nodes.values()) assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);
});

/** A ledger of what was acknowledged. */
class Ledger {
  constructor(cluster) {
    this.cluster = cluster;
    this.kept = new Map(); // "bucket/key" -> size
    this.number = 0;
  }

  async put(size, order) {
    const name = `${this.number % BUCKETS}/k${++this.number}`;
    const { status } = await this.tryAll("PUT", name, size, order);
    if (status === 200) this.kept.set(name, size);
    return status === 200;
  }

  async tryAll(method, name, size, order = [...this.cluster.nodes.keys()]) {
    let last = { status: 0 };
    for (const node of order) {
      last = await request(this.cluster, node, method, `/r2/${name}`, { body: bytes(name, size), timeout: 8000 });
      if (last.status === 200) break;
    }
    return last;
  }

  /** Everything is there, byte for byte. */
  async check(order) {
    for (const [name, size] of this.kept) {
      const { body } = await ask(this.cluster, "GET", `/r2/${name}`, { order, want: [200, 404] });
      assert.ok(body.equals(bytes(name, size)), `${name} of ${size} bytes is ${body.length} bytes: ${String(body.subarray(0, 60))}`);
    }
  }

  /** How many bodies the buckets refer to. */
  async bodies() {
    let count = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) count += JSON.parse((await ask(this.cluster, "GET", `/list/${bucket}/`)).body).length;
    return count;
  }
}

test("nodes are killed in the middle of puts: what was acknowledged survives the loss of any one, and nothing else stays", options, async (t) => {
  const names = ["a", "b", "c"];
  const cluster = await make(t), ledger = new Ledger(cluster), over = { now: false };
  for (const name of names) await cluster.start(name);
  await cluster.whole();
  let tries = 0;
  const clients = Array.from({ length: 3 }, async (_, i) => {
    for (; !over.now; tries++) (await ledger.put(20_000 + 60_000 * ((ledger.number + i) % 8), names), await pause(150));
  });
  for (let i = 0; i < 6; i++) {
    const name = names[i % 3];
    await pause(1500 + 700 * i);
    cluster.nodes.get(name).signal("SIGKILL");
    await cluster.nodes.get(name).exited;
    await pause(i % 2 ? 4000 : 200);
    await cluster.start(name);
  }
  over.now = true;
  await Promise.all(clients);
  t.diagnostic(`${tries} puts, ${ledger.kept.size} acknowledged`);
  assert.ok(ledger.kept.size > 20);
  await cluster.whole();
  await ledger.check(names);
  await settled(cluster, names, await ledger.bodies());
  for (const victim of names) {
    cluster.nodes.get(victim).signal("SIGKILL");
    await cluster.nodes.get(victim).exited;
    await ledger.check(names.filter((name) => name !== victim));
    await cluster.start(victim);
    await cluster.whole();
    await settled(cluster, names);
  }
});

test("a disk that was away gets what it has missed, and loses what was deleted meanwhile", options, async (t) => {
  const names = ["a", "b", "c"];
  const cluster = await make(t), ledger = new Ledger(cluster);
  for (const name of names) await cluster.start(name);
  await cluster.whole();
  for (let i = 0; i < 16; i++) assert.ok(await ledger.put(30_000));
  await settled(cluster, names, 16);
  const victim = names.reduce((one, other) => (bodies(cluster, other).size > bodies(cluster, one).size ? other : one));
  const order = names.filter((name) => name !== victim);
  cluster.nodes.get(victim).signal("SIGKILL");
  await cluster.nodes.get(victim).exited;
  for (const name of [...ledger.kept.keys()].slice(0, 8)) {
    await ask(cluster, "DELETE", `/r2/${name}`, { order });
    ledger.kept.delete(name);
  }
  for (let i = 0; i < 8; i++) await until(() => ledger.put(40_000, order), "a put while a node is away");
  await until(() => union(cluster, order).size === 16, "what was deleted is gone from the others", 200_000);
  assert.ok([...bodies(cluster, victim).keys()].some((id) => !union(cluster, order).has(id)), "the disk that is away still has some");
  await cluster.start(victim);
  await cluster.whole();
  await settled(cluster, names, 16);
  await ledger.check(names);
});

test("a body that is damaged or missing on one disk is read from another, and repaired", options, async (t) => {
  const names = ["a", "b"];
  const cluster = await make(t), ledger = new Ledger(cluster);
  for (const name of names) await cluster.start(name);
  await cluster.whole();
  for (let i = 0; i < 8; i++) assert.ok(await ledger.put(300_000 + i));
  await settled(cluster, names, 8);
  const ids = [...bodies(cluster, "a").keys()].sort(), whole = new Map(ids.map((id) => [id, readFileSync(bodies(cluster, "a").get(id))]));
  for (const [i, id] of ids.entries()) {
    // On either disk: in the middle, in the checksums, in the footer, cut short; or the file is gone.
    const file = bodies(cluster, names[i % 2]).get(id), data = Buffer.from(whole.get(id));
    const at = [150_000, data.length - 30, data.length - 5, 0][(i >> 1) % 4];
    if (at) data[at] ^= 4;
    if (i === 7) rmSync(file);
    else writeFileSync(file, at ? data : data.subarray(0, 1000));
  }
  await ledger.check(names);
  // Who owns the index reads its own disk first: the other disk's damage is found when the index moves there.
  const servers = [...cluster.nodes.values()]; // those that are killed have said something, too
  for (const name of names) {
    cluster.nodes.get(name).signal("SIGKILL"); // after a moment without it the other one has everything, its own damage too
    await cluster.nodes.get(name).exited;
    servers.push(await cluster.start(name));
    await cluster.whole();
    await ledger.check(names);
  }
  await until(() => names.every((name) => ids.every((id) => bodies(cluster, name).has(id))), "all files are there again", 60_000);
  await settled(cluster, names, 8);
  const damaged = names.flatMap((name) => ids.filter((id) => !readFileSync(bodies(cluster, name).get(id)).equals(whole.get(id))));
  t.diagnostic(`${damaged.length} of 8 are damaged on a disk that nobody has read them from`);
  await until(() => servers.some(({ output }) => /is repaired/.test(output)), "something is said to be repaired", 60_000);
});

test("nodes are replaced: those that are emptied can be taken away with their disks", options, async (t) => {
  const cluster = await make(t), ledger = new Ledger(cluster), over = { now: false };
  for (const name of ["a", "b"]) await cluster.start(name);
  await cluster.whole();
  for (let i = 0; i < 24; i++) assert.ok(await ledger.put(i % 6 ? 100_000 : 2_000_000));
  for (const name of ["c", "d"]) await cluster.start(name);
  const client = (async () => {
    while (!over.now) (await ledger.put(50_000), await pause(100));
  })();
  for (const name of ["a", "b"]) {
    assert.equal((await cluster.command("drain", name)).code, 0);
    await until(async () => new RegExp(`^${name} +draining +0 +0 `, "m").test((await cluster.command("nodes")).stdout), `${name} is empty`, 300_000);
    cluster.nodes.get(name).signal("SIGKILL"); // its disk is gone at once
    await cluster.nodes.get(name).exited;
    rmSync(path.join(cluster.base, name), { recursive: true, force: true });
  }
  over.now = true;
  await client;
  t.diagnostic(`${ledger.kept.size} bodies`);
  await cluster.whole();
  await ledger.check(["c", "d"]);
  await settled(cluster, ["c", "d"], await ledger.bodies());
});

test("with one node alone a body is refused and can be put again; small ones lie in the index", options, async (t) => {
  const cluster = await make(t);
  await cluster.start("a");
  await cluster.whole(1);
  await ask(cluster, "PUT", "/r2/0/small", { body: bytes("small", 5000) });
  const refused = await ask(cluster, "PUT", "/r2/0/big", { body: bytes("big", 50_000), want: [503] });
  assert.match(String(refused.body), /can be reached at the moment; try again/);
  assert.equal(bodies(cluster, "a").size, 0);
  await cluster.start("b");
  await ask(cluster, "PUT", "/r2/0/big", { body: bytes("big", 50_000) });
  assert.ok((await ask(cluster, "GET", "/r2/0/big")).body.equals(bytes("big", 50_000)));
});
