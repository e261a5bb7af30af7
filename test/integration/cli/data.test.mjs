// `cairn kv`, `cairn r2` and `cairn queues` do and print the same whether a server runs on the data
// directory or not, and take wrangler's options.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { cairn, project, serve, tempDir } from "../lib/server.mjs";
import { queue } from "../lib/toml.mjs";

const dir = project({
  "wrangler.toml": `name = "shop"
main = "index.js"
compatibility_date = "2026-03-01"
[[kv_namespaces]]
binding = "CARTS"
id = "carts"
[[kv_namespaces]]
binding = "OTHER"
[[r2_buckets]]
binding = "PICTURES"
bucket_name = "pictures"
[[r2_buckets]]
binding = "PLAIN"
${queue("MAIL", "mail")}
${queue("DEAD", "mail-dead")}
[[queues.consumers]]
queue = "mail"
type = "http_pull"
dead_letter_queue = "mail-dead"
`,
  "index.js": `export default {
  async fetch(request, env) {
    const { binding, method, args } = await request.json();
    const value = await env[binding][method](...args);
    return Response.json({ value: value?.text ? await value.text() : value ?? null });
  },
};`,
});

/** Runs a command: {status, stdout, stderr}. */
function run(args, { input, cwd, data } = {}) {
  return new Promise((resolve) => {
    const child = execFile(cairn, data ? [...args, "--data", data] : args, { timeout: 60_000, cwd, encoding: "buffer", maxBuffer: 1 << 28 }, (error, stdout, stderr) =>
      resolve({ status: error ? error.code : 0, bytes: stdout, stdout: stdout.toString(), stderr: stderr.toString() }));
    child.stdin.on("error", () => {}); // it may end without reading
    child.stdin.end(input ?? "");
  });
}

const files = tempDir();
const file = (name, content) => {
  const place = path.join(files, name);
  writeFileSync(place, content);
  return place;
};
const picture = Buffer.alloc(3_000_000, "picture");
const plain = (text) => text.replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME").replace(/"(uploaded|timestamp|oldest|due|oldest_message_timestamp_ms)":\d+/g, '"$1":0')
  .replace(/"version":"\w+"/g, '"version":""').replace(/\b[0-9a-f]{32}\b/g, "HASH").replace(/expires \S+/, "expires T").replace(/"expiration":\d+/, '"expiration":0')
  .replace(/\d+(\.\d+)? (B|KiB)\n/g, "SIZE\n").replace(/"bytes":\d+,"bindings"/g, '"bytes":0,"bindings"');

/** Everything in order; the outcome of each is compared between a server and a directory. */
const steps = [
  ["kv", "key", "put", "greeting", "hello", "--namespace-id", "carts"],
  ["kv", "key", "put", "a/b ✓", "slash", "--namespace-id", "carts", "--ttl", "3600", "--metadata", '{"n":1}'],
  ["kv", "key", "put", "large", "--path", file("large.bin", picture), "--namespace-id", "carts"],
  ["kv", "key", "get", "greeting", "--namespace-id", "carts"],
  ["kv", "key", "get", "a/b ✓", "--namespace-id", "carts", "--text"],
  ["kv", "key", "get", "nothing", "--namespace-id", "carts"],
  ["kv", "key", "get", "greeting", "--namespace-id", "none"],
  ["kv", "key", "put", "..", "x", "--namespace-id", "carts"],
  ["kv", "key", "put", "x", "--namespace-id", "carts"],
  ["kv", "key", "put", "x", "y", "--namespace-id", "carts", "--ttl", "1"],
  ["kv", "key", "list", "--namespace-id", "carts"],
  ["kv", "key", "list", "--namespace-id", "carts", "--json", "--prefix", "a"],
  ["kv", "bulk", "put", file("put.json", JSON.stringify([{ key: "b1", value: "one" }, { key: "b2", value: "AQID", base64: true, metadata: { m: 2 } }, { key: "b3", value: "3", expiration_ttl: 900 }])), "--namespace-id", "carts"],
  ["kv", "bulk", "put", file("bad.json", '[{"key":"b1"}]'), "--namespace-id", "carts"],
  ["kv", "bulk", "put", file("worse.json", "{}"), "--namespace-id", "carts"],
  ["kv", "bulk", "get", file("get.json", '["b1", {"name":"b3"}, "none"]'), "--namespace-id", "carts"],
  ["kv", "bulk", "delete", file("delete.json", '["b1", "b3"]'), "--namespace-id", "carts"],
  ["kv", "bulk", "delete", file("delete.json", '["b1", "b3"]'), "--namespace-id", "carts", "--force"],
  ["kv", "key", "delete", "large", "--namespace-id", "carts"],
  ["kv", "key", "list", "--namespace-id", "carts"],
  ["kv", "namespace", "create", "fresh"],
  ["kv", "key", "put", "k", "v", "--namespace-id", "fresh"],
  ["r2", "bucket", "create", "fresh"],
  ["r2", "object", "put", "fresh/a/b.bin", "--file", file("p.bin", picture), "--content-type", "image/png", "--cache-control", "no-store", "--storage-class", "InfrequentAccess"],
  ["r2", "object", "put", "fresh/piped", "--pipe"],
  ["r2", "object", "put", "fresh/piped"],
  ["r2", "object", "put", "fresh", "--pipe"],
  ["r2", "object", "get", "fresh/a/b.bin", "--pipe"],
  ["r2", "object", "get", "fresh/none", "--pipe"],
  ["r2", "object", "list", "fresh"],
  ["r2", "object", "list", "fresh", "--json"],
  ["r2", "object", "list", "fresh", "--delimiter", "/"],
  ["r2", "bucket", "list"],
  ["r2", "bucket", "info", "fresh", "--json"],
  ["r2", "bucket", "info", "none"],
  ["r2", "bucket", "delete", "fresh"],
  ["r2", "object", "delete", "fresh/piped"],
  ["r2", "object", "delete", "fresh/piped"],
  ["queues", "send", "mail-dead", '{"n":1}'],
  ["queues", "send", "mail-dead", "just text"],
  ["queues", "send", "mail-dead", "later", "--delay", "3600"],
  ["queues", "send", "mail-dead", "{", "--content-type", "json"],
  ["queues", "send", "none", "x"],
  ["queues", "peek", "mail-dead"],
  ["queues", "peek", "mail-dead", "--limit", "1", "--json"],
  ["queues", "peek", "mail-dead", "--limit", "x"],
  ["queues", "info", "mail-dead"],
  ["queues", "pause-delivery", "mail"],
  ["queues", "redrive", "mail-dead", "--to", "mail", "--limit", "1"],
  ["queues", "redrive", "mail-dead", "--to", "mail"],
  ["queues", "peek", "mail"],
  ["queues", "resume-delivery", "mail", "--json"],
  ["queues", "purge", "mail"],
  ["queues", "purge", "mail", "--force"],
  ["queues", "redrive", "mail-dead", "--to", "nowhere"],
];

const name = (args) => args.slice(0, 5).map((word) => path.basename(word)).join(" ");

describe("the same from a server and from a directory", () => {
  const online = [], offline = [];
  before(async () => {
    for (const [results, keeps] of [[online, true], [offline, false]]) {
      const server = await serve(dir, { lanes: 2 });
      await server.fetch("/", { method: "POST", body: JSON.stringify({ binding: "DEAD", method: "metrics", args: [] }) });
      if (!keeps) await server.stop();
      for (const args of steps) results.push(await run(args, { data: server.data, input: "from a pipe" }));
      if (keeps) await server.stop();
    }
  });
  for (const [i, args] of steps.entries())
    test(`${name(args)} (${i})`, () => {
      assert.equal(online[i].status, offline[i].status, `${online[i].stderr}${offline[i].stderr}`);
      assert.equal(plain(online[i].stdout), plain(offline[i].stdout));
      assert.equal(plain(online[i].stderr), plain(offline[i].stderr));
    });
  const result = (...start) => online[steps.findIndex((args) => start.every((word, i) => args[i] === word))];
  const last = (...start) => online[steps.findLastIndex((args) => start.every((word, i) => args[i] === word))];
  test("and it is right", () => {
    assert.equal(result("kv", "key", "get", "greeting").stdout, "hello");
    assert.equal(result("kv", "key", "get", "a/b ✓").stdout, "slash");
    assert.equal(result("kv", "key", "get", "nothing").status, 1);
    assert.match(result("kv", "key", "get", "nothing").stderr, /there is no such key/);
    assert.match(result("kv", "key", "list").stdout, /^a\/b ✓ {2}expires \S+ {2}\{"n":1\}\ngreeting\nlarge\n$/);
    assert.deepEqual(JSON.parse(result("kv", "bulk", "get").stdout), { b1: "one", b3: "3", none: null });
    assert.match(last("kv", "key", "list").stdout, /^a\/b ✓ .*\nb2 {2}\{"m":2\}\ngreeting\n$/);
    assert.match(result("kv", "bulk", "put", path.join(files, "bad.json")).stderr, /entry 1 of .*"value" must be a text/);
    assert.ok(result("r2", "object", "get", "fresh/a/b.bin").bytes.equals(picture));
    const [object] = result("r2", "object", "list", "fresh", "--json").stdout.trim().split("\n").map(JSON.parse);
    assert.deepEqual([object.key, object.size, object.http, object.storageClass], ["a/b.bin", picture.length, { contentType: "image/png", cacheControl: "no-store" }, "InfrequentAccess"]);
    assert.match(result("r2", "object", "list", "fresh", "--delimiter").stdout, /piped\na\/\n$/);
    assert.match(result("r2", "bucket", "list").stdout, /fresh +2 +2\.9 MiB\n/);
    assert.match(last("r2", "object", "delete").stdout, /was not there/);
    const messages = result("queues", "peek", "mail-dead").stdout.trim().split("\n");
    assert.equal(messages.length, 3);
    assert.match(messages[0], /json {3}\{"n":1\}$/);
    assert.match(messages[2], /due \S+ {2}"later"$/);
    assert.equal(result("queues", "redrive", "mail-dead", "--to", "mail", "--limit").stdout, "moved 1 messages to mail\n");
    assert.equal(result("queues", "peek", "mail").stdout.trim().split("\n").length, 2);
    assert.match(result("queues", "purge").stderr, /--force/);
    assert.equal(result("queues", "purge").status, 1);
  });
});

describe("commands of a project", () => {
  const place = project({ "wrangler.toml": readFileSync(path.join(dir, "wrangler.toml"), "utf8"), "index.js": readFileSync(path.join(dir, "index.js"), "utf8") });
  test("--binding finds the namespace, also before the project was ever served", async () => {
    const put = await run(["kv", "key", "put", "seed", "value", "--binding", "OTHER"], { cwd: place });
    assert.equal(put.status, 0, put.stderr);
    const bulk = await run(["kv", "bulk", "put", file("seed.json", '[{"key":"s2","value":"2"}]'), "--binding", "CARTS", "--config", place]);
    assert.equal(bulk.status, 0, bulk.stderr);
    assert.match((await run(["kv", "namespace", "list"], { cwd: place })).stdout, /shop\/OTHER/);
    const server = await serve(place, { data: path.join(place, ".cairn") });
    const get = async (binding, key) => (await (await server.fetch("/", { method: "POST", body: JSON.stringify({ binding, method: "get", args: [key] }) })).json()).value;
    assert.equal(await get("OTHER", "seed"), "value");
    assert.equal(await get("CARTS", "s2"), "2");
    assert.match((await run(["kv", "namespace", "list"], { cwd: place })).stdout, /^ID +TITLE +ON DISK\ncarts +CARTS .*|shop\/OTHER +OTHER/m);
    const listed = await run(["queues", "list"], { cwd: place });
    assert.match(listed.stdout, /^mail +0 +0 B +delivering +shop +mail-dead$/m);
    await server.stop();
    const missing = await run(["kv", "key", "get", "x", "--binding", "NOPE"], { cwd: place });
    assert.equal(missing.status, 1);
    assert.match(missing.stderr, /no KV namespace with the binding NOPE/);
    const send = await run(["queues", "send", "mail-dead", "x", "--config", place]);
    assert.equal(send.status, 0, send.stderr);
    const redrive = await run(["queues", "redrive", "mail-dead", "--config", place]); // where to is in the configuration
    assert.equal(redrive.stdout, "moved 1 messages to mail\n", redrive.stderr);
  });
  test("an object is written to the current folder, never outside it", async () => {
    const data = path.join(place, ".cairn"), cwd = tempDir();
    for (const key of ["deep/er/name.txt", "../../evil", "a/.."]) {
      const put = await run(["r2", "object", "put", `pictures/${key}`, "--pipe"], { data, input: key });
      assert.equal(put.status, 0, put.stderr);
    }
    assert.equal((await run(["r2", "object", "get", "pictures/deep/er/name.txt"], { data, cwd })).status, 0);
    assert.equal(readFileSync(path.join(cwd, "name.txt"), "utf8"), "deep/er/name.txt");
    assert.equal((await run(["r2", "object", "get", "pictures/../../evil"], { data, cwd })).status, 0);
    assert.equal(readFileSync(path.join(cwd, "evil"), "utf8"), "../../evil");
    const dots = await run(["r2", "object", "get", "pictures/a/.."], { data, cwd });
    assert.equal(dots.status, 1);
    assert.match(dots.stderr, /gives no file name/);
    const none = await run(["r2", "object", "get", "pictures/none"], { data, cwd });
    assert.equal(none.status, 1);
    assert.ok(!existsSync(path.join(cwd, "none")) && !existsSync(path.join(cwd, "none.part")));
    // A bucket that has no name but that of its binding.
    assert.equal((await run(["r2", "object", "put", "shop/PLAIN/k/1", "--pipe"], { data, input: "plain" })).status, 0);
    assert.equal((await run(["r2", "object", "get", "shop/PLAIN/k/1", "--pipe"], { data })).stdout, "plain");
    assert.match((await run(["r2", "object", "list", "shop/PLAIN"], { data })).stdout, / k\/1\n$/);
    const odd = await run(["r2", "object", "get", "pictures/evil", "--file", "x", "--pipe"], { data, cwd });
    assert.equal(odd.status, 1);
  });
  test("a wrong command line is exit code 2", async () => {
    for (const args of [["kv"], ["kv", "key"], ["kv", "key", "fetch", "x"], ["r2", "object", "get"], ["queues", "list", "x"], ["queues", "drop", "x"], ["kv", "key", "list", "--nope"]])
      assert.equal((await run(args, { cwd: place })).status, 2, args.join(" "));
  });
});

test("a redrive that is killed in the middle loses no message", async () => {
  let server = await serve(dir);
  const { data } = server;
  const queue = async (...args) => (await run(["queues", ...args, "--json"], { data })).stdout.trim().split("\n").filter(Boolean).map(JSON.parse);
  const count = 3000;
  for (let i = 0; i < count; i += 100) {
    const body = JSON.stringify({ binding: "DEAD", method: "sendBatch", args: [Array.from({ length: 100 }, (_, k) => ({ body: i + k }))] });
    assert.equal((await server.fetch("/", { method: "POST", body })).status, 200);
  }
  // Killed when some have moved and not all.
  const moving = run(["queues", "redrive", "mail-dead", "--to", "mail"], { data });
  const backlog = async () => (await queue("info", "mail"))[0].backlog_count;
  await server.untilTrue(async () => (await backlog()) > 0, "the first of them");
  await server.kill();
  await moving;
  const left = new Set((await queue("peek", "mail-dead", "--limit", "9999")).map(({ body }) => body));
  const moved = new Set((await queue("peek", "mail", "--limit", "9999")).map(({ body }) => body));
  assert.ok(moved.size > 0);
  assert.equal(new Set([...left, ...moved]).size, count);
  server = await serve(dir, { data });
  assert.equal((await run(["queues", "redrive", "mail-dead"], { data })).status, 0);
  assert.equal((await queue("info", "mail-dead"))[0].backlog_count, 0);
  assert.equal(new Set((await queue("peek", "mail", "--limit", "9999")).map(({ body }) => body)).size, count);
  await server.stop();
});

test("long work shows a bar on a terminal, and nothing elsewhere", async () => {
  const server = await serve(dir);
  const bulk = (count) => {
    const entries = file("many.json", JSON.stringify(Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: "v" }))));
    return ["kv", "bulk", "put", entries, "--namespace-id", "carts", "--data", server.data];
  };
  const plainly = await run(bulk(2000));
  assert.deepEqual([plainly.status, plainly.stdout, plainly.stderr], [0, "wrote 2000 keys\n", ""]);
  const onTerminal = (args) => new Promise((resolve) => {
    execFile("script", ["-qfec", [cairn, ...args].join(" "), "/dev/null"], { timeout: 60_000 }, (error, stdout) => resolve(stdout));
  });
  // How much work is long depends on the machine.
  let count = 2000, shown = await onTerminal(bulk(count));
  while (!/writing/.test(shown) && count < 256_000) shown = await onTerminal(bulk((count *= 2)));
  assert.match(shown, new RegExp(`writing \\[#*\\.*\\] +\\d+% \\d+ of ${count}`));
  assert.match(shown, new RegExp(`wrote ${count} keys`));
  await server.stop();
});
