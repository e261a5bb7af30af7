// Projects that the real wrangler deploys whole (`make test-wrangler`): the starter with a database, cron triggers, thousands of assets.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { ask } from "../integration/admin/lib.mjs";
import { dataFolder, empty, token } from "../integration/deploy/lib.mjs";
import { run as cairn } from "../integration/lib/cairn.mjs";
import { folder, wrangler, write } from "./lib.mjs";

const LONG = Boolean(process.env.LONG);

test("the starter d1-api: wrangler makes its database, applies its migrations and deploys it", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const dir = path.join(folder(t, {}), "notes");
  const made = cairn(["new", dir, "--template", "d1-api"]);
  assert.equal(made.status, 0, made.stderr);
  const run = (...args) => wrangler(server, who, dir, args);
  const config = readFileSync(path.join(dir, "wrangler.toml"), "utf8");
  const [, id] = /database_id = "([\w-]{36})"/.exec(await run("d1", "create", "notes"));
  write(dir, { "wrangler.toml": config.replace(/^database_name = .*$/m, `$&\ndatabase_id = "${id}"`) });
  assert.match(await run("d1", "migrations", "list", "DB", "--remote"), /0001_notes\.sql/);
  await run("d1", "migrations", "apply", "DB", "--remote");
  assert.match(await run("d1", "migrations", "list", "DB", "--remote"), /No migrations to apply/);
  await run("deploy");
  const api = async (method, target, body) => {
    const response = await server.fetch(target, { method, body: body && JSON.stringify(body) });
    const text = await response.text();
    return [response.status, text && JSON.parse(text)];
  };
  const [status, note] = await api("POST", "/notes", { text: "first" });
  assert.deepEqual([status, note.id, note.text], [201, 1, "first"]);
  assert.deepEqual(await api("GET", "/notes"), [200, [note]]);
  assert.equal((await api("DELETE", "/notes/1"))[0], 204);
  assert.deepEqual(await api("GET", "/notes"), [200, []]);
});

test("a binding without an id gets what it needs made for it", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const dir = folder(t, {
    "wrangler.jsonc": JSON.stringify({
      name: "made", main: "index.js", compatibility_date: "2026-01-01",
      kv_namespaces: [{ binding: "KV" }], d1_databases: [{ binding: "DB" }], r2_buckets: [{ binding: "FILES" }],
    }),
    "index.js": `export default { async fetch(request, env) {
      await env.KV.put("k", "kept");
      await env.DB.exec("CREATE TABLE IF NOT EXISTS t (a)");
      await env.DB.prepare("INSERT INTO t VALUES (1)").run();
      await env.FILES.put("f", "file");
      return Response.json([await env.KV.get("k"), (await env.DB.prepare("SELECT count(*) AS n FROM t").first()).n, await (await env.FILES.get("f")).text()]);
    } };`,
  });
  assert.match(await wrangler(server, who, dir, ["deploy"]), /provisioned/);
  assert.deepEqual(await (await server.fetch("/")).json(), ["kept", 1, "file"]);
  await wrangler(server, who, dir, ["deploy"]); // the same ones
  assert.deepEqual(await (await server.fetch("/")).json(), ["kept", 2, "file"]);
});

test("cron triggers run the handler of what was deployed, are replaced by the next deployment, and end with none", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const config = (crons) => ({ "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[[kv_namespaces]]\nbinding = "KV"\nid = "runs"\n[triggers]\ncrons = ${JSON.stringify(crons)}\n` });
  const dir = folder(t, {
    ...config(["*/7 * * * *", "0 3 * * *"]),
    "index.js": "export default { async fetch(request, env) { return new Response(await env.KV.get('last')); }, scheduled: (event, env) => env.KV.put('last', event.cron) };",
  });
  const crons = async () => (await ask({ data }, "GET", "/api/crons")).json.result.schedules.map(({ cron }) => cron).sort();
  await wrangler(server, who, dir, ["deploy"]);
  await server.untilTrue(async () => (await crons()).length === 2, "the triggers");
  assert.deepEqual(await crons(), ["*/7 * * * *", "0 3 * * *"]);
  const { outcome } = (await ask({ data }, "POST", "/api/crons/w/trigger", { body: { cron: "0 3 * * *" } })).json.result;
  assert.deepEqual([outcome, await server.text("/")], ["ok", "0 3 * * *"]);
  write(dir, config(["1 1 * * *"]));
  await wrangler(server, who, dir, ["triggers", "deploy"]);
  await server.untilTrue(async () => (await crons()).join() === "1 1 * * *", "the new trigger");
  write(dir, config([]));
  await wrangler(server, who, dir, ["deploy"]);
  await server.untilTrue(async () => (await crons()).length === 0, "no trigger");
});

test("thousands of assets, and the next deployment sends what has changed", { timeout: 900_000 }, async (t) => {
  const count = LONG ? 20_000 : 5_000;
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  const name = (i) => `folder-${i % 100}/file-${i}.txt`;
  const dir = folder(t, {
    "wrangler.toml": 'name = "w"\ncompatibility_date = "2026-01-01"\n[assets]\ndirectory = "public"\n',
    ...Object.fromEntries(Array.from({ length: count }, (_, i) => [`public/${name(i)}`, `file ${i}`])),
    "public/large.bin": Buffer.alloc(20 << 20, "x"), "public/larger.bin": Buffer.alloc(25 << 20, "y"),
  });
  const deploy = () => wrangler(server, who, dir, ["deploy"], { timeout: 800_000 });
  assert.match(await deploy(), new RegExp(`Uploaded ${count + 2} files`));
  for (const i of [0, 1, count >> 1, count - 1]) assert.equal(await server.text(`/${name(i)}`), `file ${i}`);
  assert.equal((await server.fetch(`/folder-0/file-${count}.txt`)).status, 404);
  assert.equal((await (await server.fetch("/larger.bin")).arrayBuffer()).byteLength, 25 << 20);
  write(dir, { [`public/${name(7)}`]: "changed", "public/new.txt": "new" });
  assert.match(await deploy(), /Uploaded 2 files/);
  await server.kill();
  server = await empty(t, data);
  assert.equal(await server.text(`/${name(7)}`), "changed");
  assert.equal(await server.text(`/${name(8)}`), "file 8");
  assert.equal(await server.text("/new.txt"), "new");
});
