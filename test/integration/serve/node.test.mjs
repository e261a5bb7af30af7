// What node: modules keep for one request: /tmp and the current directory (F1 of prelude/node/internal/vfs.js,
// W1 of cwd.js); the globals that nodejs_compat_v2 brings.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve } from "../lib/server.mjs";

let server;
before(async () => {
  server = await serve(project({
    "wrangler.toml": `name = "node"
main = "index.js"
compatibility_date = "2026-01-01"
compatibility_flags = ["nodejs_compat_v2", "enable_nodejs_process_v2"]
`,
    "index.js": `
import fs from "node:fs";
process.chdir("/dev");
const waiting = new Map();
export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/globals") return Response.json([typeof process.env, typeof Buffer.from, global === globalThis, process.cwd()]);
    const before = [fs.readdirSync("/tmp"), process.cwd()];
    const name = url.searchParams.get("name");
    fs.writeFileSync("/tmp/" + name, name);
    process.chdir("/tmp");
    // Two requests are under way at once: the second lets the first go on.
    if (url.pathname === "/first") await new Promise((resolve) => waiting.set("first", resolve));
    else waiting.get("first")?.();
    await null;
    return Response.json({ before, after: fs.readdirSync("/tmp"), cwd: process.cwd() });
  },
};`,
  }), { lanes: 1 });
});
after(() => server.stop());

const ask = async (path) => (await fetch(server.url + path)).json();

test("node/globals_of_compat_v2", async () => {
  assert.deepEqual(await ask("/globals"), ["object", "function", true, "/bundle"]);
});

test("node/tmp_and_cwd_belong_to_one_request", async () => {
  for (const name of ["a", "b"]) {
    assert.deepEqual(await ask(`/alone?name=${name}`), { before: [[], "/bundle"], after: [name], cwd: "/tmp" });
  }
});

test("node/requests_at_once_have_tmp_of_their_own", async () => {
  const first = ask("/first?name=one");
  // Until the first waits, a second does not let it go: then another one does.
  let answer;
  const done = first.then((value) => (answer = value));
  while (answer === undefined) {
    assert.deepEqual((await ask("/second?name=two")).after, ["two"]);
    await Promise.race([done, new Promise((resolve) => setImmediate(resolve))]);
  }
  assert.deepEqual(answer, { before: [[], "/bundle"], after: ["one"], cwd: "/tmp" });
});
