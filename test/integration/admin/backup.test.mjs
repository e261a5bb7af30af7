// A backup of a server under load: the copy is whole, checks clean, and has everything that was
// acknowledged before it began, in every object a prefix of what was written.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { cairn, serve, tempDir } from "../lib/server.mjs";
import { ask, call, command, dir, objectPath } from "./lib.mjs";

/** Where copies go. The command writes them: a server in a sandbox (make integration SANDBOX=1) need not be told. */
const copiesDir = tempDir();
const env = {};
let copyCount = 0;
function copyDir() {
  const folder = path.join(copiesDir, String(copyCount++));
  mkdirSync(folder);
  return folder;
}

test("backup under write load, check, ledger comparison", async () => {
  const server = await serve(dir, { lanes: 2, env });
  const names = Array.from({ length: 12 }, (_, i) => `ledger ${i}`);
  const acknowledged = new Map(names.map((name) => [name, 0]));
  let working = true;
  const writers = names.map(async (name) => {
    while (working) {
      const { count } = await call(server, name, "add", String(acknowledged.get(name)));
      acknowledged.set(name, count);
    }
  });
  await server.untilTrue(() => [...acknowledged.values()].every((count) => count > 20), "some entries");
  const copies = [];
  for (let round = 0; round < 3; round++) {
    const before = new Map(acknowledged);
    const copy = path.join(copyDir(), "copy");
    const done = await command(server.data, "backup", copy);
    assert.equal(done.status, 0, done.stderr);
    assert.match(done.stdout, /files, \d+ bytes, as of commit \d+/);
    copies.push({ copy, before });
  }
  working = false;
  await Promise.all(writers);
  await server.stop();
  for (const { copy, before } of copies) {
    const check = await command(copy, "check");
    assert.equal(check.status, 0, check.stdout + check.stderr);
    assert.match(check.stdout, /12 objects .*clean/);
    for (const name of names) {
      const { stdout, stderr } = await command(copy, "objects", "sql", "app/Ledger", name, "SELECT text FROM entry ORDER BY id", "--json");
      const texts = stdout.trim().split("\n").map((line) => JSON.parse(line).text);
      assert.ok(texts.length >= before.get(name), `${name}: ${texts.length} of ${before.get(name)}; ${stderr}`);
      assert.deepEqual(texts, texts.map((_, i) => String(i)), name);
    }
  }
  // And the copy serves.
  const again = await serve(dir, { data: copies[2].copy });
  assert.ok((await call(again, names[0], "count")) >= copies[2].before.get(names[0]));
  await again.stop();
});

test("a folder that is not empty, or cannot be made, is refused", async () => {
  const server = await serve(dir, { lanes: 1, env });
  await call(server, "x", "add", "one");
  const full = copyDir();
  writeFileSync(path.join(full, "something"), "x");
  for (const target of [full, "/proc/nothing/here"]) {
    const done = await command(server.data, "backup", target);
    assert.equal(done.status, 1);
    assert.match(done.stderr, /^cairn: .+\n$/);
  }
  const sub = path.join(full, "sub");
  mkdirSync(sub);
  assert.equal((await command(server.data, "backup", sub)).status, 0);
  await server.stop();
});

test("a folder inside the data directory is refused, however it is named, and nothing is made there", async () => {
  const server = await serve(dir, { lanes: 1 });
  await call(server, "x", "add", "one");
  const link = path.join(tempDir(), "link");
  symlinkSync(server.data, link);
  mkdirSync(path.join(server.data, "empty"));
  const inside = [server.data, path.join(server.data, "copy"), path.join(server.data, "empty"), path.join(server.data, "objects", "copy"), path.join(link, "copy"), path.join(link, "empty"),
    `${server.data}/objects/../copy/`, `${path.dirname(server.data)}/./${path.basename(server.data)}//copy`];
  const before = readdirSync(server.data).sort();
  for (const target of inside) {
    const done = await command(server.data, "backup", target);
    assert.equal(done.status, 1, target);
    assert.match(done.stderr, /^cairn: .* is inside the data directory .*\n$/);
    const asked = await ask({ data: server.data }, "POST", "/api/backup", { body: { path: target } });
    assert.equal(asked.status, 400, target);
    assert.match(asked.json.error.message, /inside the data directory/);
  }
  assert.deepEqual(readdirSync(server.data).sort(), before);
  await server.stop();
  for (const target of inside) { // and without a server
    const done = await command(server.data, "backup", target);
    assert.equal(done.status, 1, target);
    assert.match(done.stderr, /is inside the data directory/);
  }
  // A folder beside it whose name begins as that of the data directory is none inside.
  assert.equal((await command(server.data, "backup", `${server.data}-copy`)).status, 0);
  assert.equal((await command(`${server.data}-copy`, "check")).status, 0);
  rmSync(`${server.data}-copy`, { recursive: true });
});

test("the folder is written by who calls: one that the server cannot write to, nor see", { skip: process.getuid() !== 0 && "needs root, to be two users" }, async () => {
  const root = tempDir(), data = path.join(root, "data"), mine = path.join(root, "mine"), source = path.join(root, "project");
  chmodSync(root, 0o755);
  for (const folder of [data, mine, source]) mkdirSync(folder, { mode: 0o700 });
  for (const file of ["wrangler.toml", "index.js"]) writeFileSync(path.join(source, file), readFileSync(path.join(dir, file)));
  const nobody = 65534;
  for (const each of [data, source, ...["wrangler.toml", "index.js"].map((file) => path.join(source, file))]) chownSync(each, nobody, nobody);
  const server = await serve(source, { data, lanes: 1, user: nobody, env: { HOME: data } });
  assert.equal(statSync(`/proc/${server.pid}`).uid, nobody);
  await call(server, "x", "add", "one");
  const target = path.join(mine, "copy");
  const done = await command(data, "backup", target);
  assert.equal(done.status, 0, done.stderr);
  assert.equal(statSync(path.join(target, "FORMAT")).uid, 0);
  assert.equal(statSync(target).mode & 0o777, 0o700);
  assert.match((await command(target, "check")).stdout, /1 objects .*clean/);
  // The call that names a path is the server's own, and says so.
  const asked = await ask({ data }, "POST", "/api/backup", { body: { path: path.join(mine, "other") } });
  assert.match(asked.json.error.message, /the server cannot write to .*: Permission denied/);
  await server.stop();
});

/** A server with some megabytes, so that a backup of it takes a moment. */
async function large() {
  const server = await serve(dir, { lanes: 1 });
  for (let i = 0; i < 24; i++) await call(server, `large ${i}`, "add", "x".repeat(500_000));
  return server;
}

/** That nothing takes the folder for a data directory. */
async function isNone(folder) {
  const check = await command(folder, "check");
  assert.equal(check.status, 3, check.stdout);
  assert.match(check.stderr, /not come to its end|no file FORMAT/);
  assert.equal((await command(folder, "objects", "list")).status, 1);
  await assert.rejects(serve(dir, { data: folder }), /not come to its end/);
}

test("a file that cannot be written is an error, and nothing is left", async () => {
  const server = await large();
  const existing = copyDir();
  for (const target of [path.join(copyDir(), "new"), existing]) {
    // No file may have more than 64 KiB: what a full disk does at a moment of its choice.
    const done = await new Promise((resolve) => execFile("bash", ["-c", `trap "" XFSZ; ulimit -f 64; exec "$@"`, "bash", cairn, "backup", target, "--data", server.data],
      (error, stdout, stderr) => resolve({ status: error?.code ?? 0, stdout, stderr })));
    assert.equal(done.status, 1, done.stdout);
    assert.match(done.stderr, /^cairn: .*File too large\n$/);
    assert.equal(existsSync(target), target === existing);
  }
  assert.deepEqual(readdirSync(existing), []);
  const good = await command(server.data, "backup", existing); // and the server makes another one
  assert.equal(good.status, 0, good.stderr);
  await server.stop();
});

test("a command that is killed leaves what is no backup; the server goes on", async () => {
  const server = await large();
  let killed = 0;
  for (let round = 0; killed < 3; round++) {
    assert.ok(round < 30, "it was never caught at work");
    const target = path.join(copyDir(), "copy");
    const child = spawn(cairn, ["backup", target, "--data", server.data], { stdio: "ignore" });
    const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal)));
    await server.untilTrue(() => existsSync(path.join(target, "UNFINISHED")), "it is at work");
    child.kill("SIGKILL");
    await ended;
    if (!existsSync(path.join(target, "UNFINISHED"))) continue; // it was quicker
    killed++;
    await isNone(target);
    assert.match((await command(server.data, "backup", target)).stderr, /is not empty/);
  }
  const good = path.join(copyDir(), "copy");
  await server.untilTrue(async () => (await command(server.data, "backup", good)).status === 0, "another one can be made");
  assert.equal((await command(good, "check")).status, 0);
  await server.stop();
});

test("a server that ends meanwhile ends the backup", async () => {
  const server = await large();
  const target = path.join(copyDir(), "copy");
  const done = command(server.data, "backup", target);
  await server.untilTrue(() => existsSync(path.join(target, "UNFINISHED")), "it is at work");
  server.signal("SIGKILL");
  const { status, stderr } = await done;
  if (status === 0) assert.equal((await command(target, "check")).status, 0); // it was quicker
  else assert.ok(/^cairn: .+\n$/.test(stderr) && !existsSync(target), stderr);
});

test("two backups into one folder: one of them, whole", async () => {
  const server = await large();
  const target = copyDir();
  const both = await Promise.all([command(server.data, "backup", target), command(server.data, "backup", target)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [0, 1]);
  assert.match(both.find(({ status }) => status === 1).stderr, /another backup is being written|is not empty/);
  assert.match((await command(target, "check")).stdout, /clean/);
  await server.stop();
});

test("an answer that nobody waits for is refused, and a question that nobody answers ends with its asker", async () => {
  const server = await serve(dir, { lanes: 1 });
  await call(server, "x", "add", "one");
  const late = await ask({ data: server.data }, "PUT", "/api/backup/stream/00000000000000000000000000000000", { text: "x" });
  assert.equal(late.status, 404);
  for (const target of ["/api/backup/stream", "/api/backup/stream?version=2"]) {
    const strange = await ask({ data: server.data }, "POST", target);
    assert.equal(strange.status, 400);
    assert.match(strange.json.error.message, /is for `cairn backup` of this server's version/);
  }
  const frames = await new Promise((resolve) => { // reads a question and goes
    const child = spawn("curl", ["-sN", "--unix-socket", path.join(server.data, "control.sock"), "-X", "POST", "http://localhost/api/backup/stream?version=1"], { stdio: ["ignore", "pipe", "ignore"] });
    let got = Buffer.alloc(0);
    child.stdout.on("data", (part) => { got = Buffer.concat([got, part]); if (got.length > 40 + 5) child.kill("SIGKILL"); });
    child.on("exit", () => resolve(got));
  });
  assert.equal(frames[4], "N".charCodeAt());
  const name = frames.subarray(5, 37).toString();
  await server.untilTrue(async () => (await ask({ data: server.data }, "PUT", `/api/backup/stream/${name}`, { text: "garbage" })).status === 404, "it is given up");
  assert.equal((await command(server.data, "backup", path.join(copyDir(), "copy"))).status, 0);
  await server.stop();
});

test("killed at any moment, during backups, restores and deletions too: nothing acknowledged is lost", async () => {
  const data = tempDir();
  const names = ["k0", "k1", "k2", "k3"];
  const acknowledged = new Map(names.map((name) => [name, 0]));
  for (let round = 0; round < 4; round++) {
    const server = await serve(dir, { data, lanes: 2, env });
    let killed = false, done = 0;
    const until = async (work) => { while (!killed) await work().catch(() => {}); };
    const writers = names.map((name) => until(async () => {
      const { count } = await call(server, name, "add", String(acknowledged.get(name)));
      if (count !== undefined) acknowledged.set(name, count);
      if (++done === 60 + 40 * round) { killed = true; server.signal("SIGKILL"); }
    }));
    const operations = [
      until(() => command(data, "backup", path.join(copyDir(), "copy"))),
      until(async () => {
        await call(server, "victim", "add", "x");
        const { json } = await ask({ data }, "GET", objectPath("victim"));
        await call(server, "victim", "add", "y");
        await ask({ data }, "POST", objectPath("victim", "/restore"), { body: { bookmark: json.bookmark } });
        await ask({ data }, "DELETE", objectPath("victim"));
      }),
    ];
    await Promise.all([...writers, ...operations]);
    await server.exited;
    const check = await command(data, "check");
    assert.equal(check.status, 0, check.stdout + check.stderr);
    for (const name of names) {
      const { stdout } = await command(data, "objects", "sql", "app/Ledger", name, "SELECT count(*) AS n FROM entry", "--json");
      const { n } = JSON.parse(stdout);
      // One more may have been committed, but not acknowledged.
      assert.ok(n === acknowledged.get(name) || n === acknowledged.get(name) + 1, `${name}: ${n} of ${acknowledged.get(name)}`);
      acknowledged.set(name, n);
    }
  }
});
