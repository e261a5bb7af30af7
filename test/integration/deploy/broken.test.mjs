// A version that cannot be served takes nobody with it (F1 of worker/script.h, H5 of deploy/hosted.h, D9 of v4/depot.h).
import assert from "node:assert/strict";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test from "node:test";
import { folder, project, root, run, serve } from "../lib/cairn.mjs";
import { adminToken, Client, dataFolder, empty, hello, token } from "./lib.mjs";

const counter = (greeting, more = "") => `
import { DurableObject } from "cloudflare:workers";
${more}
export class Counter extends DurableObject {
  async next() {
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    await this.ctx.storage.put("n", n);
    return n;
  }
}
export default { async fetch(request, env) {
  return new Response(${JSON.stringify(greeting)} + " " + await env.COUNTER.get(env.COUNTER.idFromName("a")).next());
} };`;
const metadata = {
  bindings: [{ type: "durable_object_namespace", name: "COUNTER", class_name: "Counter" }],
  migrations: { new_tag: "v1", steps: [{ new_sqlite_classes: ["Counter"] }] },
};
const later = { bindings: metadata.bindings };
/** [status, text] of a request to a worker by its host name. */
const ask = (server, worker, target = "/") => new Promise((resolve, reject) => {
  http.get({ host: "127.0.0.1", port: server.port, path: target, headers: { host: `${worker}.localhost` } }, (response) => {
    let text = "";
    response.on("data", (part) => { text += part; }).on("end", () => resolve([response.statusCode, text.trim()])).on("error", reject);
  }).on("error", reject);
});

/** Changes one bit in the middle of a file. */
function damage(file) {
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1] ^= 4;
  writeFileSync(file, bytes);
}

const metrics = async (server, data) => (await fetch(`${server.admin}/metrics`, {
  headers: { authorization: `Bearer ${adminToken(data)}` },
})).text();

/** Two workers, the first with two versions: what the damage is done to. */
async function deployed(t) {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const client = new Client(server, who);
  await client.deploy("a", counter("old"), { metadata });
  const jwt = await client.assets("a", { "/page.txt": "an asset of a" });
  await client.deploy("a", counter("new"), { metadata: { ...later, assets: { jwt } } });
  await client.result("PUT", "workers/scripts/a/secrets", { json: { name: "KEY", text: "s3cr3t", type: "secret_text" } });
  await client.deploy("b", hello("b serves"));
  assert.deepEqual(await ask(server, "a"), [200, "new 1"]);
  assert.deepEqual(await ask(server, "a", "/page.txt"), [200, "an asset of a"]);
  const { items } = await client.result("GET", "workers/scripts/a/versions");
  await server.kill();
  const root = path.join(data, "deployed");
  const [withSecret, current, old] = items;
  return { data, who, root, withSecret, current, old, code: path.join(root, "code", current.id) };
}

/** Starts the server on what is there: a is reported and answered 503, b serves; and back it goes. */
async function checkBroken(t, { data, who, withSecret, ...all }, pattern, { back = all.old, env } = {}) {
  let server = await empty(t, data, { env });
  let client = new Client(server, who);
  assert.deepEqual(await ask(server, "b"), [200, "b serves"]);
  assert.deepEqual(await ask(server, "a"), [503, "cairn: the worker a cannot be served: its version cannot be opened"]);
  assert.deepEqual((await ask(server, "a", "/page.txt"))[0], 503);
  const [line] = await server.until(/worker a cannot be served: .*/);
  assert.match(line, pattern);
  assert.match(line, /its data is untouched, the other workers serve/);
  if (!back) assert.match(line, /no earlier version is there to go back to: deploy it again/);
  else assert.ok(line.includes(`version ${back.number} served before it and its files are whole: cairn rollback --name a ${back.id}`), line);

  const { deployments } = await client.result("GET", "workers/scripts/a/deployments");
  assert.equal(deployments[0].versions[0].version_id, withSecret.id); // nothing was rolled back
  assert.match(deployments[0].versions[0].failure, pattern);
  const shown = run(["deployments", "--data", data]);
  assert.match(shown.stdout, /does not serve: /);
  assert.match(shown.stdout, pattern);
  const workers = JSON.parse(run(["api", "GET", "/api/workers", "--data", data]).stdout || "null");
  if (workers) assert.match(workers.find(({ name }) => name === "a").failures[0].text, pattern);
  await server.untilTrue(async () => /cairn_worker_failed\{worker="a"\} 1/.test(await metrics(server, data)), "the metric");
  assert.match(await metrics(server, data), /cairn_refusals_total\{reason="broken"\} [1-9]/);

  // Others can be deployed, and a again: the same by a new version, with the data that it had.
  await client.deploy("b", hello("b again"));
  assert.deepEqual(await ask(server, "b"), [200, "b again"]);
  assert.deepEqual((await ask(server, "a"))[0], 503);
  if (back) {
    await client.result("POST", "workers/scripts/a/deployments", { json: { strategy: "percentage", versions: [{ version_id: back.id, percentage: 100 }] } });
    assert.deepEqual(await ask(server, "a"), [200, `${back === all.old ? "old" : "new"} 2`]);
  } else {
    await client.deploy("a", counter("mended"), { metadata: later });
    assert.deepEqual(await ask(server, "a"), [200, "mended 2"]);
  }
  await server.stop();
  server = await empty(t, data);
  assert.deepEqual(await ask(server, "a"), [200, `${!back ? "mended" : back === all.old ? "old" : "new"} 3`]);
  assert.deepEqual(await ask(server, "b"), [200, "b again"]);
  await server.stop();
}

test("D9: a module of the version that serves is damaged", async (t) => {
  const all = await deployed(t);
  damage(path.join(all.code, "src/index.js"));
  await checkBroken(t, all, /src\/index.js is damaged: it belongs to version/);
});

test("D9: an asset is damaged, or gone", async (t) => {
  const all = await deployed(t);
  rmSync(path.join(all.code, "assets/page.txt"));
  await checkBroken(t, all, /assets\/page.txt is not there: it belongs to version/);
});

test("D9: the list of checksums is damaged", async (t) => {
  const all = await deployed(t);
  damage(path.join(all.code, "sums.json"));
  await checkBroken(t, all, /sums.json is damaged/);
});

test("D9: the version's own file is damaged: nothing is known of its bindings", async (t) => {
  const all = await deployed(t);
  damage(path.join(all.root, "versions", `${all.withSecret.id}.json`));
  await checkBroken(t, all, /versions\/[-0-9a-f]+.json is damaged/, { back: all.current });
});

test("D9: the version's own file and those of all others are gone", async (t) => {
  const all = await deployed(t);
  for (const { id } of [all.withSecret, all.current, all.old]) rmSync(path.join(all.root, "versions", `${id}.json`));
  await checkBroken(t, all, /versions\/[-0-9a-f]+.json is not there/, { back: null });
});

test("D9: what was built is damaged: it is built again, or, without a bundler, not served", async (t) => {
  const all = await deployed(t);
  const bundle = path.join(all.code, "bundle");
  const script = readdirSync(bundle).find((name) => name.endsWith(".js"));
  damage(path.join(bundle, script));
  let server = await empty(t, all.data, { env: { CAIRN_BUNDLER: "/nonexistent" } });
  assert.deepEqual(await ask(server, "b"), [200, "b serves"]);
  assert.deepEqual((await ask(server, "a"))[0], 503);
  await server.until(/worker a cannot be served: .*bundle\/.* is damaged.*cannot be built again/);
  await server.stop();
  server = await empty(t, all.data);
  await server.until(/bundle\/.* is damaged.*it was built again/);
  assert.deepEqual(await ask(server, "a"), [200, "new 2"]);
  await server.stop();
  server = await empty(t, all.data, { env: { CAIRN_BUNDLER: "/nonexistent" } });
  assert.deepEqual(await ask(server, "a"), [200, "new 3"]);
});

test("a data directory without its key file: workers with secrets do not serve, the others do", async (t) => {
  const all = await deployed(t);
  const key = readFileSync(path.join(all.root, "key"));
  rmSync(path.join(all.root, "key"));
  const server = await empty(t, all.data);
  await server.until(/deployed\/key is not there, and a new one is made: secrets that were deployed cannot be read/);
  await server.stop();
  // Put back, it is as before.
  writeFileSync(path.join(all.root, "key"), key);
  const again = await empty(t, all.data);
  assert.deepEqual(await ask(again, "a", "/page.txt"), [200, "an asset of a"]);
  await again.stop();
  rmSync(path.join(all.root, "key"));
  await checkBroken(t, all, /the secret KEY of a cannot be decrypted with deployed\/key/, { back: all.current });
});

for (const [file, pattern] of [["deployed/state.json", /state.json is damaged/], ["deployed/key", /deployed\/key is damaged/], ["tokens.json", /tokens.json/]]) {
  test(`${file} damaged: the server says so and does not start, whatever it would let in`, async (t) => {
    const { data } = await deployed(t);
    damage(path.join(data, file));
    const result = run(["serve", "--data", data, "--listen", "127.0.0.1:0"], { env: { CAIRN_SANDBOX: "" }, cwd: data });
    assert.notEqual(result.status, 0);
    assert.match(result.stderr, pattern);
  });
}

test("a version that served before and no longer starts is reported; the others serve, objects keep their data, and it is tried again", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  let client = new Client(server, who);
  await client.deploy("w", counter("old"), { metadata });
  await client.deploy("w", counter("w"), { metadata: later });
  await client.deploy("b", hello("b serves"));
  assert.deepEqual(await ask(server, "w"), [200, "w 1"]);
  const [{ id }] = (await client.result("GET", "workers/scripts/w/versions")).items;
  await server.stop();
  // As a newer server might find it: whole, but it does not start there.
  const code = path.join(data, "deployed/code", id);
  const script = path.join(code, "bundle", readdirSync(path.join(code, "bundle")).find((name) => name.endsWith(".js")));
  const whole = readFileSync(script, "utf8");
  writeFileSync(script, whole.replace(/^\(function\s*\(\w+\)\s*\{/, (head) => `${head}throw new Error("not today");`));
  rmSync(path.join(code, "bundle.json"));
  server = await empty(t, data);
  client = new Client(server, who);
  assert.deepEqual(await ask(server, "b"), [200, "b serves"]);
  assert.deepEqual(await ask(server, "w"), [503, "cairn: the worker w cannot be served: its version does not start"]);
  await server.until(/worker w failed to start: .*not today.*the other workers serve; version 1 served before it: cairn rollback --name w/s);
  const { deployments } = await client.result("GET", "workers/scripts/w/deployments");
  assert.match(deployments[0].versions[0].failure, /not today/);
  await client.deploy("b", hello("b again"));
  assert.deepEqual(await ask(server, "b"), [200, "b again"]);
  await server.untilTrue(async () => /cairn_worker_failed\{worker="w"\} 1/.test(await metrics(server, data)), "the metric");
  await client.deploy("w", counter("mended"), { metadata: later });
  assert.deepEqual(await ask(server, "w"), [200, "mended 2"]);
  await server.untilTrue(async () => /cairn_worker_failed\{worker="w"\} 0/.test(await metrics(server, data)), "the metric back");
});

test("S2: uploads that loop, throw, never end or take all memory at their start are refused with 10021, and hold no lane", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data, { args: ["--lanes", "1"] });
  const client = new Client(server, token(data));
  await client.deploy("b", hello("b serves"));
  const refused = async (source, pattern) => {
    let done = false, count = 0;
    const upload = client.script("w", source).finally(() => { done = true; });
    for (; !done; count++) assert.deepEqual(await ask(server, "b"), [200, "b serves"]);
    const { status, body } = await upload;
    assert.equal(status, 400, JSON.stringify(body));
    assert.equal(body.errors[0].code, 10021);
    assert.match(body.errors[0].message, pattern);
    return count;
  };
  // While it loops for its second, b is answered many times by the only lane.
  assert.ok(await refused("while (true); export default {};", /Script startup exceeded CPU time limit/) > 10);
  assert.ok(await refused("for (;;) await 0; export default {};", /Script startup exceeded CPU time limit/) > 10);
  await refused("throw new Error('at start'); export default {};", /at start/);
  await refused("await new Promise(() => {}); export default {};", /awaits something that does not come/);
  assert.deepEqual((await client.ask("GET", "workers/scripts")).body.result.map(({ id }) => id), ["b"]);
  await client.deploy("w", hello("w serves"));
  assert.deepEqual(await ask(server, "w"), [200, "w serves"]);
});

test("a project on the server's own disk that does not start stops the start, loudly", async (t) => {
  const data = dataFolder(t);
  writeFileSync(path.join(data, "wrangler.toml"), 'name = "own"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n');
  writeFileSync(path.join(data, "index.js"), "throw new Error('at start'); export default {};");
  const result = run(["serve", data, "--listen", "127.0.0.1:0"], { env: { CAIRN_SANDBOX: "" } });
  assert.notEqual(result.status, 0);
  assert.match(result.stderr, /worker own failed to start: .*at start/);
});

test("--sandbox serves what was deployed, rolls back and takes secrets; uploads are refused with a sentence", async (t) => {
  const { data, who, old } = await deployed(t);
  const server = await empty(t, data, { args: ["--sandbox"] });
  const client = new Client(server, who);
  assert.deepEqual(await ask(server, "a"), [200, "new 2"]);
  assert.deepEqual(await ask(server, "a", "/page.txt"), [200, "an asset of a"]);
  const { status, body } = await client.script("b", hello("another"));
  assert.equal(status, 405);
  assert.match(body.errors[0].message, /a server in a sandbox serves what was deployed and takes nothing new/);
  assert.deepEqual(await ask(server, "b"), [200, "b serves"]);
  await client.result("PUT", "workers/scripts/a/secrets", { json: { name: "KEY", text: "other", type: "secret_text" } });
  assert.deepEqual(await ask(server, "a"), [200, "new 3"]);
  await client.result("POST", "workers/scripts/a/deployments", { json: { strategy: "percentage", versions: [{ version_id: old.id, percentage: 100 }] } });
  assert.deepEqual(await ask(server, "a"), [200, "old 4"]);
});

test("D1, D2: a disk that is full in the middle of a deployment: an error and the old version, whole; with space it goes on", async (t) => {
  const data = dataFolder(t), control = path.join(folder(t), "disk");
  writeFileSync(control, Buffer.alloc(16)); // written over in place from here on: it is mapped
  const full = (after) => writeFileSync(control, Buffer.from(Uint32Array.from([0, 0, 0, after]).buffer), { flag: "r+" });
  const env = { LD_PRELOAD: path.join(root, "build/load/slowdisk.so"), CAIRN_SLOWDISK: control };
  let server = await empty(t, data, { env });
  const who = token(data);
  let client = new Client(server, who);
  await client.deploy("w", hello("version 0"));
  let serves = "version 0", refused = 0;
  for (let i = 1; i <= 24; i++) {
    const text = `version ${i}`;
    full(i);
    const files = Object.fromEntries(Array.from({ length: 3 }, (_, k) => [`/f${k}.txt`, `${text} file ${k}`]));
    let answer;
    try {
      const jwt = await client.assets("w", files);
      answer = await client.script("w", hello(text), { metadata: { assets: { jwt } } });
    } catch (error) { // the session of assets failed
      assert.match(error.message, /No space left on device|ENOSPC|cannot write/, text);
      answer = { status: 507 };
    }
    full(0);
    if (answer.status === 200) serves = text;
    else {
      refused++;
      if (answer.body) assert.match(answer.body.errors[0].message, /No space left on device|ENOSPC|cannot write|durable|refused/, text);
    }
    assert.deepEqual(await ask(server, "w"), [200, serves], `after ${text}: ${JSON.stringify(answer.body)}`);
  }
  assert.ok(refused > 3, `${refused} of 24 were refused`);
  await client.deploy("w", hello("with space"));
  assert.deepEqual(await ask(server, "w"), [200, "with space"]);
  await server.stop();
  server = await empty(t, data);
  client = new Client(server, who);
  assert.deepEqual(await ask(server, "w"), [200, "with space"]);
  // What was refused has left nothing.
  const { items } = await client.result("GET", "workers/scripts/w/versions");
  assert.deepEqual(readdirSync(path.join(data, "deployed/code")).sort(), items.map(({ id }) => id).sort());
  assert.deepEqual(readdirSync(path.join(data, "deployed/versions")).sort(), items.map(({ id }) => `${id}.json`).sort());
});

test("P2, P3: projects on disk that do not build hinder no upload and no neighbour, and serve as they did", async (t) => {
  const data = dataFolder(t);
  const config = (name) => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nkv_namespaces = [{ binding = "KV", id = "kv" }]\n[cairn]\nhosts = ["${name}.localhost"]\n`;
  const own = project(t, { "wrangler.toml": config("own"), "index.js": hello("own one") });
  const other = project(t, { "wrangler.toml": config("other"), "index.js": hello("other one") });
  const start = async () => {
    const server = await serve(t, own, { args: [other, "--data", data, "--lanes", "2"], env: { CAIRN_ADMIN: "127.0.0.1:0", CAIRN_SANDBOX: "" } });
    [, server.admin] = await server.until(/admin on (http:\S+)/);
    server.api = `${server.admin}/client/v4`;
    return server;
  };
  let server = await start();
  const client = new Client(server, token(data));
  const answers = async (expected) => {
    for (const [name, text] of Object.entries(expected)) assert.equal((await ask(server, name))[1], text, name);
  };
  await client.deploy("up", hello("up one"));
  await answers({ own: "own one", other: "other one", up: "up one" });
  // Files that changed are none of an upload's business, whether they build or not.
  writeFileSync(path.join(other, "index.js"), hello("other two"));
  for (const [file, text] of [["index.js", "export default {"], ["index.js", "throw new Error('at the start');"], ["wrangler.toml", "name = ["]]) {
    writeFileSync(path.join(own, file), text);
    await client.deploy("up", hello(`up with ${file}`));
    await answers({ own: "own one", other: "other one", up: `up with ${file}` });
  }
  // A reload is refused as a whole, and uploads go on after it.
  writeFileSync(path.join(own, "wrangler.toml"), config("own"));
  server.signal("SIGHUP");
  await server.until(/at the start[^]*the last good version keeps serving/);
  await client.deploy("up", hello("up after"));
  await answers({ own: "own one", other: "other one", up: "up after" });
  writeFileSync(path.join(own, "index.js"), hello("own two"));
  server.signal("SIGHUP");
  await server.untilTrue(async () => (await ask(server, "own"))[1] === "own two", "the reload");
  await answers({ own: "own two", other: "other two", up: "up after" });
  // At the start: who can be served is.
  writeFileSync(path.join(own, "index.js"), "export default {");
  await server.kill();
  server = await start();
  assert.deepEqual(await ask(server, "own"), [503, "cairn: the worker own cannot be served: its version cannot be opened"]);
  await answers({ other: "other two", up: "up after" });
  await server.until(/worker own cannot be served: .*the other workers serve; mend .* and reload the server/);
  await new Client(server, client).deploy("up", hello("up again"));
  await answers({ other: "other two", up: "up again" });
  writeFileSync(path.join(own, "index.js"), hello("own three"));
  server.signal("SIGHUP");
  await server.untilTrue(async () => (await ask(server, "own"))[1] === "own three", "the reload");
  await answers({ own: "own three", other: "other two", up: "up again" });
});
