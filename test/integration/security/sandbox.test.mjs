// `cairn serve --sandbox`: the server gives up files, programs and system calls (what exactly, is tried
// in test/unit/base/test_sandbox.c) and still builds, reloads and serves. All other integration tests
// run in it too: make integration SANDBOX=1.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { project, raw, serve, tempDir } from "../lib/server.mjs";
import { ask, command } from "../admin/lib.mjs";
import { objects } from "../lib/toml.mjs";

const config = `name = "app"
main = "src/index.js"
compatibility_date = "2026-01-01"
${objects({ CELL: "Cell" })}`;
const worker = (text) => `import { DurableObject } from "cloudflare:workers";
export class Cell extends DurableObject { count() { return this.ctx.storage.kv.put("n", (this.ctx.storage.kv.get("n") ?? 0) + 1), this.ctx.storage.kv.get("n"); } }
export default { async fetch(request, env) { return new Response("${text} " + await env.CELL.getByName("x").count()); } };`;

const status = (pid, name) => new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];

test("the server is confined, all its threads, and reloads what it cannot build itself", async (t) => {
  const dir = project({ "wrangler.toml": config, "src/index.js": worker("one") });
  const server = await serve(dir, { args: ["--sandbox"], lanes: 2 });
  t.after(() => server.kill());
  const threads = readdirSync(`/proc/${server.pid}/task`);
  assert.ok(threads.length > 4, "lanes, the engine's threads, the store's");
  for (const thread of threads) {
    assert.equal(status(thread, "NoNewPrivs"), "1");
    assert.equal(status(thread, "Seccomp"), "2");
  }
  assert.equal(await server.text("/"), "one 1");
  writeFileSync(path.join(dir, "src/index.js"), worker("two"));
  server.signal("SIGHUP");
  await server.until(/reloaded/);
  assert.equal(await server.text("/"), "two 2");
  writeFileSync(path.join(dir, "src/index.js"), "export default {");
  server.signal("SIGHUP");
  await server.until(/does not build; the last good version keeps serving/);
  assert.equal(await server.text("/"), "two 3");
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test("a build command runs outside", async (t) => {
  const dir = project({
    "wrangler.toml": `${config}[build]\ncommand = "cat template.js > src/index.js"\n`,
    "template.js": worker("built"), "src/.keep": "",
  });
  const server = await serve(dir, { args: ["--sandbox"] });
  t.after(() => server.kill());
  assert.equal(await server.text("/"), "built 1");
  await server.stop();
});

// The builder runs outside, and a server that was broken into can write all of its data directory: here a
// thread of the test does, all the time.
test("what is built outside is not said by a file of the data directory", async (t) => {
  const dir = project({ "wrangler.toml": config, "src/index.js": worker("one"), "secret.js": "export default 'secret';" });
  const outside = tempDir();
  const server = await serve(dir, { args: ["--sandbox"] });
  t.after(() => server.kill());
  const bundle = path.join(server.data, "bundle/app");
  const job = { ...JSON.parse(readFileSync(path.join(bundle, "job.json"), "utf8")), entry: path.join(dir, "secret.js"), out: outside };
  const replace = new Worker(`const { renameSync, writeFileSync } = require("node:fs"), { file, text } = require("node:worker_threads").workerData;
    for (;;) { writeFileSync(file + ".evil", text); renameSync(file + ".evil", file); }`,
    { eval: true, workerData: { file: path.join(bundle, "job.json"), text: JSON.stringify(job) } });
  t.after(() => replace.terminate());
  for (let i = 0; i < 5; i++) {
    writeFileSync(path.join(dir, "src/index.js"), worker(`round ${i}`));
    server.signal("SIGHUP");
    await server.until(new RegExp(`(reloaded[^]*){${i + 1}}|does not build`));
    assert.equal(await server.text("/"), `round ${i} ${i + 1}`);
  }
  assert.deepEqual(readdirSync(outside), []);
  await server.stop();
});

test("files elsewhere are not its own: `cairn backup` writes its folder itself, a path goes where the server was told", async (t) => {
  const dir = project({ "wrangler.toml": config, "src/index.js": worker("x") });
  const allowed = tempDir(), other = tempDir();
  const server = await serve(dir, { args: ["--sandbox", "--sandbox-write", allowed] });
  t.after(() => server.kill());
  await server.text("/");
  const done = await command(server.data, "backup", path.join(other, "copy"));
  assert.equal(done.status, 0, done.stderr);
  assert.equal((await command(path.join(other, "copy"), "check")).status, 0);
  const write = (folder) => ask({ data: server.data }, "POST", "/api/backup", { body: { path: folder } });
  mkdirSync(path.join(other, "second"));
  assert.match((await write(path.join(other, "second"))).json.error.message, /Permission denied/);
  assert.deepEqual(readdirSync(path.join(other, "second")), []);
  mkdirSync(path.join(allowed, "copy"));
  assert.equal((await write(path.join(allowed, "copy"))).status, 200);
  assert.equal((await command(path.join(allowed, "copy"), "check")).status, 0);
  await server.stop();
});

test("a link out of the assets leads nowhere", async (t) => {
  const dir = project({
    "wrangler.toml": 'name = "app"\ncompatibility_date = "2026-01-01"\n[assets]\ndirectory = "./public"\n[cairn]\nsandbox = true\n',
    "public/page.txt": "page",
  });
  symlinkSync("/etc/passwd", path.join(dir, "public/passwd.txt"));
  const server = await serve(dir);
  t.after(() => server.kill());
  assert.equal(status(server.pid, "Seccomp"), "2"); // by the file
  assert.equal(await server.text("/page.txt"), "page");
  const answer = await raw(server.port, "GET /passwd.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  assert.match(answer, /^HTTP\/1.1 404/);
  await server.stop();
});

test("CAIRN_SANDBOX=0 is off, and a folder that is not there is refused", async () => {
  const dir = project({ "wrangler.toml": config, "src/index.js": worker("x") });
  const server = await serve(dir, { env: { CAIRN_SANDBOX: "0" } });
  assert.equal(status(server.pid, "Seccomp"), "0");
  await server.stop();
  await assert.rejects(serve(dir, { args: ["--sandbox", "--sandbox-write", "/nowhere/at/all"] }), /sandbox: cannot open \/nowhere\/at\/all: No such file/);
});
