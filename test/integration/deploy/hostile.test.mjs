// The API under attack: every route without a token, with the wrong scope and for another account; bodies cut short, nested and swollen;
// names that look like something else; migrations and bindings that lie. What serves stays, and the server answers in the platform's form.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { root } from "../lib/server.mjs";
import { Client, dataFolder, empty, hello, tally, token } from "./lib.mjs";

const JS = "application/javascript+module";

/** The table of src/v4/v4.c: [method, path, scopes]. */
function readRoutes() {
  const source = readFileSync(path.join(root, "src/v4/v4.c"), "utf8");
  const prefixes = { V4: [], ACCOUNT: ["accounts", "*"], SCRIPT: ["accounts", "*", "workers", "scripts", "*"] };
  return [...source.matchAll(/\{"([A-Z]+)",\s*(V4|ACCOUNT|SCRIPT)\(([^)]*)\),\s*\w+,\s*(?:RAW \| )?FOR\(([^)]*)\)/g)].map(([, method, kind, list, scopes]) =>
    ({ method, parts: [...prefixes[kind], ...JSON.parse(`[${list}]`)], scopes: scopes.split("|").map((scope) => scope.trim()) }));
}

async function start(t) {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", hello("good"));
  /** Refused, with a code of the platform, and nothing has changed. */
  const refused = async ({ status, body }, what) => {
    assert.ok(status >= 400 && status < 500, `${what}: ${status} ${JSON.stringify(body).slice(0, 300)}`);
    assert.equal(body.success, false, what);
    assert.ok(Number.isInteger(body.errors[0].code) && body.errors[0].message, what);
  };
  const intact = async () => {
    assert.equal(await server.text("/"), "good");
    assert.equal(readdirSync(path.join(data, "deployed/code")).length, 1);
    assert.deepEqual((await client.result("GET", "workers/scripts")).map(({ id }) => id), ["w"]);
  };
  return { data, server, client, refused, intact };
}

test("every route: not without a token, not with another scope, not for another account", async (t) => {
  const { data, server, client, intact } = await start(t);
  const routes = readRoutes();
  assert.ok(routes.length > 80, String(routes.length));
  const target = (parts, account) => `/${parts.map((part, i) => (part === "*" ? (parts[i - 1] === "accounts" ? account : "w") : part === "**" ? "k" : part)).join("/")}`;
  const tokens = Object.fromEntries(["read", "deploy", "data"].map((scope) => [scope.toUpperCase(), token(data, scope, scope)]));
  for (const { method, parts, scopes } of routes) {
    const what = `${method} ${parts.join("/")}`;
    const none = await new Client(server, { account: client.account }).ask(method, target(parts, client.account));
    assert.ok([401, 429].includes(none.status), `${what}: ${none.status} without a token`);
    for (const [scope, who] of Object.entries(tokens)) {
      if (scopes.includes(scope) || scopes.includes("ANYONE")) continue;
      assert.equal((await new Client(server, who).ask(method, target(parts, client.account))).status, 403, `${what} with ${scope}`);
    }
    if (parts[0] !== "accounts" || parts.length < 3 || scopes.includes("CN_SCOPE_UPLOAD")) continue;
    for (const account of ["0".repeat(32), "x", "%2e%2e"]) {
      const { status, body } = await client.ask(method, target(parts, account));
      assert.ok(status === 403 || status === 404, `${what} for ${account}: ${status} ${JSON.stringify(body)}`);
    }
  }
  await intact();
});

const part = (name, text, type = JS, more = "") => `--X\r\nContent-Disposition: form-data; name="${name}"${more}\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`;
const metadata = (value = {}) => part("metadata", JSON.stringify({ main_module: "index.js", compatibility_date: "2026-01-01", ...value }), "application/json");
const whole = metadata() + part("index.js", hello("bad")) + "--X--\r\n";

test("multipart: cut anywhere, nested, swollen, without an end or a boundary", async (t) => {
  const { server, client, refused } = await start(t);
  const put = (body, type = "multipart/form-data; boundary=X") => client.ask("PUT", "workers/scripts/w", { body, headers: { "content-type": type } });
  for (let cut = 1; cut < whole.length - 4; cut += 7) await refused(await put(whole.slice(0, cut)), `cut at ${cut}`);
  const bodies = {
    "no boundary": [whole, "multipart/form-data"], "an empty one": [whole, "multipart/form-data; boundary="], "an empty one in quotes": [whole, 'multipart/form-data; boundary=""'],
    "another boundary": [whole, "multipart/form-data; boundary=Y"], "a boundary that is too long": [whole, `multipart/form-data; boundary=${"X".repeat(5000)}`],
    "a boundary that is a pattern": [whole, "multipart/form-data; boundary=.*"], "no multipart": [whole.slice(1), "text/plain"], "a list": ["[]", "application/json"],
    "nested": [metadata() + `--X\r\nContent-Disposition: form-data; name="index.js"\r\nContent-Type: multipart/mixed; boundary=Y\r\n\r\n--Y\r\n\r\n${hello("bad")}\r\n--Y--\r\n--X--\r\n`],
    "ten thousand modules": [metadata() + Array.from({ length: 10_000 }, (_, i) => part(`m${i}.js`, "1")).join("") + "--X--\r\n"],
    "ten thousand fields": [Array.from({ length: 10_000 }, (_, i) => part(`metadata[f${i}]`, "1")).join("") + "--X--\r\n"],
    "a field of great depth": [part(`metadata${"[a]".repeat(5000)}`, "1") + "--X--\r\n"],
    "ten thousand metadata": [metadata().repeat(10_000) + "--X--\r\n"],
    "a header without an end": [`--X\r\nContent-Disposition: form-data; name="${"x".repeat(4 << 20)}`],
    "a header of megabytes": [metadata() + part("index.js", "1", `text/plain${"x".repeat(4 << 20)}`) + "--X--\r\n"],
    "a hundred thousand headers": [metadata() + `--X\r\n${"A: b\r\n".repeat(100_000)}\r\n1\r\n--X--\r\n`],
    "no name": [metadata() + "--X\r\nContent-Disposition: form-data\r\n\r\n1\r\n--X--\r\n"],
    "no form-data": [metadata() + '--X\r\nContent-Disposition: attachment; name="index.js"\r\n\r\n1\r\n--X--\r\n'],
    "no headers": [metadata() + "--X\r\n\r\n1\r\n--X--\r\n"], "delimiters alone": ["--X\r\n".repeat(100_000)],
    "metadata twice, in two forms": [metadata() + part("metadata[main_module]", "index.js") + part("index.js", hello("bad")) + "--X--\r\n"],
    "metadata that is a file": [part("metadata", "\u0000\u0001", "application/octet-stream", '; filename="metadata"') + part("index.js", hello("bad")) + "--X--\r\n"],
    "JSON of great depth": [part("metadata", `{"main_module":"index.js","bindings":${"[".repeat(1 << 20)}`, "application/json") + "--X--\r\n"],
    "JSON with great members": [part("metadata", `{${Array.from({ length: 200_000 }, (_, i) => `"m${i}":1`).join()}}`, "application/json") + "--X--\r\n"],
    "a script without a main module": [part("metadata", '{"body_part":"x"}', "application/json") + part("index.js", hello("bad")) + "--X--\r\n"],
  };
  for (const [what, [body, type]] of Object.entries(bodies)) await refused(await put(body, type), what);
  // What is lenient stays what it is: the first name counts.
  for (const disposition of ['name="../x.js"; name="index.js"', 'name="index.js/../../x"', 'name="./../x"', "name=/etc/x", 'name="index.js\\"', 'name="a\u0000b"', "name=\"\"", 'name=".."', "name=\"index.js\"; name=\"x\"; filename=\"../../x\""]) {
    const answer = await put(`${metadata()}--X\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${JS}\r\n\r\n${hello("good")}\r\n--X--\r\n`);
    if (answer.status !== 200) await refused(answer, disposition);
    else assert.match(disposition, /^name="index\.js"; name/);
  }
  assert.equal(await server.text("/"), "good");
});

test("names of modules that look like something else", async (t) => {
  const { data, server, client, refused } = await start(t);
  const text = (name) => ({ modules: { [name]: ["own", "text/plain"] } });
  const before = readdirSync(path.join(data, "deployed")).sort();
  for (const name of ["..", ".", "../x", "a/../../x", "/x", "//x", "a//x", "a/", "\\x", "..\\x", "C:\\x", "a\u0000", "a\u001f", "a\u007f", "x".repeat(256), `${"a/".repeat(40)}x`, "a/./b", "index.js/x"])
    await refused(await client.script("w", hello("bad"), text(name)), JSON.stringify(name));
  assert.equal(await server.text("/"), "good");
  // Names of ours, and names that differ by case, are names like any other: they are below src/ of the version, and nowhere else.
  const odd = ["wrangler.json", "wrangler.toml", "package.json.txt", "bundle/job.json.txt", "state.json.txt", "key", "sums.json.txt", "Index.js", "INDEX.JS", "node_modules/x/note.txt", "...", "..x", "a b", "%2e%2e%2fx", "CON", "~", "-rf", "$(x)", "a;b", "ä/ü.txt", "constructor", "__proto__"];
  for (const name of odd) {
    const answer = await client.script("w", hello("good"), text(name));
    assert.ok(answer.status === 200 || answer.status === 400, `${name}: ${answer.status} ${JSON.stringify(answer.body)}`);
    assert.equal(await server.text("/"), "good", name);
  }
  assert.deepEqual(readdirSync(path.join(data, "deployed")).sort(), before);
  assert.equal((await client.script("w", "import x from './Note.txt'; import y from './note.txt'; export default { fetch: () => new Response(x + y) };", { modules: { "Note.txt": ["N", "text/plain"], "note.txt": ["n", "text/plain"] } })).status, 200);
  assert.equal(await server.text("/"), "Nn");
});

test("migrations that lie change nothing, and cannot make the state large", async (t) => {
  const { data, server, client, refused } = await start(t);
  const source = "import { DurableObject } from 'cloudflare:workers'; export class A extends DurableObject { n() { return 'good'; } } export default { fetch: (r, env) => new Response('good') };";
  const bindings = [{ type: "durable_object_namespace", name: "A", class_name: "A" }];
  const deploy = (migrations, more = {}) => client.script("w", source, { metadata: { bindings, migrations, ...more } });
  assert.equal((await deploy({ new_tag: "v1", new_sqlite_classes: ["A"] })).status, 200);
  for (const migrations of [
    { new_tag: "v2", new_sqlite_classes: ["B"] }, { old_tag: "v9", new_tag: "v2" }, { old_tag: "v1" }, { old_tag: "v1", new_tag: "" }, { old_tag: "v1", new_tag: 5 },
    { old_tag: "v1", new_tag: "v1" }, { old_tag: "v1", new_tag: "v2", new_sqlite_classes: ["A"] }, { old_tag: "v1", new_tag: "v2", new_sqlite_classes: ["Missing"] },
    { old_tag: "v1", new_tag: "v2", deleted_classes: ["Nobody"] }, { old_tag: "v1", new_tag: "v2", renamed_classes: [{ from: "Nobody", to: "A" }] }, { old_tag: "v1", new_tag: "v2", renamed_classes: ["A"] },
    { old_tag: "v1", new_tag: "v2", renamed_classes: [{ from: "A", to: "../x" }] }, { old_tag: "v1", new_tag: "v2", transferred_classes: [{ from: "A", from_script: "nobody", to: "C" }] },
    { old_tag: "v1", new_tag: "v2", new_sqlite_classes: [5] }, { old_tag: "v1", new_tag: "v2", new_sqlite_classes: [""] }, { old_tag: "v1", new_tag: "v2", new_sqlite_classes: ["a/b"] },
    { old_tag: "v1", new_tag: "x".repeat(1 << 20) }, { old_tag: "v1", new_tag: "v2", new_sqlite_classes: Array.from({ length: 50_000 }, (_, i) => `Class${i}`) },
    { old_tag: "v1", new_tag: "v2", steps: Array.from({ length: 50_000 }, () => ({})) }, { old_tag: "v1", new_tag: "v2\u0000x" },
  ]) await refused(await deploy(migrations), JSON.stringify(migrations).slice(0, 200));
  assert.equal(await server.text("/"), "good");
  assert.ok(readFileSync(path.join(data, "deployed/state.json")).length < 100_000);
  assert.equal((await deploy({ old_tag: "v1", new_tag: "v2" })).status, 200);
});

test("bindings that name what is not theirs, or is nothing", async (t) => {
  const { server, client, refused } = await start(t);
  await client.deploy("victim", "import { DurableObject } from 'cloudflare:workers'; export class Secret extends DurableObject { n() { return 'secret'; } } export default { fetch: () => new Response('victim') };", { metadata: { bindings: [{ type: "durable_object_namespace", name: "S", class_name: "Secret" }, { type: "secret_text", name: "KEY", text: "hidden" }], migrations: { new_tag: "v1", new_sqlite_classes: ["Secret"] } } });
  const deploy = (binding) => client.script("w", hello("bad"), { metadata: { bindings: [binding].flat() } });
  const bad = [
    { type: "durable_object_namespace", name: "O", class_name: "Secret" }, { type: "durable_object_namespace", name: "O", class_name: "Nobody", script_name: "victim" }, { type: "durable_object_namespace", name: "O", class_name: "Secret", script_name: "nobody" },
    { type: "service", name: "S", service: "nobody" }, { type: "service", name: "S", service: "../victim" },
    { type: "inherit", name: "KEY" }, { type: "inherit", name: "KEY", old_name: "KEY" }, { type: "inherit", name: "KEY", version_id: "latest" },
    { type: "secret_text", name: "KEY", sealed: "stolen" }, { type: "plain_text", name: "" }, { type: "plain_text", name: "x".repeat(201), text: "" }, { type: "plain_text", name: 5, text: "" }, { type: "plain_text", name: "a" }, { type: 5, name: "a" }, "x", null, 5,
    { type: "kv_namespace", name: "K" }, { type: "kv_namespace", name: "K", namespace_id: 5 }, { type: "kv_namespace", name: "K", namespace_id: "x".repeat(100_000) }, { type: "d1", name: "D", id: { a: 1 } }, { type: "r2_bucket", name: "R", bucket_name: ["x"] },
    { type: "queue", name: "Q" }, { type: "wasm_module", name: "W", part: "../../key" }, { type: "data_blob", name: "W", part: "index.js" }, { type: "dispatch_namespace", name: "N", namespace: "x" },
    Array.from({ length: 501 }, (_, i) => ({ type: "plain_text", name: `n${i}`, text: "" })),
  ];
  for (const binding of bad) await refused(await deploy(binding), JSON.stringify(binding).slice(0, 160));
  // Names with slashes and dollars are names: they lead to no file and to nobody else's data.
  await client.deploy("other", `export default { async fetch(request, env) {
      for (const [name, kv] of Object.entries(env)) if (name.startsWith("K")) { await kv.put("k", name); if ((await kv.list()).keys.length !== 1) return new Response("another's " + name); }
      await env.R.put("../../../x", "body");
      return new Response(await (await env.R.get("../../../x")).text());
    } };`, { metadata: { bindings: [
    { type: "kv_namespace", name: "K1", namespace_id: "../x" }, { type: "kv_namespace", name: "K2", namespace_id: "$queue/x" }, { type: "kv_namespace", name: "K3", namespace_id: "victim/Secret" }, { type: "r2_bucket", name: "R", bucket_name: "files" } ] } });
  assert.deepEqual(await tally(server, 1, () => ({ headers: { host: "other.localhost" } })), { body: 1 });
  assert.deepEqual(await tally(server, 1, () => ({ headers: { host: "w.localhost" } })), { good: 1 });
});

test("JSON bodies: depth bombs, wrong kinds, and other things that are none, at every route that reads one", async (t) => {
  const { client, intact } = await start(t);
  const bodies = ["[".repeat(200_000), `${'{"a":'.repeat(100_000)}1`, "null", "5", '"x"', "[]", "{}", "{", "\u0000", `{"a":1,"a":2}`, "[1,", `"${"x".repeat(1 << 20)}"`, '{"\\u0000":1}', "\ud800"];
  for (const { method, parts } of readRoutes()) {
    if (!["POST", "PUT", "PATCH"].includes(method) || parts.includes("transfers") || parts.includes("upload")) continue;
    const target = `/${parts.map((name, i) => (name === "*" ? (parts[i - 1] === "accounts" ? client.account : "nobody") : name === "**" ? "k" : name)).join("/")}`;
    for (const body of bodies) {
      const { status, body: answer } = await client.ask(method, target, { body, headers: { "content-type": "application/json" } });
      assert.ok(status < 500 || status === 501, `${method} ${target} ${body.slice(0, 20)}: ${status} ${JSON.stringify(answer).slice(0, 200)}`);
    }
  }
  await intact();
});
