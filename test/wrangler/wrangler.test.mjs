// The real wrangler, as npm has it, deploys to an empty server (`make test-wrangler`): a worker with Durable Objects, D1 with migrations,
// KV, R2, queues, cron triggers and assets; secrets, versions, rollback, delete; and the server is restarted and killed in between.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { dataFolder, empty, tally, token } from "../integration/deploy/lib.mjs";
import { keysOf } from "../../tools/wrangler-keys.mjs";
import { bin, environment, folder, wrangler, write } from "./lib.mjs";

test("every key of its configuration is in the list that a unit test holds against the tables", () => {
  const list = readFileSync(new URL("../unit/config/wrangler_keys.h", import.meta.url), "utf8");
  assert.deepEqual(keysOf(path.dirname(path.dirname(bin))).filter((key) => !list.includes(`"${key}"`)), []);
});

const KILLS = Number(process.env.KILLS ?? 20);

const source = `
import { DurableObject } from "cloudflare:workers";
import note from "./note.txt";
export class Counter extends DurableObject<any> {
  async next(): Promise<number> {
    const n = ((await this.ctx.storage.get<number>("n")) ?? 0) + 1;
    await this.ctx.storage.put("n", n);
    return n;
  }
}
export default {
  async fetch(request: Request, env: any): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/count") return new Response(String(await env.COUNTER.getByName("a").next()));
    if (pathname === "/kv") return new Response(await env.STORE.get("greeting"));
    if (pathname === "/d1") return Response.json((await env.DB.prepare("SELECT name FROM items ORDER BY id").all()).results);
    if (pathname === "/r2") return new Response((await env.FILES.get("a/file.txt"))?.body ?? null);
    if (pathname === "/send") { await env.JOBS.send("job"); return new Response("sent"); }
    if (pathname === "/jobs") return new Response((await env.STORE.get("jobs")) ?? "none");
    return new Response([note.trim(), env.GREETING, env.SECRET ?? "no secret"].join(" "));
  },
  async queue(batch: any, env: any) { await env.STORE.put("jobs", "took " + batch.messages[0].body); },
  async scheduled() {},
};`;

const config = ({ kv, d1, greeting }) => `
name = "shop"
main = "src/index.ts"
compatibility_date = "2026-01-01"
[vars]
GREETING = "${greeting}"
[assets]
directory = "public"
[[durable_objects.bindings]]
name = "COUNTER"
class_name = "Counter"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Counter"]
[[kv_namespaces]]
binding = "STORE"
id = "${kv}"
[[d1_databases]]
binding = "DB"
database_name = "items"
database_id = "${d1}"
[[r2_buckets]]
binding = "FILES"
bucket_name = "files"
[[queues.producers]]
binding = "JOBS"
queue = "jobs"
[[queues.consumers]]
queue = "jobs"
max_batch_timeout = 0
[triggers]
crons = ["*/10 * * * *"]
`;

test("wrangler deploys, and everything that a worker has is there", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  const dir = folder(t, {
    "wrangler.toml": 'name = "shop"\nmain = "src/index.ts"\ncompatibility_date = "2026-01-01"\n',
    "src/index.ts": source, "src/note.txt": "noted\n", "public/page.html": "<h1>page</h1>",
    "migrations/0001_items.sql": "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL);\n",
    "migrations/0002_first.sql": "INSERT INTO items (name) VALUES ('first');\n",
  });
  const run = (...args) => wrangler(server, who, dir, args);
  const text = (target) => server.text(target);

  assert.match(await run("whoami"), new RegExp(who.account));
  const kv = /id = "(\w{32})"/.exec(await run("kv", "namespace", "create", "STORE"))[1];
  const d1 = /database_id = "([\w-]{36})"/.exec(await run("d1", "create", "items"))[1];
  await run("r2", "bucket", "create", "files");
  await run("queues", "create", "jobs");
  write(dir, { "wrangler.toml": config({ kv, d1, greeting: "one" }) });

  await run("d1", "migrations", "apply", "items", "--remote");
  assert.match(await run("d1", "execute", "items", "--remote", "--json", "--command", "INSERT INTO items (name) VALUES ('second'); SELECT count(*) AS n FROM items"), /"n": 2/);
  await run("kv", "key", "put", "--remote", "--namespace-id", kv, "greeting", "from kv");
  write(dir, { "bulk.json": JSON.stringify([{ key: "x/1", value: "1" }, { key: "x/2", value: "2" }]), "file.txt": "an object" });
  await run("kv", "bulk", "put", "--remote", "--namespace-id", kv, "bulk.json");
  assert.deepEqual(JSON.parse(await run("kv", "key", "list", "--remote", "--namespace-id", kv, "--prefix", "x/")).map((key) => key.name), ["x/1", "x/2"]);
  await run("r2", "object", "put", "files/a/file.txt", "--remote", "--file", "file.txt");

  assert.match(await run("deploy"), /Deployed shop triggers/);
  assert.equal(await text("/"), "noted one no secret");
  assert.equal(await text("/page"), "<h1>page</h1>");
  assert.equal(await text("/count"), "1");
  assert.equal(await text("/kv"), "from kv");
  assert.equal(await text("/d1"), '[{"name":"first"},{"name":"second"}]');
  assert.equal(await text("/r2"), "an object");
  assert.equal(await text("/send"), "sent");
  await server.untilTrue(async () => (await text("/jobs")) === "took job", "the message at its consumer");
  await run("r2", "object", "get", "files/a/file.txt", "--remote", "--file", "back.txt");

  // Files of SQL in and out, time travel, keys, secrets and buckets many at a time.
  write(dir, { "more.sql": "CREATE TABLE more (a);\nINSERT INTO more VALUES ('from a file');\n", "secrets.json": '{"ONE":"1","TWO":"2"}', "keys.json": '["x/1"]' });
  const { bookmark } = JSON.parse(await run("d1", "time-travel", "info", "items", "--json"));
  assert.match(await run("d1", "execute", "items", "--remote", "--yes", "--file", "more.sql"), /2 queries/);
  await run("d1", "export", "items", "--remote", "--output", "out.sql");
  assert.match(readFileSync(path.join(dir, "out.sql"), "utf8"), /from a file/);
  await run("d1", "time-travel", "restore", "items", "--json", "--bookmark", bookmark);
  await assert.rejects(run("d1", "execute", "items", "--remote", "--command", "SELECT * FROM more"), /no such table/);
  assert.match(await run("d1", "execute", "items", "--remote", "--json", "--command", "SELECT count(*) AS n FROM items"), /"n": 2/);
  assert.match(await run("kv", "bulk", "get", "--remote", "--namespace-id", kv, "keys.json"), /"x\/1"/);
  await run("kv", "bulk", "delete", "--remote", "--force", "--namespace-id", kv, "keys.json");
  await run("secret", "bulk", "secrets.json");
  assert.match(await run("secret", "list"), /ONE[^]*TWO/);
  await run("r2", "bucket", "create", "other");
  await run("r2", "bucket", "delete", "other");
  await assert.rejects(run("r2", "bucket", "delete", "files"), /not empty/);
  await run("queues", "pause-delivery", "jobs");
  await run("queues", "resume-delivery", "jobs");

  // Secrets of a version that waits; what is said of objects, queues and namespaces.
  const made = async (...args) => /Created version ([\w-]{36})/.exec(await wrangler(server, who, dir, ["versions", "secret", ...args], { input: "later" }))[1];
  await made("put", "SECRET");
  assert.equal(await text("/"), "noted one no secret");
  await run("versions", "deploy", `${await made("bulk", "secrets.json")}@100%`, "--yes");
  assert.equal(await text("/"), "noted one later");
  assert.equal(await text("/page"), "<h1>page</h1>");
  await run("versions", "deploy", `${await made("delete", "SECRET")}@100%`, "--yes");
  assert.equal(await text("/"), "noted one no secret");
  assert.match(await run("secret", "list"), /ONE[^]*TWO/);
  assert.match(await run("queues", "info", "jobs"), /Number of Producers: 1/);
  assert.match(await run("r2", "bucket", "info", "files"), /object_count: +1/);
  await run("kv", "namespace", "rename", "--namespace-id", kv, "--new-name", "renamed");
  assert.match(await run("kv", "namespace", "list"), /"renamed"/);
  await assert.rejects(run("workflows", "list"), /"workflows" of the platform's API is not built here/);

  // Again, with a secret, a restart without Node.js, a version that waits, and the way back.
  await wrangler(server, who, dir, ["secret", "put", "SECRET"], { input: "hidden" });
  assert.equal(await text("/"), "noted one hidden");
  write(dir, { "wrangler.toml": config({ kv, d1, greeting: "two" }) });
  assert.match(await run("deploy"), /Current Version ID/);
  assert.equal(await text("/"), "noted two hidden");
  await server.kill();
  server = await empty(t, data, { env: { PATH: "/nonexistent" } });
  assert.equal(await text("/"), "noted two hidden");
  assert.equal(await text("/count"), "2");
  await server.stop();
  server = await empty(t, data);
  write(dir, { "wrangler.toml": config({ kv, d1, greeting: "three" }) });
  const waiting = /Version ID: ([\w-]{36})/.exec(await run("versions", "upload", "--message", "waits"))[1];
  assert.equal(await text("/"), "noted two hidden");
  assert.match(await run("versions", "list"), /waits/);
  await run("versions", "deploy", `${waiting}@100%`, "--yes");
  assert.equal(await text("/"), "noted three hidden");
  await run("rollback", "--yes", "--message", "back");
  assert.equal(await text("/"), "noted two hidden");
  assert.match(await run("versions", "view", waiting), /env.COUNTER/);
  assert.match(await run("secret", "list"), /SECRET/);
  assert.match(await run("deployments", "list"), /back/);

  await run("delete", "--force");
  assert.equal((await server.fetch("/")).status, 404);
  await assert.rejects(run("secret", "list"));
});

test("wrangler tail shows what happens, in both forms, until it is ended", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const dir = folder(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n',
    "index.js": "export default { fetch(request) { console.log('hello', new URL(request.url).pathname); if (request.url.includes('bad')) throw new Error('thrown'); return new Response('ok'); } };",
  });
  await wrangler(server, who, dir, ["deploy"]);
  const listeners = [["--format", "json"], ["--format", "pretty"], ["--format", "json", "--status", "error"]].map((args) => {
    const child = spawn(process.execPath, [bin, "tail", "w", ...args], { cwd: dir, env: environment(server, who, dir), stdio: ["pipe", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    const listener = { child, text: "", exited: new Promise((resolve) => child.on("exit", resolve)) };
    child.stdout.setEncoding("utf8").on("data", (more) => { listener.text += more; });
    return listener;
  });
  const tails = async () => (await (await fetch(`${server.api}/accounts/${who.account}/workers/scripts/w/tails`, { headers: { authorization: `Bearer ${who.token}` } })).json()).result;
  await server.untilTrue(async () => (await tails()).length === 3, "three listeners", 60_000);
  const [json, pretty, errors] = listeners;
  // Each is asked for until the connection behind it is there.
  await server.untilTrue(async () => { await server.text("/seen"); return json.text.includes('"/seen"') && pretty.text.includes("GET ") ; }, "events", 60_000);
  await server.untilTrue(async () => { await server.fetch("/bad"); return errors.text.includes("thrown"); }, "an error", 60_000);
  assert.match(pretty.text, /GET http:\S+\/seen - Ok/);
  assert.match(pretty.text, /\(log\) hello \/seen/);
  assert.ok(!errors.text.includes('"/seen"'));
  json.child.kill("SIGINT");
  await json.exited;
  await server.untilTrue(async () => (await tails()).length === 2, "two listeners");
  for (const { child } of listeners) child.kill("SIGINT");
  await Promise.all(listeners.map(({ exited }) => exited));
  await server.untilTrue(async () => (await tails()).length === 0, "no listener");
});

test("versions are rolled out by shares", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const dir = folder(t, { "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n' });
  const run = (...args) => wrangler(server, who, dir, args);
  const source = (text) => write(dir, { "index.js": `export default { fetch() { return new Response("${text}"); } };` });
  source("one");
  const one = /Version ID: ([\w-]{36})/.exec(await run("deploy"))[1];
  source("two");
  const two = /Version ID: ([\w-]{36})/.exec(await run("versions", "upload"))[1];
  await run("versions", "deploy", `${two}@10%`, `${one}@90%`, "--yes", "--message", "a tenth");
  const seen = await tally(server, 10_000);
  assert.equal(seen.one + seen.two, 10_000);
  assert.ok(seen.two > 850 && seen.two < 1150, JSON.stringify(seen));
  t.diagnostic(`of 10,000 requests ${seen.two} came to the version with 10 %`);
  const status = await run("deployments", "status");
  assert.match(status, /\(10%\)/);
  assert.match(status, /\(90%\)/);
  assert.deepEqual(await tally(server, 20, () => ({ headers: { "Cloudflare-Workers-Version-Overrides": `w="${two}"` } })), { two: 20 });
  await run("versions", "deploy", `${two}@100%`, "--yes");
  assert.deepEqual(await tally(server, 100), { two: 100 });
});

test(`killed at random points of ${KILLS} deployments: the old or the new version, whole`, async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  const dir = folder(t, {});
  const prepare = (n) => write(dir, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[vars]\nN = "${n}"\n[assets]\ndirectory = "public"\n`,
    "index.js": `export default { fetch(request, env) { return new Response("${n} " + env.N); } };`,
    "public/file.txt": `version ${n}`,
  });
  prepare(0);
  let began = Date.now();
  await wrangler(server, who, dir, ["deploy"]);
  const usual = Date.now() - began; // so that kills fall into all of it
  let last = 0;
  for (let n = 1; n <= KILLS; n++) {
    prepare(n);
    const running = wrangler(server, who, dir, ["deploy"]).then(() => true, () => false);
    const killed = new Promise((resolve) => setTimeout(resolve, usual * (0.4 + Math.random() * 0.7))).then(() => server.kill());
    const done = await running;
    await killed;
    server = await empty(t, data);
    const [code, variable] = (await server.text("/code")).split(" ");
    assert.equal(variable, code);
    assert.equal(await server.text("/file.txt"), `version ${code}`);
    assert.ok(done ? Number(code) === n : [last, n].includes(Number(code)), `${code} after ${last} and ${n} (${done})`);
    last = Number(code);
    assert.equal(readdirSync(path.join(data, "deployed/code")).length, readdirSync(path.join(data, "deployed/versions")).length);
  }
});
