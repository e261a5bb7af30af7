// What node: modules keep for one request: /tmp and the current directory (F1 of prelude/node/internal/vfs.js,
// W1 of cwd.js); the globals that nodejs_compat_v2 brings. At each date at which something of node: changes: a project of one server each.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { nodeDates } from "../lib/dates.mjs";
import { Connection, project, serve } from "../lib/server.mjs";

let server;
before(async () => {
  server = await serve(nodeDates.map((date) => project({
    "wrangler.toml": `name = "node-${date}"
main = "index.js"
compatibility_date = "${date}"
compatibility_flags = ["nodejs_compat"]
routes = ["${date}.test/*"]
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
  })), { lanes: 1 });
});
after(() => server.stop());

async function ask(date, path) {
  const connection = new Connection(server.port);
  try {
    return JSON.parse((await connection.get(path, { headers: { host: `${date}.test` } })).text);
  } finally {
    connection.close();
  }
}
/** The current directory of a request's start: wrangler's bundler has the root where the platform has no process yet. */
const home = (date) => (date < "2025-09-15" ? "/" : "/bundle");
for (const date of nodeDates) {

  test(`node/globals_of_compat_v2 (${date})`, async () => {
    assert.deepEqual(await ask(date, "/globals"), ["object", "function", true, home(date)]);
  });

  test(`node/tmp_and_cwd_belong_to_one_request (${date})`, async () => {
    for (const name of ["a", "b"]) {
      assert.deepEqual(await ask(date, `/alone?name=${name}`), { before: [[], home(date)], after: [name], cwd: "/tmp" });
    }
  });

  test(`node/requests_at_once_have_tmp_of_their_own (${date})`, async () => {
    const first = ask(date, "/first?name=one");
    // Until the first waits, a second does not let it go: then another one does.
    let answer;
    const done = first.then((value) => (answer = value));
    while (answer === undefined) {
      assert.deepEqual((await ask(date, "/second?name=two")).after, ["two"]);
      await Promise.race([done, new Promise((resolve) => setImmediate(resolve))]);
    }
    assert.deepEqual(answer, { before: [[], home(date)], after: ["one"], cwd: "/tmp" });
  });
}
