// A backup of a server under load: the copy is whole, checks clean, and has everything that was
// acknowledged before it began, in every object a prefix of what was written.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { serve, tempDir } from "../lib/server.mjs";
import { ask, call, command, dir, objectPath } from "./lib.mjs";

/** Where copies go; a server in a sandbox (make integration SANDBOX=1) has to be told. */
const copiesDir = tempDir();
const env = { CAIRN_SANDBOX_WRITE: copiesDir };
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
