// Configurations as strangers have them: where they are, what build tools write, what is refused and how (src/config/findconf.h).
import assert from "node:assert/strict";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder, project, run, serve, write } from "../lib/cairn.mjs";

const answer = (text) => `export default { fetch: (request, env) => Response.json({ text: ${text}, secret: env.SECRET ?? null }) };`;
const json = async (server, target = "/") => (await server.fetch(target)).json();

/** What the Vite plugin leaves behind: a note, a generated configuration, a worker, assets. */
const built = (more = {}) => ({
  "wrangler.jsonc": `{ "name": "app", "main": "src/worker.ts", "compatibility_date": "2026-01-01", "assets": { "not_found_handling": "single-page-application" },
    "cairn": { "hosts": ["app.example"] } }`,
  "src/worker.ts": answer(`"source"`),
  ".dev.vars": "SECRET=own\n",
  ".wrangler/deploy/config.json": `{"configPath":"../../dist/app/wrangler.json","auxiliaryWorkers":[]}`,
  "dist/app/wrangler.json": JSON.stringify({
    configPath: "/elsewhere/wrangler.jsonc", userConfigPath: "/elsewhere/wrangler.jsonc", topLevelName: "app", definedEnvironments: [],
    name: "app", main: "index.js", compatibility_date: "2026-01-01", no_bundle: true, upload_source_maps: true,
    rules: [{ type: "ESModule", globs: ["**/*.js", "**/*.mjs"] }], triggers: {}, cloudchamber: {}, agent_memory: [], connect: [], k2: [],
    unheard_of: [], hyperdrive: [], vectorize: [], python_modules: { exclude: ["**/*.pyc"] }, logfwdr: { bindings: [] },
    dev: { ip: "localhost", local_protocol: "http", upstream_protocol: "http", enable_containers: true, generate_types: false },
    assets: { directory: "../client", not_found_handling: "single-page-application", run_worker_first: ["/api/*"] }, ...more,
  }),
  "dist/app/index.js": `import { built } from "./assets/chunk.js";\n` + answer("built"),
  "dist/app/assets/chunk.js": `export const built = "built";`,
  "dist/client/index.html": "page",
});

test("F1, F4: a build tool's note is followed; data and secrets stay with the project", async (t) => {
  const dir = project(t, built());
  const server = await serve(t, dir);
  assert.deepEqual(await json(server, "/api/x"), { text: "built", secret: "own" });
  assert.equal(await (await server.fetch("/any/page")).text(), "page");
  assert.ok(existsSync(path.join(dir, ".cairn")), "the data directory is the project's");
  assert.ok(!existsSync(path.join(dir, "dist/app/.cairn")));
  assert.doesNotMatch(server.output, /hosted platform/, "defaults of a tool are nobody's wish");
});

test("F1: a note without what it names, and an environment that was not built, are errors with a sentence", (t) => {
  const dir = project(t, built({ targetEnvironment: "staging" }));
  assert.match(run(["build", dir, "--env", "other"]).stderr, /was generated for the environment staging, and --env asks for other/);
  assert.equal(run(["build", dir, "--env", "staging"]).status, 0);
  write(dir, { ".wrangler/deploy/config.json": `{"configPath":"../../gone/wrangler.json"}` });
  assert.match(run(["build", dir]).stderr, /names \.\.\/\.\.\/gone\/wrangler\.json, which its build tool must write first/);
  write(dir, { ".wrangler/deploy/config.json": `{}` });
  assert.match(run(["build", dir]).stderr, /"configPath" must name the generated configuration/);
  assert.match(run(["build", path.join(dir, "wrangler.jsonc")]).stderr, /"assets" needs the key "directory" \(the Vite plugin/);
});

test("F2: the configuration is searched for in folders above, from the current folder only", async (t) => {
  const dir = project(t, { "wrangler.toml": `name = "up"\nmain = "src/index.js"\ncompatibility_date = "2026-01-01"\n`, "src/index.js": answer(`"up"`) });
  mkdirSync(path.join(dir, "src/deep"));
  const server = await serve(t, path.join(dir, "src/deep"), { projects: [] });
  assert.equal((await json(server)).text, "up");
  assert.match(run(["build", path.join(dir, "src/deep")]).stderr, /there is no wrangler\.json, wrangler\.jsonc or wrangler\.toml here/);
});

test("F3: a source file is a project, with a configuration and without", async (t) => {
  const bare = folder(t);
  write(bare, { "src/only.ts": answer(`"only" satisfies string`), ".dev.vars": "SECRET=s\n" });
  const alone = await serve(t, bare, { command: "dev", projects: ["src/only.ts"] });
  assert.deepEqual(await json(alone), { text: "only", secret: "s" });
  const dir = project(t, { "wrangler.toml": `name = "w"\nmain = "src/index.js"\ncompatibility_date = "2026-01-01"\n[vars]\nSECRET = "var"\n`,
    "src/index.js": answer(`"main"`), "src/other.js": answer(`"other"`) });
  const other = await serve(t, dir, { projects: ["src/other.js"] });
  assert.deepEqual(await json(other), { text: "other", secret: "var" });
  write(bare, { "notes.txt": "x" });
  assert.match(run(["build", path.join(bare, "notes.txt")]).stderr, /a configuration is a \.toml, \.json or \.jsonc file, a source file is \.js or \.ts/);
});

test("all keys that are refused are told at once, with their lines; --allow-missing starts without them", async (t) => {
  const dir = project(t, {
    "wrangler.jsonc": `{ "name": "w", "main": "index.js", "compatibility_date": "2026-01-01",
  "browser": { "binding": "BROWSER" },
  "vectorize": [{ "binding": "INDEX", "index_name": "x" }],
  "containers": [{ "class_name": "C", "name": "NOT_ON_ENV" }] }`,
    "index.js": `
const say = async (f) => { try { return [await f()]; } catch (e) { return e.message; } };
export default { async fetch(request, env) {
  return Response.json([Object.keys(env).sort(), await say(() => env.BROWSER.fetch("http://x/")), await say(() => env.INDEX.query([1])),
    await say(async () => typeof (await env.BROWSER)), await say(() => JSON.stringify({ b: env.BROWSER }))]);
} };`,
  });
  const refused = run(["build", dir]).stderr;
  assert.match(refused, /wrangler\.jsonc:\d+:\d+: .*"vectorize"/);
  for (const [key, line] of [["browser", 2], ["vectorize", 3], ["containers", 4]])
    assert.match(refused, new RegExp(`wrangler\\.jsonc:${line}:\\d+: "${key}"|"${key}" \\(line ${line}\\)`));
  assert.match(refused, /are keys of wrangler that cairn does not run yet \(--allow-missing [a-z,]+ starts without them\)/);
  assert.match(run(["build", dir, "--allow-missing", "browser,containers"]).stderr, /"vectorize" is a key of wrangler .*--allow-missing vectorize starts without it/);
  const server = await serve(t, dir, { args: ["--allow-missing", "browser,vectorize,containers"] });
  assert.deepEqual(await json(server), [
    ["BROWSER", "INDEX"],
    `env.BROWSER is not there: cairn does not run "browser", and was started with --allow-missing browser`,
    `env.INDEX is not there: cairn does not run "vectorize", and was started with --allow-missing vectorize`,
    ["object"], [`{"b":{}}`],
  ]);
  await server.until(/wrangler\.jsonc:2: "browser" is not there/);
});

test("a date in the future is a warning; keys of the hosted platform are a quiet notice", (t) => {
  const dir = project(t, { "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2099-01-01"\naccount_id = "x"\nworkers_dev = true\n`, "index.js": answer("1") });
  const { stderr, status } = run(["build", dir]);
  assert.equal(status, 0);
  assert.match(stderr, /warn .*wrangler\.toml:3: compatibility_date 2099-01-01 lies in the future/);
  assert.match(stderr, /info .*only the hosted platform uses account_id, workers_dev/);
});

test("A1: links among the assets are followed within the project, circles and secrets left out", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\ncompatibility_date = "2026-01-01"\n[assets]\ndirectory = "./public"\n`,
    "public/a.txt": "a", "public/sub/b.txt": "b", "shared/c.txt": "c", "shared/inner/d.txt": "d", ".dev.vars": "SECRET=hidden\n", ".git/config": "hidden",
  });
  const link = (target, name) => symlinkSync(target, path.join(dir, "public", name));
  link("../shared/c.txt", "c.txt");
  link("../shared", "vendor");
  link("sub", "again");
  link(".", "circle");
  link("..", "sub/up");
  link("nowhere", "gone.txt");
  link("../.dev.vars", "vars.txt");
  link("../.git", "git");
  const server = await serve(t, dir);
  const get = async (target) => { const r = await server.fetch(target); return r.status === 200 ? r.text() : r.status; };
  for (const [target, want] of [["/a.txt", "a"], ["/c.txt", "c"], ["/vendor/c.txt", "c"], ["/vendor/inner/d.txt", "d"], ["/again/b.txt", "b"],
    ["/circle/a.txt", 404], ["/sub/up/a.txt", 404], ["/vars.txt", 404], ["/git/config", 404], ["/gone.txt", 404]])
    assert.equal(await get(target), want, target);
});
