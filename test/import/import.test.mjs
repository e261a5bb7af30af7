// The long form (`make test-import`): the real wrangler fills workerd with COUNT objects (named, unique, with stored ids), alarms, KV, D1
// and R2 in parts; `cairn import` is killed at random moments, gone on with, and everything is compared by the same script on both.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { performance } from "node:perf_hooks";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { cairn, serve, tempDir } from "../integration/lib/server.mjs";
import { describe, simulate } from "./simulator.mjs";

const COUNT = Number(process.env.COUNT ?? 1000), KILLS = Number(process.env.KILLS ?? 10), SEED = Number(process.env.CAIRN_TEST_SEED ?? 1);
const stream = path.join(tempDir(), "objects.ndjson"), dir = tempDir(), state = path.join(dir, ".wrangler/state/v3");
let expected, seconds;

const filesBelow = () => readdirSync(state, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name)).sort();
const sums = () => filesBelow().map((file) => [file, createHash("sha256").update(readFileSync(file)).digest("hex")]);

function move(data, ...args) {
  const begun = performance.now();
  const result = spawnSync(cairn, ["import", state, "--data", data, "--json", ...args], { encoding: "utf8", maxBuffer: 64 << 20 });
  const lines = result.stdout.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { ...result, seconds: (performance.now() - begun) / 1000, report: lines.at(-1)?.report, told: lines.slice(0, -1) };
}

test("the simulator is filled", async (t) => {
  expected = await simulate(process.env.WRANGLER, dir, COUNT, stream);
  assert.equal(expected.objects.length, COUNT);
  t.diagnostic(`${filesBelow().length} files`);
});

test("everything is the same here", async (t) => {
  const data = path.join(tempDir(), "data"), before = sums();
  const first = move(data);
  assert.equal(first.status, 0, first.stderr + first.stdout);
  assert.equal(first.report.objects.came, COUNT);
  ({ seconds } = first);
  assert.equal(first.report.kv.came, expected.services.kv.length);
  assert.equal(first.report.r2.came, expected.services.r2.length);
  const verified = move(data, "--verify");
  assert.equal(verified.status, 0, verified.stderr);
  assert.deepEqual(sums(), before);
  t.diagnostic(`${COUNT} objects, ${first.report.kv.came} keys, ${first.report.r2.came} R2 objects came in ${first.seconds.toFixed(1)} s, compared in ${verified.seconds.toFixed(1)} s`);
  const server = await serve([dir], { data });
  assert.deepEqual(await describe(server.url, COUNT), expected);
  await server.stop();
  assert.equal(spawnSync(cairn, ["check", data]).status, 0);
});

test("objects that workerd has exported are the same here", async (t) => {
  const data = path.join(tempDir(), "data");
  const d1 = spawnSync(cairn, ["import", state, "--data", data, "--json"]); // for the ids that are stored in D1; and its objects elsewhere:
  assert.equal(d1.status, 0);
  const fresh = path.join(tempDir(), "data"), sql = path.join(tempDir(), "things.sql");
  for (const args of [["export", "things", "--output", sql, "--data", data], ["import", "things", sql, "--data", fresh]])
    assert.equal(spawnSync(cairn, ["d1", ...args, "--config", dir]).status, 0);
  const begun = performance.now();
  const sent = spawnSync(cairn, ["import", stream, "--project", dir, "--data", fresh, "--json"], { encoding: "utf8" });
  assert.equal(sent.status, 0, sent.stdout + sent.stderr);
  t.diagnostic(`a stream of ${COUNT} objects came in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  const server = await serve([dir], { data: fresh });
  assert.deepEqual((await describe(server.url, COUNT)).objects, expected.objects);
  await server.stop();
});

test(`an import that is killed ${KILLS} times is gone on with`, async (t) => {
  const data = path.join(tempDir(), "data");
  let random = SEED, killed = 0;
  for (let n = 0; n < KILLS; n++) {
    random = (random * 48271) % 0x7fffffff;
    const child = spawn(cairn, ["import", state, "--data", data], { stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    // Any moment is good; those of the time that a whole run takes hit all of its parts.
    await Promise.race([ended, pause((random / 0x7fffffff) * seconds * 1000)]);
    if (child.exitCode === null && child.kill("SIGKILL")) killed++;
    await ended;
  }
  const rest = move(data);
  assert.equal(rest.status, 0, rest.stderr);
  assert.equal(rest.report.objects.came + rest.report.objects.there, COUNT);
  assert.equal(move(data, "--verify").status, 0);
  const server = await serve([dir], { data });
  assert.deepEqual(await describe(server.url, COUNT), expected);
  await server.stop();
  assert.equal(spawnSync(cairn, ["check", data]).status, 0);
  t.diagnostic(`killed ${killed} times (CAIRN_TEST_SEED=${SEED}); the last run had ${rest.report.objects.came} objects left`);
});

test("a full disk ends it with a sentence, and it is gone on with when there is room", { skip: process.getuid() !== 0 && "needs root: mounts a file system" }, (t) => {
  const mount = tempDir();
  assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", "size=12m", "tmpfs", mount]).status, 0);
  t.after(() => spawnSync("umount", ["-l", mount]));
  const data = path.join(mount, "data");
  mkdirSync(data);
  const full = move(data);
  assert.equal(full.status, 1);
  assert.match(full.stderr + full.stdout, /No space left|full/);
  assert.equal(spawnSync("mount", ["-o", "remount,size=1g", mount]).status, 0);
  const rest = move(data);
  assert.equal(rest.status, 0, rest.stderr);
  assert.equal(move(data, "--verify").status, 0);
  rmSync(data, { recursive: true });
});
