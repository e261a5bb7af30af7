// A rolling upgrade: nodes of an older build (CAIRN_OLD; `make upgrade-test` builds one) are replaced one after the other by this one, while
// clients write. Nothing that was acknowledged is missing, and the cluster answers all the time.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Server, cairn } from "../../integration/lib/server.mjs";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const old = process.env.CAIRN_OLD;
const skip = absent || (!old && "CAIRN_OLD is not set: make upgrade-test");
const NAMES = ["a", "b", "c"];

class Mixed extends Cluster {
  async run(name, binary) {
    const data = `${this.base}/${name}`;
    const child = spawn("setpriv", ["--pdeathsig=KILL", binary, "serve", this.project, "--listen", "127.0.0.1:0", "--lanes", "2", "--data", data,
      "--cluster", this.url(name), "--node", name, "--peer", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_ADMIN: "off" } });
    const server = new Server(child, data);
    this.nodes.set(name, server);
    await server.ready;
  }
}

test("old nodes are replaced by new ones, one after the other, and back to the old while both are there", { skip, timeout: 900_000 }, async (t) => {
  const cluster = Object.setPrototypeOf(await Cluster.make(t), Mixed.prototype);
  const config = path.join(cluster.project, "wrangler.toml");
  writeFileSync(config, readFileSync(config, "utf8").replace(/^reads = .*\n/m, "") // a key that older builds may not know
    .replace("max_batch_size = 10\nmax_batch_timeout = 1", "max_batch_size = 1\nmax_batch_timeout = 0"));
  // Batches that take a while are many at a time, and new nodes give them to others, whichever build those are.
  const index = path.join(cluster.project, "index.js"), code = readFileSync(index, "utf8");
  writeFileSync(index, code.replace("for (const message of batch.messages)", "await new Promise((resolve) => setTimeout(resolve, 300));\n    for (const message of batch.messages)"));
  assert.notEqual(readFileSync(index, "utf8"), code);
  for (const name of NAMES) await cluster.run(name, old);
  await cluster.whole();
  const minor = () => cluster.engine.ask("SELECT minor FROM cairn.cluster");
  const before = Number(await minor());

  // Clients that write all the time; what was answered must be there in the end.
  const objects = Array.from({ length: 12 }, (_, i) => `o${i}`), kept = new Map(objects.map((name) => [name, []]));
  const sent = [], ended = []; // messages that were acknowledged; nodes that were replaced
  let ending = false, longest = 0;
  const writers = objects.map(async (name, i) => {
    for (let n = 0; !ending; n++) {
      const value = `${i}-${n}`, from = performance.now();
      await cluster.ask(`/add/${name}/${value}`, { limit: 120_000 });
      await cluster.ask(`/send/${value}`, { limit: 120_000 });
      sent.push(value);
      longest = Math.max(longest, performance.now() - from);
      kept.get(name).push(value);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  writers.forEach((writer) => writer.catch(() => {})); // told below

  const replace = async (name, binary) => {
    const node = cluster.nodes.get(name), count = () => [...kept.values()].reduce((sum, list) => sum + list.length, 0);
    assert.deepEqual(await node.stop(), { code: 0, signal: null }, node.output);
    ended.push(node);
    await cluster.run(name, binary);
    await cluster.whole();
    const had = count();
    await until(() => count() > had + objects.length, `writes go on after ${name}`, 120_000);
  };
  await replace("a", cairn);
  assert.ok(Number(await minor()) >= before);
  await replace("b", cairn);
  await replace("a", old); // a step back: the engine's tables are those of the new one, and the old one works with them
  await replace("a", cairn);
  await replace("c", cairn);
  ending = true;
  await Promise.all(writers);

  let total = 0;
  for (const [name, values] of kept) {
    const { value } = await cluster.ask(`/all/${name}`);
    const there = new Set(value);
    assert.deepEqual(values.filter((one) => !there.has(one)), [], `acknowledged writes of ${name} are missing`);
    total += values.length;
  }
  assert.ok(total > 100);
  const delivered = () => new Set([...ended, ...cluster.nodes.values()].flatMap(({ output }) => [...output.matchAll(/delivered ([\d-]+)\./g)].map(([, value]) => value)));
  await until(() => { const there = delivered(); return sent.every((value) => there.has(value)); }, "every message that was acknowledged is delivered", 120_000);
  const by = [...cluster.nodes].map(([name, { output }]) => `${name} ${output.match(/delivered /g)?.length ?? 0}`);
  t.diagnostic(`${total} writes, all there; ${sent.length} messages, all delivered (by the last three nodes: ${by.join(", ")}); the slowest took ${Math.round(longest)} ms with its tries; tables of minor version ${before}, then ${await minor()}`);
  for (const server of cluster.nodes.values()) assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);
});
