// The commands on a server elsewhere: login, deploy --server, versions, rollback, secret, delete, d1 and queues.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test from "node:test";
import { folder, project, root, run, write } from "../lib/cairn.mjs";
import { cairn } from "../lib/server.mjs";
import { Client, dataFolder, empty, token } from "./lib.mjs";

// (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
const wasm = Buffer.from("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b", "hex");

/** A server, and a person with a home of their own who has logged in to it. */
async function setup(t, { scope } = {}) {
  const data = dataFolder(t);
  const home = folder(t);
  const server = await empty(t, data);
  const who = token(data, "laptop", scope);
  const env = { HOME: home, XDG_CONFIG_HOME: "" };
  const login = type(["login", server.admin], `CLOUDFLARE_API_TOKEN=${who.token}\nCLOUDFLARE_ACCOUNT_ID=x\n`, env);
  assert.equal(login.status, 0, login.stderr);
  const cli = (args, options = {}) => run(args, { ...options, env: { ...env, ...options.env } });
  return { data, home, server, who, cli, env, client: new Client(server, who) };
}

/** Runs a command with something on its standard input. */
function type(args, input, env, cwd) {
  const result = spawnSync(cairn, args, {
    input, cwd, encoding: "utf8", timeout: 120_000,
    env: { PATH: process.env.PATH, CAIRN_ADMIN: "off", ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? "", ...env },
  });
  if (result.error) throw result.error;
  return result;
}

const good = (result) => {
  assert.equal(result.status, 0, `${result.stdout}${result.stderr}`);
  return result.stdout;
};

const counter = `
import { DurableObject } from "cloudflare:workers";
import { Buffer } from "node:buffer";
import note from "./note.txt";
import module from "./add.wasm";
import bytes from "./some.bin";
import helper from "./helper.cjs";
export class Counter extends DurableObject {
  async next() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return n; }
}
const { add } = new WebAssembly.Instance(module).exports;
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") throw new Error("from the source");
    if (pathname === "/db") return Response.json((await env.DB.prepare("SELECT 1 + 1 AS two").all()).results);
    if (pathname === "/kv") { await env.KV.put("k", "v"); return new Response(await env.KV.get("k")); }
    return Response.json({
      n: await env.COUNTER.getByName("x").next(), note: note.trim(), sum: add(2, 3), bytes: new Uint8Array(bytes).length,
      text: env.TEXT, json: env.JSON_VAR, secret: env.SECRET ?? null, helper: helper(Buffer.from("é")),
    });
  },
};`;

const files = {
  "wrangler.toml": `
name = "shop"
main = "src/index.js"
compatibility_date = "2026-01-01"
compatibility_flags = ["nodejs_compat"]
[vars]
TEXT = "plain"
JSON_VAR = { deep = [1, 2] }
[[durable_objects.bindings]]
name = "COUNTER"
class_name = "Counter"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Counter"]
[[d1_databases]]
binding = "DB"
database_name = "orders"
[[kv_namespaces]]
binding = "KV"
[assets]
directory = "public"
[triggers]
crons = ["*/5 * * * *"]
`,
  ".dev.vars": "SECRET=of-the-laptop\n",
  "src/index.js": counter,
  "src/note.txt": "a note\n",
  "src/some.bin": "12345",
  "src/add.wasm": wasm,
  "src/helper.cjs": `const util = require("node:util"); module.exports = (b) => util.format("%d", b.length);`,
  "public/page.html": "<h1>page</h1>",
  "public/_headers": "/page\n  X-Own: yes\n",
};

test("deploy --server: bundled here, with everything that belongs to it; secrets of the laptop stay there", async (t) => {
  const { server, cli, client } = await setup(t);
  const dir = project(t, files);
  const out = good(cli(["deploy", "--server", server.admin, "--message", "first", "--tag", "one"], { cwd: dir }));
  assert.match(out, /Created the D1 database orders/);
  assert.match(out, /Created the KV namespace shop-kv/);
  assert.match(out, /COUNTER +durable_object_namespace: Counter/);
  assert.match(out, /Deployed shop to http:/);
  assert.match(out, /shop\.localhost/);
  assert.match(out, /schedule: \*\/5/);
  const [, version] = out.match(/Current Version ID: ([0-9a-f-]{36})/);
  assert.deepEqual(await (await server.fetch("/")).json(),
    { n: 1, note: "a note", sum: 5, bytes: 5, text: "plain", json: { deep: [1, 2] }, secret: null, helper: "2" });
  assert.deepEqual(await (await server.fetch("/db")).json(), [{ two: 2 }]);
  assert.equal(await server.text("/kv"), "v");
  const page = await server.fetch("/page");
  assert.equal(page.headers.get("x-own"), "yes");
  assert.match(await page.text(), /page/);
  const { items } = await client.result("GET", "workers/scripts/shop/versions");
  assert.equal(items[0].id, version);
  assert.equal(items[0].annotations["workers/message"], "first");
  assert.equal(items[0].annotations["workers/tag"], "one");
  assert.equal(items[0].metadata.author_email, "laptop");
  // Where an error is from: the source, through the map of the upload.
  await server.fetch("/throw");
  await server.until(/src\/index\.js:\d+/);

  // Again: nothing new to make, no file of assets to send, the migration is not applied twice.
  const again = good(cli(["deploy", dir, "--server", `${server.admin}/`]));
  assert.doesNotMatch(again, /Created/);
  assert.match(again, /0 new files of assets/);
  assert.equal((await (await server.fetch("/")).json()).n, 2);
  write(dir, { "wrangler.toml": files["wrangler.toml"].replace('tag = "v1"', 'tag = "other"') });
  const lost = cli(["deploy", dir, "--server", server.admin]);
  assert.equal(lost.status, 1);
  assert.match(lost.stderr, /at the migration "v1" on the server/);
});

test("deploy --server refuses what an upload cannot carry, and tells what is wrong with a version", async (t) => {
  const { server, cli } = await setup(t);
  const refused = (extra, pattern, more = {}) => {
    const dir = project(t, { "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${extra}`, "index.js": "export default {};", ...more });
    const result = cli(["deploy", "--server", server.admin], { cwd: dir });
    assert.equal(result.status, 1);
    assert.match(result.stderr, pattern);
  };
  refused(`[cairn.modules]\nm = "m.so"\n`, /objects in C .* cannot be uploaded: a module is machine code with all the rights of the server/);
  refused("", /late.*\[code: 10021\]/s, { "index.js": "throw new Error('late'); export default {};" });
  refused("", /does not build/, { "index.js": "export default {" });
  const dir = project(t, { "index.js": "export default {};" });
  assert.match(cli(["deploy", "--server", "ftp://x"], { cwd: dir }).stderr, /the address of a server is like/);
  assert.match(cli(["deploy", "--server", "http://example.com:1"], { cwd: dir }).stderr, /not sent over plain HTTP/);
  assert.match(cli(["deploy", "--server", `${server.admin}/x`], { cwd: dir }).stderr, /without a path/);
  assert.match(cli(["deploy", "--server", "http://127.0.0.1:1"], { cwd: dir }).stderr, /there is no token for/);
  assert.match(cli(["deploy", "--server", "http://127.0.0.1:1"], { cwd: dir, env: { CAIRN_API_TOKEN: "cairn_x" } }).stderr, /127\.0\.0\.1:1/);
  const dry = good(cli(["deploy", "--server", server.admin, "--dry-run"], { cwd: dir }));
  assert.match(dry, /nothing was sent/);
  assert.equal((await server.fetch("/")).status, 404);
});

test("deploy --server of a Workers Site, in both syntaxes: its files are in KV, sent once, and an earlier version keeps its own", async (t) => {
  const { server, cli } = await setup(t);
  const config = (name) => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[site]\nbucket = "public"\nexclude = ["*.map"]\n`;
  const files = { "public/index.html": "<h1>one</h1>", "public/deep/data.bin": "\x00\x01 bytes", "public/a.map": "not sent" };
  const dir = project(t, {
    "wrangler.toml": config("site"), ...files,
    "index.js": `import manifest from "__STATIC_CONTENT_MANIFEST";
      export default { async fetch(request, env) {
        const key = JSON.parse(manifest)[new URL(request.url).pathname.slice(1)];
        return key ? new Response(await env.__STATIC_CONTENT.get(key, "arrayBuffer")) : new Response("no such file", { status: 404 });
      } };`,
  });
  assert.match(good(cli(["deploy", "--server", server.admin], { cwd: dir })), /__STATIC_CONTENT/);
  assert.equal(await server.text("/index.html"), "<h1>one</h1>");
  assert.equal(await server.text("/deep/data.bin"), "\x00\x01 bytes");
  assert.equal((await server.fetch("/a.map")).status, 404);
  write(dir, { "public/index.html": "<h1>two</h1>" });
  good(cli(["deploy", "--server", server.admin], { cwd: dir }));
  assert.equal(await server.text("/index.html"), "<h1>two</h1>");
  good(cli(["rollback", "--yes"], { cwd: dir }));
  assert.equal(await server.text("/index.html"), "<h1>one</h1>");
  good(cli(["delete", "--name", "site", "--yes"]));

  const old = project(t, {
    "wrangler.toml": config("older"), ...files,
    "index.js": `addEventListener("fetch", (event) => event.respondWith(answer(event.request)));
      async function answer(request) {
        const key = JSON.parse(__STATIC_CONTENT_MANIFEST)[new URL(request.url).pathname.slice(1)];
        return new Response(key ? await __STATIC_CONTENT.get(key) : "no such file");
      }`,
  });
  good(cli(["deploy", "--server", server.admin], { cwd: old }));
  assert.equal(await server.text("/index.html"), "<h1>one</h1>");
});

test("versions upload, list, view, deploy; rollback", async (t) => {
  const { server, cli, data } = await setup(t);
  const dir = project(t, { "index.js": `export default { fetch: () => new Response("one") };` });
  good(cli(["deploy", "--server", server.admin], { cwd: dir }));
  write(dir, { "index.js": `export default { fetch: (_, env) => new Response("two " + env.X) };` });
  // The server that was logged in to last is the one that is meant.
  const uploaded = good(cli(["versions", "upload", "--var", "X=y", "--tag", "t2", "--message", "second"], { cwd: dir }));
  const [, id] = uploaded.match(/Version ID: (\S+)/);
  assert.equal(await server.text("/"), "one");
  const list = good(cli(["versions", "list", "--json"], { cwd: dir })).trim().split("\n").map(JSON.parse);
  assert.deepEqual(list.map((v) => v.annotations["workers/tag"]), ["t2", undefined]);
  assert.match(good(cli(["versions", "list", "w"])), /laptop.*t2 +second/);
  assert.match(good(cli(["versions", "view", id], { cwd: dir })), /X +plain_text +text="y"/);
  good(cli(["versions", "deploy", id, "--name", "w", "--message", "go"]));
  assert.equal(await server.text("/"), "two y");
  assert.match(good(cli(["deployments", "status", "w"])), new RegExp(`go\n +100%  ${id}`));
  assert.equal(good(cli(["deployments", "list", "w", "--json"])).trim().split("\n").length, 2);
  const asked = cli(["rollback"], { cwd: dir });
  assert.deepEqual([asked.status, asked.stderr], [1, "cairn: nothing was done; --yes does it unasked\n"]);
  good(cli(["rollback", "--yes"], { cwd: dir }));
  assert.equal(await server.text("/"), "one");
  // And without a token, on the machine of the server.
  good(run(["rollback", id, "--yes", "--name", "w", "--data", data]));
  assert.equal(await server.text("/"), "two y");
  good(cli(["versions", "deploy", `${list[1].id}@30`, id, "--name", "w"]));
  assert.match(good(cli(["deployments", "status", "w"])), new RegExp(`70%  ${id}[^]* 30%  ${list[1].id}`));
  for (const [args, pattern] of [
    [["versions", "view", "nothing", "--name", "w"], /no such version/],
    [["versions", "deploy", `${id}@50`, "--name", "w"], /100 % together/],
    [["versions", "deploy", `${id}@x`, "--name", "w"], /a number from 0 to 100/],
    [["versions", "list", "nobody"], /does not exist/],
    [["rollback", "--yes", "--name", "../w"], /does not exist|no such/],
  ]) {
    const result = cli(args);
    assert.equal(result.status, 1, args.join(" "));
    assert.match(result.stderr, pattern);
  }
  assert.equal(cli(["versions"]).status, 2);
  assert.equal(cli(["versions", "destroy"]).status, 2);
});

test("secret put, list, bulk, delete: values come on standard input and are shown by nobody; delete", async (t) => {
  const { server, cli, env, client } = await setup(t);
  const dir = project(t, { "index.js": `export default { fetch: (_, env) => Response.json([env.A ?? null, env.B ?? null, env.C ?? null]) };` });
  good(cli(["deploy", "--server", server.admin], { cwd: dir }));
  const seen = async () => (await server.fetch("/")).json();
  good(type(["secret", "put", "A"], "first\n", env, dir));
  assert.deepEqual(await seen(), ["first", null, null]);
  good(type(["secret", "bulk"], JSON.stringify({ B: "two\nlines", C: "c" }), env, dir));
  assert.deepEqual(await seen(), ["first", "two\nlines", "c"]);
  write(dir, { more: "# a file\nA=again\nC='quoted'\n" });
  good(cli(["secret", "bulk", "more"], { cwd: dir }));
  assert.deepEqual(await seen(), ["again", "two\nlines", "quoted"]);
  const names = good(cli(["secret", "list", "--name", "w"]));
  assert.deepEqual(names.trim().split("\n").sort(), ["A", "B", "C"]);
  good(cli(["secret", "delete", "B", "--yes"], { cwd: dir }));
  good(type(["secret", "bulk"], `{"C":null}`, env, dir));
  assert.deepEqual(await seen(), ["again", null, null]);
  assert.doesNotMatch(good(cli(["versions", "list"], { cwd: dir })), /again/);
  assert.equal(cli(["secret", "put"]).status, 2);
  assert.equal(type(["secret", "bulk"], `{"C":1}`, env, dir).status, 1);
  // A deployment keeps them: no configuration has them.
  good(cli(["deploy", "--server", server.admin], { cwd: dir }));
  assert.deepEqual(await seen(), ["again", null, null]);
  assert.equal(cli(["delete"], { cwd: dir }).status, 1);
  await client.deploy("caller", "export default { fetch() { return new Response(); } };", { metadata: { bindings: [{ type: "service", name: "W", service: "w" }] } });
  assert.match(cli(["delete", "w", "--yes"]).stderr, /caller cannot be served without w/);
  good(cli(["delete", "w", "--force"]));
  assert.equal((await client.ask("GET", "workers/services/w")).status, 404);
  assert.match(cli(["delete", "w", "--yes"]).stderr, /does not exist/);
});

test("d1 list and create, queues create and delete, on a server elsewhere", async (t) => {
  const { server, cli, data } = await setup(t);
  const at = ["--server", server.admin];
  assert.match(good(cli(["d1", "create", "people", ...at])), /database_id = "[0-9a-f-]{36}"\ndatabase_name = "people"/);
  assert.match(good(cli(["d1", "list", ...at])), /people +[0-9a-f-]{36}/);
  assert.match(cli(["d1", "create", "people", ...at]).stderr, /already|exists|taken|code: 7502/);
  assert.match(good(cli(["queues", "create", "jobs", "--data", data])), /queue = "jobs"/);
  assert.match(good(cli(["queues", "list", ...at])), /jobs +[0-9a-f]{32}/);
  assert.match(cli(["queues", "delete", "jobs", ...at]).stderr, /nothing was done/);
  good(cli(["queues", "delete", "jobs", "--force", ...at]));
  assert.match(cli(["queues", "delete", "jobs", "--force", ...at]).stderr, /there is no queue jobs/);
  const nobody = folder(t);
  assert.match(cli(["d1", "create", "x", "--data", nobody]).stderr, /no server runs on the data directory/);
});

test("login keeps a token per server in a file that nobody else can read, and only a good one (N1, N3)", async (t) => {
  const { server, cli, env, home, who, data } = await setup(t);
  const file = path.join(home, ".config/cairn/servers.json");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), { servers: [{ url: server.admin, token: who.token }] });
  assert.match(good(cli(["whoami"])), /You are laptop on http:/);
  assert.deepEqual(JSON.parse(good(cli(["whoami", "--json"]))), { server: server.admin, token: "laptop", account: who.account });
  const wrong = type(["login", server.admin], "cairn_0123\n", env);
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /does not know this token/);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).servers[0].token, who.token);
  assert.equal(type(["login", server.admin], "\n", env).status, 1);
  assert.equal(type(["login"], "", env).status, 2);
  // A second token replaces the first; by another spelling of the same address too.
  const other = token(data, "ci", "read");
  assert.equal(type(["login", `${server.admin.replace("http", "HTTP")}/client/v4/`], "", { ...env, CAIRN_API_TOKEN: other.token }).status, 0);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).servers.length, 1);
  assert.match(good(cli(["whoami"])), /You are ci/);
  // What it may not do is the server's to say.
  const dir = project(t, { "index.js": "export default {};" });
  const denied = cli(["deploy", "--server", server.admin], { cwd: dir });
  assert.equal(denied.status, 1);
  assert.match(denied.stderr, /the token is not good for this request/);
  chmodSync(file, 0o644);
  assert.match(cli(["whoami"]).stderr, /others may read it/);
  chmodSync(file, 0o600);
  writeFileSync(file, "{ broken");
  assert.match(cli(["whoami"]).stderr, /servers\.json/);
  writeFileSync(file, JSON.stringify({ servers: [{ url: server.admin, token: other.token }] }));
  good(cli(["logout"]));
  assert.match(cli(["whoami"]).stderr, /which server\?/);
  assert.match(cli(["logout", server.admin]).stderr, /there is no login/);
  good(run(["whoami", "--data", data]));
});

test("a token goes to no other address: redirects are not followed, and what is no API is told (K1, K2)", async (t) => {
  const home = folder(t);
  const seen = [];
  const listen = (handler) => new Promise((resolve) => {
    const server = http.createServer(handler).listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}`));
    t.after(() => server.close());
  });
  const thief = await listen((request, response) => { seen.push(request.headers.authorization); response.end("{}"); });
  const leads = await listen((request, response) => response.writeHead(302, { location: `${thief}/client/v4/user` }).end());
  const page = await listen((request, response) => response.end("<html>"));
  const env = { HOME: home, XDG_CONFIG_HOME: "", CAIRN_API_TOKEN: "cairn_secret" };
  const ask = (url) => new Promise((resolve) => {
    // Not in this process's way: the servers above answer meanwhile.
    import("node:child_process").then(({ execFile }) => execFile(cairn, ["whoami", url], { env: { PATH: process.env.PATH, ...env } },
      (error, stdout, stderr) => resolve({ status: error?.code ?? 0, stderr })));
  });
  assert.equal((await ask(leads)).status, 1);
  assert.deepEqual(seen, []);
  assert.match((await ask(page)).stderr, /no JSON: is it the admin listener/);
});

test("what others have written is shown without their control characters", async (t) => {
  const { cli, client } = await setup(t);
  const evil = "\x1b]0;owned\x07\x1b[2J";
  await client.deploy("w", "export default {};", { metadata: { annotations: { "workers/message": evil, "workers/tag": evil } } });
  const { items } = await client.result("GET", "workers/scripts/w/versions");
  for (const args of [["versions", "list", "w"], ["versions", "view", items[0].id, "--name", "w"], ["deployments", "list", "w"], ["versions", "list", "w", "--json"]])
    assert.doesNotMatch(good(cli(args)), /[\x00-\x09\x0b-\x1f\x7f]/, args.join(" "));
  assert.doesNotMatch(cli(["versions", "view", evil, "--name", evil]).stderr, /[\x1b\x07]/);
});

test("every command has a help, and verbs of wrangler that will not be here say why", () => {
  for (const name of ["login", "logout", "whoami", "deploy", "versions", "deployments", "rollback", "secret", "delete", "types", "init", "new", "d1", "queues"]) {
    const help = run([name, "--help"]);
    assert.equal(help.status, 0, name);
    assert.match(help.stdout, new RegExp(`^usage: cairn ${name}`));
  }
  for (const name of ["pages", "vectorize", "containers", "telemetry", "hyperdrive", "dispatch-namespace", "triggers"]) {
    const result = run([name, "list"]);
    assert.equal(result.status, 2);
    assert.match(result.stderr, new RegExp(`^cairn: ${name}: [^\n]+\n$`));
  }
  assert.ok(root);
});
