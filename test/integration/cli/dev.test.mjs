// Flags of wrangler that `cairn dev` takes.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder, project, run, serve } from "../lib/cairn.mjs";

const files = {
  "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[[kv_namespaces]]\nbinding = "KV"\n`,
  "index.js": `let last = null; export default {
  async fetch(request, env) { await env.KV.put("k", "v"); return Response.json([last, await env.KV.get("k")]); },
  scheduled(controller) { if (controller.cron === "bad") throw new Error("no"); last = controller.cron; },
};`,
};

test("--local, --persist-to and --test-scheduled", async (t) => {
  const dir = project(t, files), data = path.join(folder(t), "kept");
  const server = await serve(t, dir, { command: "dev", args: ["--local", "--persist-to", data, "--test-scheduled"] });
  assert.equal(await server.text("/__scheduled?cron=*+*+*+*+*"), "Ran scheduled event");
  assert.deepEqual(await (await server.fetch("/")).json(), ["* * * * *", "v"]);
  const bad = await server.fetch("/__scheduled?cron=bad");
  assert.deepEqual([bad.status, await bad.text()], [500, "exception"]);
  await server.stop();
  assert.ok(existsSync(data));
  assert.ok(!existsSync(path.join(dir, ".cairn")));
});

test("--cluster needs a node's name and address, those need a cluster, and dev has none of them", (t) => {
  const dir = project(t, files);
  const url = "--cluster=postgresql:///x?host=/nowhere";
  for (const [why, ...flags] of [
    ["none is given", "--node=a"], ["none is given", "--peer=127.0.0.1:1"], ["needs a name that no other has", url],
    ["needs a name that no other has", url, "--node=a b", "--peer=127.0.0.1:1"], ["needs an address", url, "--node=a"], ["needs an address", url, "--node=a", "--peer=x"],
    ["in a sandbox cannot be a node", url, "--node=a", "--peer=127.0.0.1:1", "--sandbox"],
  ]) {
    const result = run(["serve", dir, ...flags]);
    assert.deepEqual([result.status, result.stderr.includes(why)], [1, true], result.stderr);
    assert.match(run(["dev", dir, flags[0]]).stderr, /unknown option/);
  }
  const bad = run(["serve", dir, "--cluster=nonsense", "--node=a", "--peer=127.0.0.1:0"]);
  assert.match(bad.stderr, /^cairn: .*: the connection string of the cluster is none that PostgreSQL's client library understands\n$/);
});

test("--remote is refused with the reason, in dev alone", (t) => {
  const dir = project(t, files);
  const result = run(["dev", dir, "--remote"]);
  assert.equal(result.status, 2);
  assert.match(result.stderr, /^cairn: --remote: workers run on this machine and on no other; [^\n]+\n$/);
  for (const flag of ["--remote", "--persist-to=x", "--local", "--test-scheduled"]) assert.match(run(["serve", dir, flag]).stderr, /unknown option/);
});
