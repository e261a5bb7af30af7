// `make install` gives a cairn that needs nothing of the checkout but Node.js.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder, project, root, serve } from "../lib/cairn.mjs";

test("an installed cairn bundles and serves outside the checkout", async (t) => {
  const stage = folder(t);
  const made = spawnSync("make", ["-C", root, "install", `DESTDIR=${stage}`, "PREFIX=/usr"], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  // Moved, so that nothing can point back by an absolute path.
  const home = path.join(stage, "opt");
  mkdirSync(home);
  renameSync(path.join(stage, "usr"), path.join(home, "cairn"));
  const dir = project(t, { "src/index.ts": `export default { fetch: (): Response => new Response("installed") };` });
  const server = await serve(t, dir, { executable: path.join(home, "cairn/bin/cairn") });
  assert.equal(await server.text("/"), "installed");
  assert.equal((await server.stop()).code, 0);
});
