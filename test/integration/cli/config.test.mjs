// Configuration as a person meets it: files, environments, secrets, refusals, several projects.
import assert from "node:assert/strict";
import http from "node:http";
import path from "node:path";
import test from "node:test";
import { folder, project, run, serve, write } from "../lib/cairn.mjs";

const show = `export default { fetch: (request, env) => Response.json(env) }`;

test("all three files are read, in wrangler's order", async (t) => {
  const dir = project(t, {
    "index.js": show,
    "wrangler.toml": `name = "toml"\nmain = "index.js"\ncompatibility_date = 2026-01-01\n[vars]\nFILE = "toml"\n`,
  });
  const file = async () => {
    const server = await serve(t, dir);
    const { FILE } = await (await server.fetch("/")).json();
    await server.stop();
    return FILE;
  };
  assert.equal(await file(), "toml");
  write(dir, { "wrangler.jsonc": `{ /* c */ "name": "jsonc", "main": "index.js", "vars": { "FILE": "jsonc", }, }` });
  assert.equal(await file(), "jsonc");
  write(dir, { "wrangler.json": `{ "name": "json", "main": "index.js", "vars": { "FILE": "json" } }` });
  assert.equal(await file(), "json");
  const chosen = await serve(t, dir, { projects: [path.join(dir, "wrangler.toml")] });
  assert.equal((await (await chosen.fetch("/")).json()).FILE, "toml");
});

test("vars of every kind, an environment, secrets, version metadata", async (t) => {
  const dir = project(t, {
    "index.js": show,
    "wrangler.toml": `
name = "w"
main = "index.js"
compatibility_date = "2026-01-01"
account_id = "abc"
workers_dev = true
[vars]
TOP = "lost in prod"
[env.prod.vars]
TEXT = "t"
NUMBER = 4.5
LIST = [1, { a = true }]
SECRET = "public"
[env.prod.version_metadata]
binding = "VERSION"
`,
    ".dev.vars": "SECRET=general\n",
    ".dev.vars.prod": `SECRET="of\\nprod" # c\nOTHER='x y'\n`,
  });
  const server = await serve(t, dir, { args: ["-e", "prod"] });
  const { VERSION, ...env } = await (await server.fetch("/")).json();
  assert.deepEqual(env, { TEXT: "t", NUMBER: 4.5, LIST: [1, { a: true }], SECRET: "of\nprod", OTHER: "x y" });
  assert.match(VERSION.id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.ok(Date.parse(VERSION.timestamp) > 0);
  await server.until(/wrangler\.toml: only the hosted platform uses account_id, workers_dev/);
});

test("a key that cannot be honoured is named with its line", (t) => {
  for (const [line, text] of [
    [`[cairn]\nmain_module = "x"`, /wrangler\.toml:4:\d+: unknown key "cairn.main_module"/],
    [`[browser]\nbinding = "B"`, /wrangler\.toml:3:\d+: "browser" is a key of wrangler that cairn does not run yet/],
    [`compatibility_flags = ["nodejs_compt"]`, /wrangler\.toml:3:24: unknown compatibility flag "nodejs_compt"/],
    [`name = "twice"`, /wrangler\.toml:3:1: "name" is already defined on line 1/],
    [`vars = `, /wrangler\.toml:3:8: expected a value/],
  ]) {
    const dir = project(t, { "index.js": show, "wrangler.toml": `name = "w"\nmain = "index.js"\n${line}\n` });
    const result = run(["build", dir]);
    assert.equal(result.status, 1);
    assert.match(result.stderr, text);
  }
  const nowhere = run(["serve", folder(t)]);
  assert.match(nowhere.stderr, /there is no wrangler\.json, wrangler\.jsonc or wrangler\.toml here/);
});

test("unknown keys are passed over with one warning that has them all", async (t) => {
  const dir = project(t, {
    "index.js": show,
    "wrangler.toml": `name = "w"\nmain = "index.js"\nfrobnicate = "x"\ncompatibilty_flags = []\n[vars]\nA = "a"\n[dev]\nprot = 1\n`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), { A: "a" });
  await server.until(/unknown keys, passed over: "frobnicate" \(line 3\), "compatibilty_flags" \(line 4; did you mean "compatibility_flags"\?\), "dev\.prot" \(line 8; did you mean "port"\?\)/);
});

/** GET with a Host header of our own, which fetch() would not send. */
function get(url, host, target) {
  return new Promise((resolve, reject) => {
    const { port } = new URL(url);
    http
      .get({ port, host: "127.0.0.1", path: target, headers: { host } }, (response) => {
        let text = "";
        response.on("data", (chunk) => (text += chunk)).on("end", () => resolve([response.statusCode, text]));
      })
      .on("error", reject);
  });
}

test("several projects share a server by host and path", async (t) => {
  const worker = (name, routes) =>
    project(t, {
      "index.js": `export default { fetch: () => new Response("${name}") }`,
      "wrangler.toml": `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${routes}\n`,
    });
  const projects = [
    worker("site", `routes = ["example.com/*", { pattern = "www.example.com", custom_domain = true }]`),
    worker("api", `route = "example.com/api/*"`),
    worker("any", `[cairn]\nhosts = ["*.example.org"]`),
  ];
  const server = await serve(t, projects[0], { projects, args: ["--data", folder(t)] });
  for (const [host, target, status, text] of [
    ["example.com", "/", 200, "site"],
    ["EXAMPLE.com:80", "/api", 200, "site"],
    ["example.com", "/api/x?y", 200, "api"],
    ["www.example.com", "/deep/er", 200, "site"],
    ["a.example.org", "/", 200, "any"],
    ["other.net", "/", 404, undefined],
  ]) {
    const [got, body] = await get(server.url, host, target);
    assert.equal(got, status, `${host}${target}`);
    if (text) assert.equal(body, text, `${host}${target}`);
  }
  const twice = run(["serve", projects[0], projects[0]]);
  assert.match(twice.stderr, /are both named "site"/);
});
