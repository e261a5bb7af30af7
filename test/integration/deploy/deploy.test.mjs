// Workers come by upload: what is deployed serves, is whole, and is there after a restart (src/v4/depot.h).
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { run } from "../lib/cairn.mjs";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

const counter = (greeting) => `
import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  async next() {
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    await this.ctx.storage.put("n", n);
    return n;
  }
}
export default { async fetch(request, env) {
  const n = await env.COUNTER.get(env.COUNTER.idFromName("a")).next();
  return new Response(${JSON.stringify(greeting)} + " " + n + " " + (env.KEY ?? "none"));
} };`;
const binding = { type: "durable_object_namespace", name: "COUNTER", class_name: "Counter" };
const v1 = { new_tag: "v1", steps: [{ new_sqlite_classes: ["Counter"] }] };

/** All bytes of the files below a folder, as one text. */
function everything(dir) {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile()).map((entry) => readFileSync(path.join(entry.parentPath ?? entry.path, entry.name), "latin1")).join("\n");
}

test("a worker with a Durable Object is deployed, redeployed, and is there after a restart without a bundler", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  assert.equal((await server.fetch("/")).status, 404);
  const who = token(data);
  let client = new Client(server, who);
  await client.deploy("counter", counter("one"), { metadata: { bindings: [binding], migrations: v1 } });
  assert.equal(await server.text("/"), "one 1 none");
  const { default_environment } = await client.result("GET", "workers/services/counter");
  assert.equal(default_environment.script.migration_tag, "v1");
  await client.deploy("counter", counter("two"), { metadata: { bindings: [binding] } });
  assert.equal(await server.text("/"), "two 2 none");

  // A secret is a version of its own, encrypted on disk, and stays with the versions after it.
  await client.result("PUT", "workers/scripts/counter/secrets", { json: { name: "KEY", text: "s3cr3t-value", type: "secret_text" } });
  assert.equal(await server.text("/"), "two 3 s3cr3t-value");
  assert.deepEqual(await client.result("GET", "workers/scripts/counter/secrets"), [{ name: "KEY", type: "secret_text" }]);
  await client.deploy("counter", counter("three"), { metadata: { bindings: [binding] } });
  assert.equal(await server.text("/"), "three 4 s3cr3t-value");
  await server.kill();
  assert.ok(!everything(path.join(data, "deployed")).includes("s3cr3t-value"));

  server = await empty(t, data, { env: { CAIRN_BUNDLER: "/nonexistent" } });
  client = new Client(server, who);
  assert.equal(await server.text("/"), "three 5 s3cr3t-value");

  // Back to the second version: one request.
  const { items } = await client.result("GET", "workers/scripts/counter/versions");
  assert.deepEqual(items.map((item) => item.number), [4, 3, 2, 1]);
  await client.result("POST", "workers/scripts/counter/deployments",
    { json: { strategy: "percentage", versions: [{ version_id: items[2].id, percentage: 100 }] } });
  assert.equal(await server.text("/"), "two 6 none");
  const { deployments } = await client.result("GET", "workers/scripts/counter/deployments");
  assert.equal(deployments[0].versions[0].version_id, items[2].id);
  assert.equal(deployments[0].author_email, "test");

  await server.stop();
  server = await empty(t, data);
  client = new Client(server, who);
  assert.equal(await server.text("/"), "two 7 none");
  await client.result("DELETE", "workers/scripts/counter");
  assert.equal((await server.fetch("/")).status, 404);
  assert.equal((await client.ask("GET", "workers/services/counter")).body.errors[0].code, 10090);
  // Deleted with its objects: the same name begins anew.
  await client.deploy("counter", counter("new"), { metadata: { bindings: [binding], migrations: v1 } });
  assert.equal(await server.text("/"), "new 1 none");
  // And so does one whose class no migration made; migrations may name it later.
  for (const text of ["first", "second"]) {
    await client.result("DELETE", "workers/scripts/counter");
    await client.deploy("counter", counter(text), { metadata: { bindings: [binding] } });
    assert.equal(await server.text("/"), `${text} 1 none`);
  }
  await client.deploy("counter", counter("third"), { metadata: { bindings: [binding], migrations: v1 } });
  assert.equal(await server.text("/"), "third 2 none");
});

test("a version that does not build, does not start or breaks a rule is refused, and the old one serves on", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", counter("good"), { metadata: { bindings: [binding], migrations: v1 } });
  const refused = async (source, metadata, pattern) => {
    const { status, body } = await client.script("w", source, { metadata });
    assert.ok(status >= 400 && status < 600, String(status));
    assert.equal(body.success, false);
    assert.match(body.errors[0].message, pattern);
    assert.match(await server.text("/"), /^good \d+ none$/);
  };
  await refused("export default {", {}, /cannot be built/);
  await refused("throw new Error('at start'); export default {};", {}, /at start|Counter/);
  await refused(counter("x").replace("export default", "throw new Error('late'); export default"), { bindings: [binding] }, /late/);
  await refused(hello("x"), {}, /Counter/); // the class that lives is not exported
  await refused(counter("x"), { bindings: [binding], migrations: { old_tag: "v7", new_tag: "v8", steps: [] } }, /v7/);
  await refused(counter("x"), { bindings: [{ type: "quantum", name: "Q" }] }, /quantum/);
  await refused(counter("x"), { bindings: [binding, { type: "service", name: "S", service: "nobody" }] }, /nobody/);
  await refused(counter("x"), { bindings: [{ type: "inherit", name: "NOTHING" }] }, /inherited/);
  const { items } = await client.result("GET", "workers/scripts/w/versions");
  assert.equal(items.length, 1);
  assert.equal(readdirSync(path.join(data, "deployed/code")).length, 1);
  assert.equal(readdirSync(path.join(data, "deployed/versions")).length, 1);
});

test("modules, assets, schedules and routes belong to the worker", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data, { args: ["--domain", "example.test"] });
  const client = new Client(server, token(data));
  const jwt = await client.assets("site", { "/index.html": "<h1>front</h1>", "/sub/x.txt": "asset" });
  const wasm = Buffer.from("0061736d01000000", "hex");
  await client.deploy("site", `
    import text from "./note.txt"; import data from "./deep/bytes.bin"; import module from "./empty.wasm";
    export default { fetch() {
      return new Response([text, new Uint8Array(data).length, module instanceof WebAssembly.Module].join(" "));
    } };`, {
    metadata: { assets: { jwt, config: { _headers: "/sub/*\n  X-Own: yes\n" } } },
    modules: {
      "note.txt": ["from a text", "text/plain"], "deep/bytes.bin": [Buffer.alloc(5), "application/octet-stream"],
      "empty.wasm": [wasm, "application/wasm"],
    },
  });
  assert.equal(await server.text("/"), "<h1>front</h1>");
  const asset = await server.fetch("/sub/x.txt");
  assert.equal(await asset.text(), "asset");
  assert.equal(asset.headers.get("x-own"), "yes");
  assert.equal(await server.text("/other"), "from a text 5 true");

  // What is here already is not asked for again.
  const again = await client.result("POST", "workers/scripts/site/assets-upload-session", {
    json: { manifest: Object.fromEntries(readdirSync(path.join(data, "deployed/assets/site")).map((hash, i) => [`/${i}`, { hash, size: 1 }])) },
  });
  assert.deepEqual(again.buckets, []);

  const { schedules } = await client.result("PUT", "workers/scripts/site/schedules", { json: [{ cron: "*/5 * * * *" }] });
  assert.equal(schedules[0].cron, "*/5 * * * *");
  const bad = await client.ask("PUT", "workers/scripts/site/schedules", { json: [{ cron: "at noon" }] });
  assert.equal(bad.body.success, false);
  assert.equal((await client.result("GET", "workers/scripts/site/schedules")).schedules.length, 1);

  await client.deploy("other", hello("other"));
  const at = (host) => new Promise((resolve, reject) => {
    import("node:http").then(({ default: http }) => http.get({ host: "127.0.0.1", port: server.port, path: "/", headers: { host } }, (response) => {
      let text = "";
      response.on("data", (part) => { text += part; }).on("end", () => resolve(text));
    }).on("error", reject));
  });
  assert.equal(await at("other.localhost"), "other");
  assert.equal(await at("other.example.test"), "other");
  assert.equal(await at("site.example.test"), "<h1>front</h1>");
  await client.result("PUT", "workers/scripts/other/routes", { json: [{ pattern: "own.test/*" }] });
  assert.equal(await at("own.test"), "other");
  await client.result("POST", "workers/scripts/other/subdomain", { json: { enabled: false } });
  assert.match(await at("other.example.test"), /no worker has a route/);
});

test("killed in the middle of deployments: always the old or the new version, whole (D2)", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  const deploy = async (n) => {
    const client = new Client(server, who);
    const jwt = await client.assets("w", { "/file.txt": `version ${n}` });
    await client.deploy("w", `export default { fetch(request, env) { return new Response("${n} " + env.N); } };`,
      { metadata: { assets: { jwt, config: {} }, bindings: [{ type: "plain_text", name: "N", text: String(n) }] } });
  };
  await deploy(0);
  let last = 0; // the last that was acknowledged
  for (let n = 1; n <= 8; n++) {
    const killed = new Promise((resolve) => setTimeout(resolve, Math.random() * 500)).then(() => server.kill());
    const done = await deploy(n).then(() => true, () => false);
    await killed;
    server = await empty(t, data);
    const [code, variable] = (await server.text("/code")).split(" ");
    const asset = await server.text("/file.txt");
    assert.equal(variable, code);
    assert.equal(asset, `version ${code}`);
    assert.ok(done ? Number(code) === n : [last, n].includes(Number(code)), `${code} after ${last} and ${n} (${done})`);
    last = Number(code);
    assert.equal(readdirSync(path.join(data, "deployed/code")).length, readdirSync(path.join(data, "deployed/versions")).length);
  }
});

test("cairn check finds a flipped bit of a module or an asset and names the version (D9)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const jwt = await client.assets("site", { "/page.txt": "an asset" });
  await client.deploy("site", hello("x"), { metadata: { assets: { jwt } } });
  const { items: [{ id }] } = await client.result("GET", "workers/scripts/site/versions");
  await server.stop();
  assert.equal(run(["check", "--data", data]).status, 0);
  for (const name of ["src/index.js", "assets/page.txt"]) {
    const file = path.join(data, "deployed/code", id, name);
    const bytes = readFileSync(file);
    const damaged = Buffer.from(bytes);
    damaged[3] ^= 1;
    writeFileSync(file, damaged);
    const { status, stdout, stderr } = run(["check", "--data", data]);
    assert.notEqual(status, 0);
    assert.match(stdout + stderr, new RegExp(`${name} is damaged: it belongs to version ${id} of site`));
    writeFileSync(file, bytes);
  }
  assert.equal(run(["check", "--data", data]).status, 0);
});
