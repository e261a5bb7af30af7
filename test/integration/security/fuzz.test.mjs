// The fuzzers of the whole server and the flips of its files (make fuzz-server, make flips), for a few seconds each.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";
import { cairn, root } from "../lib/server.mjs";
import { brief } from "../../fuzz/server/lib.mjs";
import { flip, prepare, randomOf } from "../../flips/flips.mjs";

// What this one finds, it finds always; others are for `make fuzz-server` and `make flips`, or CAIRN_TEST_SEED.
const SEED = Number(process.env.CAIRN_TEST_SEED ?? 20260);

for (const name of ["http", "websocket", "s3", "admin"])
  test(`${name}, a few hundred times`, () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(root, "test/fuzz/server", `${name}.mjs`), "1000n", String(SEED)], { encoding: "utf8", env: { ...process.env, CAIRN: cairn }, timeout: 240_000 });
    const told = brief(stdout + stderr, 6000);
    assert.ok(status === 0, `node test/fuzz/server/${name}.mjs 1000n ${SEED}: ${told}`);
    assert.match(told, /\d+ executions/);
  });

test("what a fuzzer has found is told in a few lines, whatever was sent", () => {
  const told = brief(`PUT /a?k=${"x".repeat(30_000)} {"x-amz-meta-a":"${"ab".repeat(9000)}"}\n${"line\n".repeat(9000)}`);
  assert.ok(told.length < 2000 && told.startsWith("PUT /a?k=x{30000}"), told);
});

test("a flipped bit in a server's files is found, and no answer is another", async () => {
  const random = randomOf(SEED);
  const rig = await prepare();
  let found = 0;
  for (let i = 0; i < 8; i++) {
    try {
      found += (await flip(rig, random)).found;
    } catch (error) {
      throw new Error(`seed ${SEED}, flip ${i}: ${error.message}`);
    }
  }
  assert.ok(found > 2, `seed ${SEED}: ${found} of 8 found`);
});
