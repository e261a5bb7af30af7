// What other commands of wrangler ask for than those of a deployment: modules of a version, secrets of one that waits, workers in the
// newer part of the API, settings of queues, what is said of objects; and what is not built.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

const source = `import text from "./a/note.txt"; import bytes from "./bytes.bin";
  export default { fetch(request, env) { return Response.json([text, new Uint8Array(bytes).length, env.ONE ?? null, env.TWO ?? null]); } };`;
const modules = { "./a/note.txt": ["noted ü", "text/plain"], "bytes.bin": [new Uint8Array([0, 13, 10, 45, 45, 255]), "application/octet-stream"] };

test("C1: the modules of a version come back as they went in, and can go in again", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const client = new Client(server, who);
  await client.deploy("w", source, { modules });
  const newest = async () => (await client.result("GET", "workers/scripts/w/versions")).items[0].id;
  const first = await newest();
  const content = async (target) => {
    const response = await fetch(`${server.api}/accounts/${who.account}/${target}`, { headers: { authorization: `Bearer ${who.token}` } });
    return { response, form: response.ok ? await response.formData() : null };
  };
  for (const target of [`workers/scripts/w/content/v2?version=${first}`, `workers/services/w/environments/production/content/v2?version=${first}`]) {
    const { response, form } = await content(target);
    assert.equal(response.headers.get("cf-entrypoint"), "index.js");
    assert.deepEqual([...form.keys()].sort(), ["a/note.txt", "bytes.bin", "index.js"]);
    assert.equal(await form.get("index.js").text(), source);
    assert.deepEqual([form.get("index.js").type, form.get("a/note.txt").type, form.get("bytes.bin").type], ["application/javascript+module", "text/plain", "application/octet-stream"]);
    assert.deepEqual([...new Uint8Array(await form.get("bytes.bin").arrayBuffer())], [0, 13, 10, 45, 45, 255]);
    form.set("metadata", JSON.stringify({ main_module: "index.js", compatibility_date: "2026-01-01", bindings: [] }));
    await client.deploy("w", hello("other"));
    assert.equal(await server.text("/"), "other");
    assert.equal((await client.ask("PUT", "workers/scripts/w", { body: form })).status, 200);
    assert.deepEqual(await (await server.fetch("/")).json(), ["noted ü", 6, null, null]);
  }
  await client.deploy("w", hello("other"));
  const { form } = await content("workers/scripts/w"); // the one that serves
  assert.equal(await form.get("index.js").text(), hello("other"));
  assert.equal((await client.ask("GET", "workers/scripts/w/content/v2?version=../../key")).status, 404);
  assert.equal((await client.ask("GET", "workers/scripts/nobody/content/v2")).body.errors[0].code, 10007);
});

test("secrets of a version that waits: it is made of the newest one and serves when it is deployed", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", source, { modules, metadata: { bindings: [{ type: "plain_text", name: "TWO", text: "plain" }] } });
  const patch = (json) => client.ask("PATCH", "workers/workers/w/versions/latest", { json });
  const secret = (text) => ({ type: "secret_text", text });
  const seen = async () => (await (await server.fetch("/")).json()).slice(2);
  const { status, body } = await patch({ env: { ONE: secret("1") }, annotations: { "workers/message": "why", "workers/tag": "t" } });
  assert.equal(status, 200);
  assert.deepEqual([body.result.annotations["workers/message"], body.result.annotations["workers/tag"]], ["why", "t"]);
  assert.deepEqual(body.result.resources.bindings.map(({ name, text }) => [name, text]), [["TWO", "plain"], ["ONE", undefined]]);
  assert.deepEqual(await seen(), [null, "plain"]);
  const deploy = (id) => client.result("POST", "workers/scripts/w/deployments", { json: { strategy: "percentage", versions: [{ version_id: id, percentage: 100 }] } });
  await deploy(body.result.id);
  assert.deepEqual(await seen(), ["1", "plain"]);
  // What is not a secret, or nothing, makes no version.
  const count = async () => (await client.result("GET", "workers/scripts/w/versions")).items.length;
  const before = await count();
  for (const json of [{}, { env: {} }, { env: { TWO: secret("x") } }, { env: { NEW: { type: "plain_text", text: "x" } } }, { env: { A: { type: "secret_text" } } },
    { env: { GONE: null } }, { env: { A: secret("x") }, compatibility_date: "2020-01-01" }, { env: { A: secret("x") }, annotations: { "workers/tag": "x".repeat(2000) } }])
    assert.ok([400, 404].includes((await patch(json)).status), JSON.stringify(json));
  assert.equal(await count(), before);
  await deploy((await patch({ env: { ONE: null } })).body.result.id);
  assert.deepEqual(await seen(), [null, "plain"]);
});

test("keep_bindings that speaks of secrets says which stay; one that does not keeps them", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const upload = (metadata) => client.deploy("w", source, { modules, metadata });
  const seen = async () => (await (await server.fetch("/")).json()).slice(2);
  await upload({ bindings: [{ type: "secret_text", name: "ONE", text: "1" }, { type: "secret_text", name: "TWO", text: "2" }] });
  for (const metadata of [{}, { keep_bindings: [] }, { keep_bindings: ["plain_text", "json"] }, { keep_bindings: ["secret_text", "secret_key"] }]) {
    await upload(metadata);
    assert.deepEqual(await seen(), ["1", "2"]);
  }
  await upload({ keep_bindings: ["secret_key"], bindings: [{ type: "inherit", name: "TWO" }] });
  assert.deepEqual(await seen(), [null, "2"]);
});

test("workers as the newer part of the API has them, with the address at which they answer", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data, { args: ["--domain", "apps.example"] });
  const client = new Client(server, token(data));
  await client.deploy("w", hello("w"));
  const worker = await client.result("GET", "workers/workers/w");
  assert.equal(worker.name, "w");
  assert.deepEqual(worker.subdomain, { enabled: true, previews_enabled: worker.subdomain.previews_enabled, url: "https://w.apps.example" });
  assert.equal((await client.result("GET", `workers/workers/${worker.id}`)).name, "w");
  assert.deepEqual((await client.result("GET", "workers/workers")).map(({ name }) => name), ["w"]);
  await client.result("POST", "workers/scripts/w/subdomain", { json: { enabled: false } });
  assert.equal((await client.result("GET", "workers/workers/w")).subdomain.enabled, false);
  assert.equal((await client.ask("GET", "workers/workers/nobody")).body.errors[0].code, 10007);
});

test("queues: settings are kept from their making on, also of one that nobody uses; producers are counted", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  let client = new Client(server, who);
  const made = await client.result("POST", "queues", { json: { queue_name: "jobs", settings: { message_retention_period: 600 } } });
  const target = `queues/${made.queue_id}`;
  const settings = async () => (await client.result("GET", target)).settings;
  assert.deepEqual(await settings(), { delivery_paused: false, message_retention_period: 600 });
  await client.result("PATCH", target, { json: { queue_name: "jobs", settings: { delivery_paused: true } } });
  await server.kill();
  server = await empty(t, data);
  client = new Client(server, who);
  assert.deepEqual(await settings(), { delivery_paused: true, message_retention_period: 600 });
  const refused = await client.ask("POST", "queues", { json: { queue_name: "late", settings: { delivery_delay: 5 } } });
  assert.equal(refused.status, 400);
  assert.match(refused.body.errors[0].message, /delivery_delay/);
  assert.deepEqual((await client.result("GET", "queues")).map(({ queue_name }) => queue_name), ["jobs"]);
  assert.equal((await client.ask("PATCH", target, { json: { settings: { delivery_delay: 5 } } })).status, 400);
  await client.deploy("w", hello("w"), { metadata: { bindings: [{ type: "queue", name: "Q", queue_name: "jobs" }] } });
  const queue = await client.result("GET", target);
  assert.deepEqual([queue.producers_total_count, queue.producers.map(({ script }) => script)], [1, ["w"]]);
  assert.equal((await client.result("GET", "queues"))[0].producers_total_count, 1);
});

test("R2: what the sender says of an object is kept; one that is not there is an error of the platform's form; how much there is", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const client = new Client(server, who);
  await client.result("POST", "r2/buckets", { json: { name: "files" } });
  const put = (headers) => client.ask("PUT", "r2/buckets/files/objects/a%2Fb", { body: "text", headers });
  assert.equal((await put({ "content-type": "text/x", "cache-control": "no-cache", "content-disposition": "inline; filename=\"a&b\"", "content-language": "de", expires: "Wed, 21 Oct 2037 07:28:00 GMT" })).status, 200);
  assert.equal((await put({ expires: "tomorrow" })).status, 400);
  await client.deploy("w", `export default { async fetch(request, env) {
    const object = await env.FILES.head("a/b");
    return Response.json({ ...object.httpMetadata, cacheExpiry: object.httpMetadata.cacheExpiry.getTime() });
  } };`, { metadata: { bindings: [{ type: "r2_bucket", name: "FILES", bucket_name: "files" }] } });
  assert.deepEqual(await (await server.fetch("/")).json(), {
    contentType: "text/x", cacheControl: "no-cache", contentDisposition: 'inline; filename="a&b"', contentLanguage: "de", cacheExpiry: Date.parse("2037-10-21T07:28:00Z"),
  });
  const gone = await client.ask("GET", "r2/buckets/files/objects/none");
  assert.deepEqual([gone.status, gone.body.success, gone.body.errors[0].code], [404, false, 10007]);
  const ask = (accountTag, query = "{ viewer { accounts { r2StorageAdaptiveGroups { max { objectCount } } } } }") =>
    client.ask("POST", "/graphql", { json: { query, variables: { accountTag, filter: { bucketName: "files" } } } });
  const [group] = (await ask(who.account)).body.data.viewer.accounts[0].r2StorageAdaptiveGroups;
  assert.deepEqual([group.max.objectCount, group.max.payloadSize], [1, 4]);
  assert.equal((await ask("0".repeat(32))).status, 403);
  assert.equal((await ask(who.account, "{ viewer { accounts { d1QueriesAdaptiveGroups } } }")).status, 404);
});

test("a namespace of KV gets another title, and keeps its id and its data", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const { id } = await client.result("POST", "storage/kv/namespaces", { json: { title: "old" } });
  await client.result("POST", "storage/kv/namespaces", { json: { title: "taken" } });
  const rename = (json, of = id) => client.ask("PUT", `storage/kv/namespaces/${of}`, { json });
  assert.equal((await rename({ title: "taken" })).body.errors[0].code, 10014);
  assert.equal((await rename({})).status, 400);
  assert.equal((await rename({ title: "x" }, "0".repeat(32))).status, 404);
  assert.equal((await client.ask("PUT", `storage/kv/namespaces/${id}/values/k`, { body: "v" })).status, 200);
  assert.equal((await rename({ title: "new" })).status, 200);
  assert.deepEqual((await client.result("GET", "storage/kv/namespaces")).map(({ title }) => title).sort(), ["new", "taken"]);
  assert.equal(String((await client.ask("GET", `storage/kv/namespaces/${id}/values/k`)).body), "v");
});

test("W3: what is not built is refused by name; nothing of the server's files is told", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  for (const path of ["workflows", "workers/dispatch/namespaces", "pages/projects", "r2/buckets/files/lifecycle", "vectorize/v2/indexes"]) {
    const { status, body } = await client.ask("GET", path);
    assert.deepEqual([status, body.success], [404, false]);
    assert.ok(body.errors[0].message.startsWith(`"${path}" of the platform's API is not built here`), body.errors[0].message);
  }
  const { status, body } = await client.script("w", hello("w"), { metadata: { bindings: [{ type: "workflow", name: "WF", workflow_name: "wf", class_name: "Wf" }] } });
  assert.equal(status, 400);
  assert.match(body.errors[0].message, /^"workflows" is a key of wrangler that cairn does not run yet/);
  assert.ok(!body.errors[0].message.includes(data));
});

test("Q1: a worker that others need is told by name, and goes only by force", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const object = 'import { DurableObject } from "cloudflare:workers"; export class C extends DurableObject {} export default { fetch() { return new Response("base"); }, tail() {} };';
  await client.deploy("base", object, { metadata: { migrations: { new_tag: "v1", new_sqlite_classes: ["C"] } } });
  const bindings = { caller: [{ type: "service", name: "BASE", service: "base" }], user: [{ type: "durable_object_namespace", name: "C", class_name: "C", script_name: "base" }], teller: [] };
  for (const [name, list] of Object.entries(bindings))
    await client.deploy(name, hello(name), { metadata: { bindings: list, ...(name === "teller" ? { tail_consumers: [{ service: "base" }] } : {}) } });
  const { services, durable_objects } = await client.result("GET", "workers/scripts/base/references");
  assert.deepEqual([services.incoming, services.outgoing], [[{ name: "BASE", service: "caller", environment: "production" }], []]);
  assert.deepEqual(durable_objects.map(({ service, name }) => [service, name]), [["user", "C"]]);
  assert.deepEqual((await client.result("GET", "workers/scripts/caller/references")).services.outgoing.map(({ service }) => service), ["base"]);
  assert.deepEqual((await client.result("GET", "workers/tails/by-consumer/base")).map(({ producer }) => producer.service), ["teller"]);
  for (const name of ["caller", "user", "teller"]) {
    const { status, body } = await client.ask("DELETE", "workers/scripts/base");
    assert.deepEqual([status, body.errors[0].code], [409, 10064]);
    assert.ok(body.errors[0].message.startsWith(`${name} cannot be served without base`), body.errors[0].message);
    await client.result("DELETE", `workers/scripts/${name}`);
  }
  await client.deploy("caller", hello("caller"), { metadata: { bindings: bindings.caller } });
  await client.result("DELETE", "workers/services/base?force=true");
  const late = await client.script("caller", hello("caller"), { metadata: { bindings: bindings.caller } });
  assert.equal(late.status, 400);
  assert.equal(late.body.errors[0].message, 'services: no project of this server is named "base" (binding BASE); deploy it first');
});
