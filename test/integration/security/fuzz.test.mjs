// The fuzzers of the whole server and the flips of its files (make fuzz-server, make flips), for a few seconds each.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import path from "node:path";
import test from "node:test";
import { cairn, root } from "../lib/server.mjs";
import { brief } from "../../fuzz/server/lib.mjs";
import { flip, prepare, randomOf } from "../../flips/flips.mjs";

const SEED = 20260; // what this one finds, it finds always; the other is new each time, and in the message

for (const name of ["http", "websocket", "s3", "admin"])
  test(`${name}, a few hundred times`, () => {
    for (const seed of [SEED, Number(process.env.CAIRN_TEST_SEED ?? randomInt(2 ** 31))]) {
      const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(root, "test/fuzz/server", `${name}.mjs`), "1000n", String(seed)], { encoding: "utf8", env: { ...process.env, CAIRN: cairn }, timeout: 240_000 });
      const told = brief(stdout + stderr, 6000);
      assert.ok(status === 0, `node test/fuzz/server/${name}.mjs 1000n ${seed}: ${told}`);
      assert.match(told, /\d+ executions/);
    }
  });

test("what a fuzzer has found is told in a few lines, whatever was sent", () => {
  const told = brief(`PUT /a?k=${"x".repeat(30_000)} {"x-amz-meta-a":"${"ab".repeat(9000)}"}\n${"line\n".repeat(9000)}`);
  assert.ok(told.length < 2000 && told.startsWith("PUT /a?k=x{30000}"), told);
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
