// Hostile uploads: the server answers with an error of the platform's form, keeps what serves, and writes nothing outside (D5, U1, A3).
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test from "node:test";
import { project, serve } from "../lib/cairn.mjs";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

const JS = "application/javascript+module";

test("names of modules and assets that lead out of their folder are refused", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", hello("good"));
  const multipart = (parts) => ({
    body: parts.map(([name, type, text]) =>
      `--X\r\nContent-Disposition: form-data; name="${name}"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`).join("") + "--X--\r\n",
    headers: { "content-type": "multipart/form-data; boundary=X" },
  });
  const metadata = JSON.stringify({ main_module: "index.js", compatibility_date: "2026-01-01" });
  const names = ["../evil.js", "/etc/evil.js", "a/../../evil.js", "a//b.js", "..", ".", "a/./b.js", "a\\..\\b.js", "x".repeat(2000), "a\u0001b.js"];
  for (const name of names) {
    const { status, body } = await client.ask("PUT", "workers/scripts/w",
      multipart([["metadata", "application/json", metadata], ["index.js", JS, hello("bad")], [name, JS, "1"]]));
    assert.equal(status, 400, name);
    assert.equal(body.errors[0].code, 10021);
  }
  for (const file of ["/../evil", "/a/../../evil", "//x", "/", "/a\u0000b"]) {
    const { status } = await client.ask("POST", "workers/scripts/w/assets-upload-session",
      { json: { manifest: { [file]: { hash: "0".repeat(32), size: 1 } } } });
    assert.equal(status, 400, file);
  }
  for (const hash of ["../../../../x", "0".repeat(31), "G".repeat(32), ""]) {
    const { status } = await client.ask("POST", "workers/scripts/w/assets-upload-session", { json: { manifest: { "/a": { hash, size: 1 } } } });
    assert.equal(status, 400, hash);
  }
  for (const name of ["..", "%2e%2e", "a%2f..%2fb", "A", "a.b", "-a", "a".repeat(64), "%00"]) {
    const { status } = await client.script("x", hello("bad"), {}, "PUT", `workers/scripts/${name}`);
    assert.ok([400, 403, 404, 405].includes(status), `${name}: ${status}`);
  }
  assert.equal(await server.text("/"), "good");
  assert.ok(!existsSync(path.join(data, "evil.js")) && !existsSync(path.join(data, "deployed/evil.js")));
  assert.equal(readdirSync(path.join(data, "deployed/code")).length, 1);
});

test("bodies that are no upload are refused", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const put = (body, type = "multipart/form-data; boundary=X") =>
    client.ask("PUT", "workers/scripts/w", { body, headers: { "content-type": type } });
  const part = (name, text, type = "application/json") =>
    `--X\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`;
  const bodies = [
    ["", undefined], ["{}", "application/json"], ["--X--\r\n", undefined], ["--X", "multipart/form-data"],
    ["--X", `multipart/form-data; boundary=${"b".repeat(300)}`], [part("metadata", "{}"), undefined],
    [part("metadata", "not json") + "--X--", undefined], [part("metadata", "[]") + "--X--", undefined],
    [part("metadata", "{}") + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js"}') + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js"}') + part("metadata", "{}") + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js"}') + part("a.js", "1", JS) + part("a.js", "2", JS) + "--X--", undefined],
    [part("metadata", '{"main_module":"a.py"}') + part("a.py", "1", "text/x-python") + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js","bindings":[{"type":"plain_text"}]}') + part("a.js", hello("x"), JS) + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js","bindings":[{"type":"secret_text","name":"A"}]}') + part("a.js", hello("x"), JS) + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js","bindings":[{"type":"json","name":"A","json":1},{"type":"json","name":"A","json":1}]}') + part("a.js", hello("x"), JS) + "--X--", undefined],
    [part("metadata", '{"main_module":"a.js","assets":{"jwt":"a.b.c"}}') + part("a.js", hello("x"), JS) + "--X--", undefined],
    [part("metadata", `{"main_module":"a.js","x":${"[".repeat(5000)}`) + "--X--", undefined],
  ];
  for (const [body, type] of bodies) {
    const { status, body: answer } = await put(body, type);
    assert.ok(status >= 400 && status < 500, `${body.slice(0, 200)}: ${status} ${JSON.stringify(answer)}`);
    assert.equal(answer.success, false);
  }
  const many = Array.from({ length: 1001 }, (_, i) => part(`m${i}.js`, "1", JS)).join("");
  assert.equal((await put(part("metadata", '{"main_module":"m1.js"}') + many + "--X--")).status, 413);
  // The answer comes before the end of the body; Node.js's client may see the closed connection first.
  const large = await put(Buffer.alloc((64 << 20) + 1000)).catch((error) => error);
  assert.ok(large.status === 413 || ["ECONNRESET", "EPIPE"].includes(large.cause?.code), String(large.status ?? large.cause));
  assert.deepEqual(await client.result("GET", "workers/scripts"), []);
  assert.deepEqual(readdirSync(path.join(data, "deployed/code")), []);
  await client.deploy("w", hello("after all"));
  assert.equal(await server.text("/"), "after all");
});

test("an upload of assets takes the files of its manifest and no others", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const hash = "0123456789abcdef0123456789abcdef";
  const { jwt } = await client.result("POST", "workers/scripts/w/assets-upload-session", { json: { manifest: { "/a": { hash, size: 1 } } } });
  const send = (name, text, authorization = `Bearer ${jwt}`) => {
    const form = new FormData();
    form.set(name, new Blob([text]), name);
    return client.ask("POST", "workers/assets/upload?base64=true", { body: form, headers: { authorization } });
  };
  assert.equal((await send("f".repeat(32), "AAAA")).status, 400);
  assert.equal((await send("../../x", "AAAA")).status, 400);
  assert.equal((await send(hash, "%%%")).status, 400);
  assert.equal((await send(hash, "AAAA", `Bearer ${jwt.slice(0, -1)}x`)).status, 401);
  // It was not sent: the version is refused. The token is another worker's: likewise.
  assert.equal((await client.script("w", hello("x"), { metadata: { assets: { jwt, config: {} } } })).status, 404);
  const { jwt: second } = await client.result("POST", "workers/scripts/w/assets-upload-session", { json: { manifest: { "/a": { hash, size: 1 } } } });
  assert.equal((await client.script("v", hello("x"), { metadata: { assets: { jwt: second, config: {} } } })).status, 400);
  // Nor is the token good for anything else.
  assert.equal((await client.ask("GET", "workers/scripts", { headers: { authorization: `Bearer ${second}` } })).status, 403);
});

test("no file of the server gets into a bundle or into a message about it (H3)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  writeFileSync(path.join(data, "hidden.json"), '{"text":"of the server"}');
  writeFileSync(path.join(data, "hidden.txt"), "of the server");
  writeFileSync(path.join(data, "hidden"), "of the server");
  writeFileSync(path.join(data, "map.json"), "of the server");
  await client.deploy("w", hello("good"));
  const from = (name) => `import x from ${JSON.stringify(name)}; export default { fetch() { return new Response(JSON.stringify(x)); } };`;
  const up = "../../../../";
  const refused = [
    ...["hidden.json", "hidden.json?raw", "hidden.txt", "hidden", "not-there"].flatMap((name) => [from(up + name), from(path.join(data, name))]),
    from("../../../state.json"), from("../../../key"), from("../wrangler.json"), from("../bundle/job.json"), from("/etc/passwd"), from("foo"), from("bar"),
    "export default { async fetch(r) { return new Response(JSON.stringify(await import(`" + up + "hid${r.method}.json`))); } };",
  ];
  const modules = {
    "package.json": [`{"browser":{"foo":"${up}hidden.json"}}`, "application/json"],
    "tsconfig.json": [`{"extends":"${up}map.json","compilerOptions":{"paths":{"bar":["${up}hidden.json"]}}}`, "application/json"],
    "hidden": ["own", "text/plain"], "key": ["own", "application/octet-stream"], "passwd": ["own", "text/plain"],
  };
  writeFileSync(path.join(data, "hidGET.json"), '"of the server"');
  for (const source of refused) {
    const { status, body } = await client.script("w", source, { modules });
    assert.equal(status, 400, `${source}: ${JSON.stringify(body)}`);
    assert.ok(!JSON.stringify(body).includes("of the server"), source);
  }
  assert.equal(await server.text("/"), "good");
  // What is asked for while it runs fails there, as on the platform.
  for (const way of [`await import("${up}hidden.json")`, `require("${up}hidden.json")`, `await import("/etc/passwd")`]) {
    await client.deploy("w", `export default { async fetch() { try { return Response.json(${way}); } catch (error) { return new Response(error.message); } } };`, { modules });
    assert.match(await server.text("/"), /^No such module/, way);
  }
  // A source map is read by esbuild itself: one that never ends would end the server.
  for (const comment of ["//# sourceMappingURL=../../../../../../../../../../dev/zero", "/* x @ sourceMappingURL=../../../../../../../../../../dev/zero */", "//# sourceMappingURL=/dev/zero"]) {
    await client.deploy("w", `${hello(comment)}\n${comment}\n`);
    assert.equal(await server.text("/"), comment);
  }
  // Its own are as before.
  await client.deploy("w", `import t from "./a/b.txt"; import j from "./a/c.json"; import m from "./a/m.js"; import h from "./hidden";
    export default { fetch() { return new Response([t, j.c, m, h].join()); } };`, { modules: {
    "a/b.txt": ["text", "text/plain"], "a/c.json": ['{"c":"json"}', "application/json"], "hidden": ["own", "text/plain"],
    "a/m.js": ['import up from "../up.js"; export default up;', JS], "up.js": ['export default "up";', JS] } });
  assert.equal(await server.text("/"), "text,json,up,own");
});

test("metadata of another shape is refused, and what is wrong with a version is a 400 (U4, W5)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const metadata = { bindings: [{ type: "plain_text", name: "A", text: "a" }] };
  await client.deploy("w", "export default { fetch(r, env) { return new Response(env.A); } };", { metadata });
  const refused = async (options, pattern) => {
    const { status, body } = await client.script("w", options.source ?? hello("bad"), options);
    assert.equal(status, 400, JSON.stringify([options, body]));
    assert.equal(body.errors[0].code, 10021);
    assert.match(body.errors[0].message, pattern);
    assert.equal(await server.text("/"), "a");
  };
  for (const [name, values] of Object.entries({
    bindings: ["A", 5, {}, true], keep_bindings: ["plain_text"], assets: [5, [], "x"], annotations: [[], "x"], migrations: [[], "v1", 5] }))
    for (const value of values) await refused({ metadata: { [name]: value } }, new RegExp(`"${name}" of the metadata must be`));
  for (const steps of ["x", {}, [5], [null], [{ new_classes: "X" }], [{ deleted_classes: { 0: "X" } }]])
    await refused({ metadata: { migrations: { new_tag: "v1", steps } } }, /must be/);
  await refused({ metadata: { annotations: { "workers/message": "m".repeat(1001) } } }, /at most 1000 bytes/);
  await refused({ modules: { "a": ["1", "text/plain"], "a/b": ["1", "text/plain"] } }, /folder/);
  await refused({ modules: { "a/b/c": ["1", "text/plain"], "a/b": ["1", "text/plain"] } }, /folder/);
  await refused({ source: "throw new Error('at start'); export default {};" }, /at start/);
  await refused({ metadata: { bindings: [{ type: "durable_object_namespace", name: "O", class_name: "X" }], migrations: { new_tag: "v1", new_sqlite_classes: ["X"] } } }, /X/);
  await refused({ metadata: { bindings: [{ type: "durable_object_namespace", name: "O", class_name: "m:X" }] } }, /m:X/);
  await refused({ metadata: { bindings: [{ type: "quantum", name: "Q" }] } }, /quantum/);
  // Two bytes of JSON become a hundred in memory: the number of values is bounded, not only the bytes.
  const bomb = await client.ask("POST", "storage/kv/namespaces/x/bulk/get", { body: `{"keys":[${"[],".repeat(1 << 20)}[]]}`, headers: { "content-type": "application/json" } });
  assert.deepEqual([bomb.status, /too many values/.test(bomb.body.errors[0].message)], [400, true]);
  await refused({ metadata: { bindings: [], x: Array(1 << 20).fill(1) } }, /too many values/);
  // A session keeps what it needs of a manifest.
  const hash = "0".repeat(32);
  const session = (manifest) => client.ask("POST", "workers/scripts/w/assets-upload-session", { json: { manifest } });
  assert.equal((await session({ "/a": { hash, size: 1, more: "x".repeat(4 << 20) } })).status, 200);
  const long = (i) => `/${Array.from({ length: 4 }, () => String(i).padStart(200, "x")).join("/")}`;
  assert.equal((await session(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [long(i), { hash, size: 1 }])))).status, 413);
});

test("uploads that do not end have their share of memory and no more (A4 of account.h)", async (t) => {
  const data = dataFolder(t);
  const dir = project(t, {
    "wrangler.json": JSON.stringify({ name: "w", main: "index.js", compatibility_date: "2026-01-01", kv_namespaces: [{ binding: "K", id: "k" }], cairn: { limits: { memory_bytes: 400 << 20 } } }),
    "index.js": hello("there"),
  });
  const server = await serve(t, dir, { args: ["--data", data, "--lanes", "1"], env: { CAIRN_ADMIN: "127.0.0.1:0", CAIRN_SANDBOX: "" } });
  const [, url] = await server.until(/admin on (http:\S+)/);
  const who = token(data);
  const bytes = Buffer.alloc(50 << 20);
  const requests = Array.from({ length: 12 }, () => {
    const request = http.request(`${url}/client/v4/accounts/${who.account}/workers/scripts/v`, {
      method: "PUT", headers: { authorization: `Bearer ${who.token}`, "content-type": "multipart/form-data; boundary=X", "content-length": 60 << 20 } });
    const over = new Promise((resolve) => {
      request.on("response", (response) => resolve(response.statusCode)).on("error", () => resolve("refused"));
      request.write(bytes, () => resolve("taken"));
    });
    return { request, over };
  });
  // Each was taken as far as it goes, or refused; together they would be 600 MB.
  const ends = await Promise.all(requests.map(({ over }) => over));
  assert.ok(ends.some((end) => end !== "taken"), ends.join());
  assert.equal(await server.text("/"), "there");
  for (const { request } of requests) request.destroy();
});

test("the name of a module is a name and no pattern: nobody else waits for it (R3 of tools/bundler/rules.mjs)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const stars = `${"a*".repeat(30)}b.txt`, other = `${"a".repeat(120)}c.txt`;
  await client.deploy("w", `import t from "./${other}"; export default { fetch: () => new Response(t) };`, {
    modules: { [stars]: ["stars", "text/plain"], [other]: ["other", "text/plain"] },
  });
  assert.equal(await server.text("/"), "other");
  // What is said of the one is not said of another that a pattern would fit.
  await client.deploy("w", `import t from "./x1.bin"; export default { fetch: () => new Response(typeof t) };`, {
    modules: { "x*.bin": ["data", "application/octet-stream"], "x1.bin": ["text", "text/plain"] },
  });
  assert.equal(await server.text("/"), "string");
});
