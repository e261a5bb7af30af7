// The fuzzers of the whole server and the flips of its files (make fuzz-server, make flips), for a few seconds each.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";
import { cairn, root } from "../lib/server.mjs";
import { flip, prepare, randomOf } from "../../flips/flips.mjs";

for (const name of ["http", "websocket", "s3", "admin"])
  test(`${name}, a few hundred times`, () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(root, "test/fuzz/server", `${name}.mjs`), "2"], { encoding: "utf8", env: { ...process.env, CAIRN: cairn }, timeout: 120_000 });
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /\d+ executions/);
  });

test("a flipped bit in a server's files is found, and no answer is another", async () => {
  const seed = process.env.CAIRN_TEST_SEED ?? Date.now() % 1_000_000, random = randomOf(seed);
  const rig = await prepare();
  let found = 0;
  for (let i = 0; i < 8; i++) {
    try {
      found += (await flip(rig, random)).found;
    } catch (error) {
      throw new Error(`seed ${seed}, flip ${i}: ${error.message}`);
    }
  }
  assert.ok(found > 2, `seed ${seed}: ${found} of 8 found`);
});
