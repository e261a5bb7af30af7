// The starters of `cairn new` and `cairn init`: each is written, served and asked as its README says. And `cairn types`.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import ts from "typescript";
import { WebSocket } from "ws";
import { folder, project, root, run, serve, write } from "../lib/cairn.mjs";
import { deployed } from "../lib/server.mjs";

function starter(t, template, name = "My First Worker") {
  const dir = path.join(folder(t), name);
  const made = run(["new", dir, ...(template ? ["--template", template] : [])]);
  assert.equal(made.status, 0, made.stderr);
  assert.ok(existsSync(path.join(dir, ".gitignore")));
  assert.doesNotMatch(readFileSync(path.join(dir, "wrangler.toml"), "utf8"), /@NAME@/);
  return dir;
}

test("hello runs as it is written, and a folder with files in it is left alone", async (t) => {
  const dir = starter(t);
  const server = await serve(t, dir);
  assert.equal(server.stdout, `cairn: ready on ${server.url}\n`);
  assert.equal(await server.text("/?name=you"), "Hello, you!\n");
  assert.ok(Date.parse((await (await server.fetch("/time")).json()).now) > 0);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  assert.equal(run(["new", dir]).status, 1);
  assert.equal(run(["new", path.join(dir, "x"), "--template", "typescript"]).status, 0, "what hello was called first");
});

test("c-object compiles itself and runs as it is written", { skip: deployed && "objects in C are not uploaded" }, async (t) => {
  const installed = folder(t);
  const pc = readFileSync(path.join(root, "tools/package/cairn.pc"), "utf8");
  writeFileSync(path.join(installed, "cairn.pc"), pc.replace("@PREFIX@", root).replace("@VERSION@", "1"));
  const dir = starter(t, "c-object", "in-c");
  const server = await serve(t, dir, { env: { PKG_CONFIG_PATH: installed } });
  for (const expected of ["1", "2"]) assert.equal(await server.text("/visits"), expected);
  assert.equal(await server.text("/others"), "1");
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test("durable-object counts by name, and goes on counting after a restart", async (t) => {
  const dir = starter(t, "durable-object");
  let server = await serve(t, dir);
  const visit = async (name) => (await server.fetch(name)).json();
  assert.deepEqual(await visit("/a"), { path: "/a", visits: 1 });
  assert.deepEqual(await visit("/a"), { path: "/a", visits: 2 });
  assert.deepEqual(await visit("/b"), { path: "/b", visits: 1 });
  await server.stop();
  server = await serve(t, dir);
  assert.deepEqual(await visit("/a"), { path: "/a", visits: 3 });
});

test("chat: what one says the other hears, who comes later reads it, and rooms are apart", async (t) => {
  const server = await serve(t, starter(t, "chat"));
  const join = async (room, name) => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/room/${room}?name=${name}`);
    const heard = [];
    let tell = () => {};
    socket.onmessage = ({ data }) => { heard.push(JSON.parse(data)); tell(); };
    const until = async (count) => { while (heard.length < count) await new Promise((resolve) => { tell = resolve; }); return heard; };
    await until(1);
    t.after(() => socket.close());
    return { socket, until };
  };
  const ann = await join("one", "ann"), bob = await join("one", "bob"), eve = await join("two", "eve");
  ann.socket.send("hello");
  assert.deepEqual((await bob.until(2))[1], { type: "message", name: "ann", text: "hello" });
  bob.socket.send("x".repeat(3000));
  assert.equal((await ann.until(3))[2].text.length, 2000);
  assert.deepEqual((await (await join("one", "zoe")).until(1))[0].messages.map(({ name }) => name), ["ann", "bob"]);
  eve.socket.send("here");
  assert.deepEqual((await eve.until(2))[1].name, "eve");
  assert.match(await server.text("/"), /<h1>Chat<\/h1>/);
  assert.equal((await server.fetch("/room/one")).status, 426);
  assert.equal((await server.fetch("/room/a%2fb")).status, 404);
});

test("d1-api: migrations make its table; notes are made, listed, read and deleted", { skip: deployed && "test/wrangler/projects.test.mjs has it" }, async (t) => {
  const dir = starter(t, "d1-api", "notes");
  const applied = run(["d1", "migrations", "apply", "DB"], { cwd: dir });
  assert.equal(applied.status, 0, applied.stderr);
  const server = await serve(t, dir);
  const ask = async (method, target, body) => {
    const response = await server.fetch(target, { method, body: body && JSON.stringify(body) });
    const text = await response.text();
    return [response.status, text && JSON.parse(text)];
  };
  const [status, note] = await ask("POST", "/notes", { text: "first" });
  assert.deepEqual([status, note.id, note.text], [201, 1, "first"]);
  assert.deepEqual((await ask("GET", "/notes"))[1], [note]);
  assert.deepEqual(await ask("GET", "/notes/1"), [200, note]);
  assert.equal((await ask("POST", "/notes", { text: 1 }))[0], 400);
  assert.equal((await ask("POST", "/notes"))[0], 400);
  assert.equal((await ask("PUT", "/notes"))[0], 405);
  assert.equal((await ask("DELETE", "/notes/1"))[0], 204);
  assert.equal((await ask("DELETE", "/notes/1"))[0], 404);
  assert.equal((await ask("GET", "/other"))[0], 404);
});

test("static: pages, the page for what is missing, and the fields of _headers", async (t) => {
  const server = await serve(t, starter(t, "static", "site"));
  assert.match(await server.text("/"), /<h1>site<\/h1>/);
  const about = await server.fetch("/about");
  assert.equal(about.headers.get("x-content-type-options"), "nosniff");
  assert.match(await about.text(), /About/);
  const missing = await server.fetch("/nothing");
  assert.equal(missing.status, 404);
  assert.match(await missing.text(), /no such page/);
  assert.equal((await server.fetch("/_headers")).status, 404);
});

test("each template is in the help, and one that is not there is refused with the list of those that are", (t) => {
  const names = readdirSync(path.join(root, "templates")).sort();
  const wrong = run(["new", path.join(folder(t), "x"), "--template", "cobol"]);
  assert.deepEqual([wrong.status, wrong.stderr], [2, `cairn: there is no template "cobol"; there are ${names.join(", ")}\n`]);
  const help = run(["help", "new"]).stdout;
  for (const name of names) assert.match(help, new RegExp(`^  ${name} `, "m"));
});

test("init makes a project of a folder, and what was there stays", async (t) => {
  const dir = folder(t);
  write(dir, { "src/index.ts": `export default { fetch: () => new Response("my own") };`, "package.json": "{}" });
  const made = run(["init", "--yes"], { cwd: dir });
  assert.equal(made.status, 0, made.stderr);
  assert.equal(readFileSync(path.join(dir, "package.json"), "utf8"), "{}");
  const server = await serve(t, dir);
  assert.equal(await server.text("/"), "my own");
  const again = run(["init"], { cwd: dir });
  assert.equal(again.status, 1);
  assert.match(again.stderr, /is a project already/);
});

/** What TypeScript has to say about a file with these declarations beside it. */
function complaints(dir, files) {
  const program = ts.createProgram(files.map((name) => path.join(dir, name)), { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, types: [] });
  return ts.getPreEmitDiagnostics(program).map((each) => ts.flattenDiagnosticMessageText(each.messageText, " "));
}

test("types: declarations of the bindings that TypeScript takes, and that say when they are old", (t) => {
  const dir = project(t, {
    "wrangler.toml": `
name = "w"
main = "src/index.ts"
compatibility_date = "2026-01-01"
[vars]
TEXT = "it's \\"quoted\\""
LIST = [1, "a", { deep = true }]
"odd-name" = "x"
[env.staging.vars]
TEXT = "other"
[[kv_namespaces]]
binding = "KV"
[[d1_databases]]
binding = "DB"
[[r2_buckets]]
binding = "FILES"
bucket_name = "files"
[[durable_objects.bindings]]
name = "COUNTER"
class_name = "Counter"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Counter"]
[[queues.producers]]
binding = "JOBS"
queue = "jobs"
[[services]]
binding = "OTHER"
service = "other"
[assets]
directory = "public"
binding = "ASSETS"
[version_metadata]
binding = "META"
`,
    ".dev.vars": "SECRET=never shown\n",
    "public/x.txt": "",
    "src/index.ts": `export class Counter { next(): number { return 1; } }
declare const env: Env;
export const checks: [number, "it's \\"quoted\\"" | "other", true, "x", string] = [env.COUNTER.get().next(), env.TEXT, env.LIST[2].deep, env["odd-name"], env.SECRET];
export const used: [KVNamespace, D1Database, R2Bucket, Queue, Fetcher, Fetcher, WorkerVersionMetadata] = [env.KV, env.DB, env.FILES, env.JOBS, env.OTHER, env.ASSETS, env.META];
`,
    // What @cloudflare/workers-types would bring.
    "runtime.d.ts": `${["KVNamespace", "D1Database", "R2Bucket", "Queue", "Fetcher", "WorkerVersionMetadata"].map((name) => `interface ${name} { is${name}: true }`).join("\n")}
interface DurableObjectNamespace<T = unknown> { get(): T }\n`,
  });
  const made = run(["types"], { cwd: dir });
  assert.equal(made.status, 0, made.stderr);
  const text = readFileSync(path.join(dir, "worker-configuration.d.ts"), "utf8");
  assert.doesNotMatch(text, /never shown/);
  assert.match(text, /mainModule: typeof import\("\.\/src\/index"\);\n\t\tdurableNamespaces: "Counter";/);
  const list = ["runtime.d.ts", "worker-configuration.d.ts", "src/index.ts"];
  assert.deepEqual(complaints(dir, list), []);
  write(dir, { "src/wrong.ts": `declare const env: Env; export const n: number = env.TEXT; env.NOTHING;` });
  assert.equal(complaints(dir, [...list, "src/wrong.ts"]).length, 2);
  assert.equal(run(["types", "--check"], { cwd: dir }).status, 0);
  write(dir, { "wrangler.toml": readFileSync(path.join(dir, "wrangler.toml"), "utf8").replace('binding = "KV"', 'binding = "CACHE"') });
  const old = run(["types", "--check"], { cwd: dir });
  assert.equal(old.status, 1);
  assert.match(old.stderr, /run `cairn types`/);
  // Elsewhere in the project, and with plain types.
  assert.equal(run(["types", "src/env.d.ts", "--loose-vars"], { cwd: dir }).status, 0);
  const loose = readFileSync(path.join(dir, "src/env.d.ts"), "utf8");
  assert.match(loose, /import\("\.\.\/src\/index"\)/);
  assert.match(loose, /TEXT: string;/);
  assert.equal(run(["types", "env.ts"], { cwd: dir }).status, 1);
});
