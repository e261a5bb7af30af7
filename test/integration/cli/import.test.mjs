// `cairn import`: what wrangler dev has stored (a recorded state, test/import/record.mjs) is the same here, told by the same script;
// the source is only read, nothing is overwritten, nothing comes twice, and hostile sources are told. `make test-import` is the long form.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { copyApp, describe, exportAll } from "../../import/simulator.mjs";
import { folder, root, run, serve } from "../lib/cairn.mjs";

const fixture = path.join(root, "test/import/fixture");
const expected = JSON.parse(readFileSync(path.join(fixture, "expected.json"), "utf8"));
const COUNT = expected.objects.length;

/** A copy of the application with what the simulator had stored. */
function recorded(t) {
  const dir = folder(t), state = path.join(dir, ".wrangler/state");
  copyApp(dir);
  mkdirSync(state, { recursive: true });
  execFileSync("tar", ["-xf", path.join(fixture, "state.tar.xz"), "-C", state]);
  return { dir, state: path.join(state, "v3") };
}

const filesBelow = (dir) => readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name)).sort();
const sums = (dir) => filesBelow(dir).map((file) => [file, createHash("sha256").update(readFileSync(file)).digest("hex")]);

/** Runs the import: {status, report: {kind: counts}, told: [line]}. */
function move(state, ...args) {
  const { status, stdout, stderr } = run(["import", state, "--json", ...args]);
  const lines = stdout.trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return { status, stderr, report: lines.at(-1)?.report, told: lines.slice(0, -1) };
}
const counts = ({ report }, outcome) => Object.fromEntries(Object.entries(report).map(([kind, of]) => [kind, of[outcome]]));
const none = { objects: 0, kv: 0, d1: 0, r2: 0, queues: 0 };

test("what wrangler dev has stored is the same here, and the source is only read", async (t) => {
  const { dir, state } = recorded(t), before = sums(state);
  const first = move(state);
  assert.equal(first.status, 0, first.stderr);
  const came = counts(first, "came");
  assert.deepEqual({ ...came, kv: 0, r2: 0 }, { ...none, objects: COUNT, d1: 1 });
  assert.deepEqual([came.kv, came.r2], [expected.services.kv.length, expected.services.r2.length]);
  assert.deepEqual(sums(state), before);
  assert.deepEqual(readdirSync(path.join(dir, ".cairn")).filter((name) => name.startsWith("import")), []);
  const verified = move(state, "--verify");
  assert.equal(verified.status, 0, verified.stderr);
  assert.deepEqual(counts(verified, "there"), came);
  const again = move(state);
  assert.deepEqual([again.status, counts(again, "came"), counts(again, "there")], [0, none, came]);
  const server = await serve(t, dir);
  assert.deepEqual(await describe(server.url, COUNT), expected);
  // The same objects by a stream, as the hosted platform would send them, to a server that has none: their ids are listed there.
  const there = folder(t), stream = path.join(there, "objects.ndjson"), sql = path.join(there, "things.sql");
  copyApp(there);
  writeFileSync(stream, await exportAll(server.url, expected));
  assert.equal((await fetch(`${server.url}/export`, { method: "POST", body: "{}" })).status, 403);
  for (const [at, ...args] of [[dir, "export", "things", "--output", sql], [there, "import", "things", sql]])
    assert.equal(run(["d1", ...args, "--config", at, "--data", path.join(at, ".cairn")]).status, 0);
  const sent = move(stream, "--project", there);
  assert.equal(sent.status, 0, JSON.stringify(sent.told));
  assert.deepEqual([sent.status, counts(sent, "came")], [0, { ...none, objects: COUNT }], JSON.stringify(sent.told));
  assert.deepEqual(counts(move(stream, "--project", there), "there"), { ...none, objects: COUNT });
  assert.deepEqual(counts(move(stream, "--project", there, "--verify"), "there"), { ...none, objects: COUNT });
  const second = await serve(t, there);
  assert.deepEqual((await describe(second.url, COUNT)).objects, expected.objects);
  await second.stop();
  // While a server runs nothing can come; what has changed since then differs.
  assert.match(move(state).stderr, /a server uses/);
  await (await fetch(`${server.url}/fill?from=1&to=2`, { method: "POST" })).text();
  await server.stop();
  const differs = move(state, "--verify");
  assert.deepEqual([differs.status, counts(differs, "conflict")], [1, { ...none, objects: 1 }]);
  const conflict = move(state);
  assert.deepEqual([conflict.status, conflict.told.map(({ outcome, kind }) => [outcome, kind])], [1, [["conflict", "objects"]]]);
  assert.equal(run(["check", path.join(dir, ".cairn")]).status, 0);
});

test("what cannot come is told by name, and the rest comes", (t) => {
  const { dir, state } = recorded(t);
  const rooms = path.join(state, "do/mover-Room"), [a, b, c, d] = readdirSync(rooms).filter((name) => /^[0-9a-f]{64}\.sqlite$/.test(name)).sort();
  rmSync(path.join(rooms, a));
  execFileSync("mkfifo", [path.join(rooms, a)]); // nobody writes into it
  writeFileSync(path.join(rooms, b), "no database".repeat(1000));
  rmSync(path.join(rooms, `${b}-wal`), { force: true });
  renameSync(path.join(rooms, c), path.join(dir, "elsewhere"));
  symlinkSync(path.join(dir, "elsewhere"), path.join(rooms, c)); // a link is no file of the source
  const kv = path.join(state, "kv", readdirSync(path.join(state, "kv")).find((name) => /^[0-9a-f]{32}$/.test(name)), "blobs");
  renameSync(kv, path.join(dir, "blobs")); // so is a folder that leads elsewhere
  symlinkSync(path.join(dir, "blobs"), kv);
  const forged = `${"0".repeat(64)}.sqlite`;
  cpSync(path.join(rooms, d), path.join(rooms, forged));
  cpSync(path.join(rooms, d), path.join(rooms, `${"x".repeat(200)}.sqlite`));
  mkdirSync(path.join(state, "do/mover-Gone"));
  const blobs = path.join(state, "r2/files/blobs"), [blob, other] = readdirSync(blobs);
  appendFileSync(path.join(blobs, blob), "more");
  rmSync(path.join(blobs, other));
  const result = move(state);
  assert.equal(result.status, 1);
  const told = result.told.filter(({ outcome }) => outcome === "failed").map(({ kind, what, why }) => `${kind} ${what}: ${why}`);
  const says = (pattern) => assert.ok(told.some((line) => pattern.test(line)), `${pattern} in ${told.join("\n")}`);
  says(new RegExp(`^objects mover/Room ${a.slice(0, 64)}: .* is no file`));
  says(new RegExp(`^objects mover/Room ${b.slice(0, 64)}: .*not a database`));
  says(/^objects mover\/Room 0{64}: the id is none of this class/);
  says(/^objects mover\/Room x+: its file is not named by an id/);
  says(/^objects mover-Gone: no worker/);
  says(/^kv .*: .* leads out of the source/);
  says(/^r2 files .*: its body has another size/);
  says(/^r2 files .*: its body cannot be read/);
  assert.equal(told.filter((line) => line.startsWith("objects")).length, 5);
  assert.equal(result.report.objects.came, COUNT - 3);
  const data = path.join(dir, ".cairn"), [ids] = readdirSync(path.join(data, "moved"));
  assert.equal(run(["check", data]).status, 0);
  writeFileSync(path.join(data, "moved", ids), "damaged");
  const checked = run(["check", data]);
  assert.equal(checked.status, 1);
  assert.match(checked.stdout + checked.stderr, /moved\/0000000\d\.ids is damaged/);
  assert.match(run(["import", state]).stderr, /is damaged: put it back/);
});

test("an import that is killed is gone on with", async (t) => {
  const { dir, state } = recorded(t), objects = path.join(dir, ".cairn/objects"), moved = path.join(dir, ".cairn/moved");
  for (const begun of [moved, objects, moved]) {
    const child = spawn(process.env.CAIRN ?? path.join(root, "build/cairn"), ["import", state], { stdio: "ignore" });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    while (!existsSync(begun) && child.exitCode === null) await new Promise(setImmediate);
    child.kill("SIGKILL");
    await ended;
  }
  const rest = move(state);
  assert.equal(rest.status, 0, rest.stderr);
  assert.equal(rest.report.objects.came + rest.report.objects.there, COUNT);
  assert.equal(move(state, "--verify").status, 0);
});

test("a source that is none, and a command line that is wrong, are refused", (t) => {
  const empty = folder(t);
  assert.match(run(["import", empty]).stderr, /has nothing that wrangler dev has stored/);
  assert.equal(run(["import"]).status, 2);
});
