// A body of R2 that was damaged on disk, sent as the response's body without JavaScript (src/service/r2/natives_pipe.c):
// the answer is cut, the script is told why, and the server lives. Runs under sanitizers too (make san-quick).
import assert from "node:assert/strict";
import { closeSync, existsSync, openSync, readdirSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";

const SIZE = 3 << 20; // several pieces

const worker = `
export default {
  async fetch(request, env) {
    const [, what, key] = new URL(request.url).pathname.split("/");
    if (what === "put") return Response.json(await env.BUCKET.put(key, request.body) !== null);
    const object = await env.BUCKET.get(key);
    return new Response(object.body);
  },
};`;

test("R2-1 a damaged body is cut where the damage is; other answers go on", async (t) => {
  const data = tempDir();
  const dir = project({ "wrangler.json": JSON.stringify({ name: "r", main: "index.js", compatibility_date: "2026-01-01", r2_buckets: [{ binding: "BUCKET", bucket_name: "b" }] }), "index.js": worker });
  const server = await serve(dir, { data });
  t.after(() => server.kill());
  for (const key of ["whole", "torn"]) {
    const put = await fetch(`${server.url}/put/${key}`, { method: "POST", body: Buffer.alloc(SIZE, key) });
    assert.equal(put.status, 200);
  }
  const folders = server.directories.map((folder) => path.join(folder, "blobs")).filter(existsSync);
  const blobs = folders.flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => path.join(folder, name))).filter((file) => statSync(file).isFile());
  assert.ok(server.nodes ? blobs.length >= 4 : blobs.length === 2, String(blobs)); // a cluster has each twice, or once more
  for (const at of [SIZE / 2, 1000]) {
    for (const file of blobs) {
      const fd = openSync(file, "r+");
      writeSync(fd, Buffer.from([0, 1, 2, 3]), 0, 4, at);
      closeSync(fd);
    }
    for (let i = 0; i < 3; i++) {
      await assert.rejects(async () => {
        const answer = await fetch(`${server.url}/get/torn`);
        if (answer.status !== 200) throw new Error("refused");
        await answer.arrayBuffer();
      }, "a damaged body came whole");
    }
  }
  await server.until(/(blob [0-9a-f]{32}|a body of shard \d+) is damaged/);
  assert.equal((await fetch(`${server.url}/put/new`, { method: "POST", body: "x" })).status, 200);
  assert.equal(await (await fetch(`${server.url}/get/new`)).text(), "x");
  assert.equal(server.exit, undefined);
});
