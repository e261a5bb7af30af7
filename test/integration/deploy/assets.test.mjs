// Hostile uploads of assets: a session takes the files of its manifest, with the sizes that it says, for its own worker, and bounded memory.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

const hash = (n) => n.toString(16).padStart(32, "0");

async function start(t) {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const begin = (worker, manifest) => client.ask("POST", `workers/scripts/${worker}/assets-upload-session`, { json: { manifest } });
  const session = async (worker, manifest) => {
    const { status, body } = await begin(worker, manifest);
    assert.equal(status, 200, JSON.stringify(body));
    return body.result;
  };
  /** Sends [name, bytes] of files; with `how.base64` false as they are. */
  const send = (jwt, files, { base64 = true } = {}) => {
    const form = new FormData();
    for (const [name, bytes] of files) form.append(name, new Blob([base64 ? Buffer.from(bytes).toString("base64") : bytes]), name);
    return client.ask("POST", `workers/assets/upload${base64 ? "?base64=true" : ""}`, { body: form, headers: { authorization: `Bearer ${jwt}` } });
  };
  const kept = (worker) => { const dir = path.join(data, "deployed/assets", worker); return existsSync(dir) ? readdirSync(dir).sort() : []; };
  const staged = () => { const dir = path.join(data, "deployed/transfers"); return existsSync(dir) ? readdirSync(dir) : []; };
  const deploy = (worker, jwt) => client.script(worker, hello("worker"), { metadata: { assets: { jwt, config: {} } } });
  return { data, server, client, begin, session, send, kept, staged, deploy };
}

test("a file that is not what the manifest says is refused, with everything that came with it", async (t) => {
  const { client, session, send, kept, staged, deploy, server } = await start(t);
  const manifest = { "/a.txt": { hash: hash(1), size: 3 }, "/b.txt": { hash: hash(2), size: 3 }, "/none": { hash: hash(3), size: 0 } };
  const { jwt, buckets } = await session("w", manifest);
  assert.deepEqual(buckets.flat().sort(), [hash(1), hash(2), hash(3)]);
  for (const bad of [
    [[hash(2), "ab"]], [[hash(2), "abcd"]], [[hash(2), ""]], [[hash(2), "x".repeat(1 << 20)]], // sizes that lie
    [[hash(3), "a"]], [[hash(9), "abc"]], [["../../x", "abc"]], [["", "abc"]], [[hash(2).toUpperCase().replace("2", "A"), "abc"]], // not asked for
    [[hash(2), "abc"], [hash(2), "abd"]], // twice
  ]) {
    const { status, body } = await send(jwt, [[hash(1), "one"], ...bad]);
    assert.deepEqual([status, body.success, body.errors?.[0].code], [400, false, 10021], JSON.stringify([bad.map(([name, text]) => [name, text.slice(0, 9)]), body]));
    assert.deepEqual([kept("w"), staged()], [[], []]);
  }
  for (const [name, text] of [[hash(1), "%%%%"], [hash(1), "YWJj="], [hash(1), "YWJ"]]) {
    const form = `--X\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n--X--\r\n`;
    const { status } = await client.ask("POST", "workers/assets/upload?base64=true", { body: form, headers: { authorization: `Bearer ${jwt}`, "content-type": "multipart/form-data; boundary=X" } });
    assert.equal(status, 400, text);
  }
  // What has not come is missed when the version is made, and the session has ended with that.
  assert.equal((await send(jwt, [[hash(1), "one"]])).status, 201);
  const early = await deploy("w", jwt);
  assert.ok(early.status >= 400 && early.status < 500, JSON.stringify(early));
  assert.equal((await send(jwt, [[hash(2), "two"]])).status, 401);
  const again = await session("w", manifest);
  assert.deepEqual(again.buckets.flat().sort(), [hash(2), hash(3)]);
  assert.equal((await send(again.jwt, [[hash(2), "two"], [hash(3), ""]], { base64: false })).status, 201);
  assert.equal((await deploy("w", again.jwt)).status, 200);
  assert.deepEqual([await server.text("/a.txt"), await server.text("/b.txt"), await server.text("/none")], ["one", "two", ""]);
  // Another content for a hash that is here is nobody's wish: what is served does not change, now or in the next version.
  const third = await session("w", manifest);
  assert.deepEqual(third.buckets, []);
  assert.equal((await send(third.jwt, [[hash(1), "new"]])).status, 201);
  assert.equal((await deploy("w", third.jwt)).status, 200);
  assert.equal(await server.text("/a.txt"), "one");
});

test("a session is its worker's, for one version, and its token opens nothing else", async (t) => {
  const { client, session, send, kept, deploy, server } = await start(t);
  const manifest = { "/a.txt": { hash: hash(1), size: 3 } };
  const one = await session("one", manifest), two = await session("two", manifest);
  assert.equal((await send(one.jwt, [[hash(1), "one"]])).status, 201);
  assert.deepEqual([kept("one"), kept("two")], [[hash(1)], []]);
  assert.equal((await deploy("two", one.jwt)).status, 400); // the files of another worker
  assert.ok((await deploy("two", two.jwt)).status >= 400); // which were not sent for this one
  assert.equal((await deploy("one", one.jwt)).status, 200);
  assert.equal((await deploy("one", one.jwt)).status, 400); // once
  assert.equal((await send(one.jwt, [[hash(1), "one"]])).status, 401);
  const [head, payload, secret] = (await session("one", manifest)).jwt.split(".");
  for (const [method, target] of [["GET", "workers/scripts"], ["PUT", "workers/scripts/one"], ["DELETE", "workers/scripts/one"], ["GET", "storage/kv/namespaces"], ["POST", "d1/database"], ["POST", "workers/scripts/one/assets-upload-session"], ["GET", "/user/tokens/verify"], ["GET", "/accounts"]]) {
    const { status } = await client.ask(method, target, { headers: { authorization: `Bearer ${head}.${payload}.${secret}` } });
    assert.equal(status, 403, `${method} ${target}`);
  }
  const tricks = ["", ".", "..", `${head}.${payload}.`, `${head}.${payload}.${secret.slice(0, 32)}`, `${head}.${payload}.${secret}0`, `${head}.${payload}.${"0".repeat(64)}`, `${head}.${payload}.${secret.toUpperCase()}x`, secret.slice(0, 40)];
  for (const trick of tricks) assert.ok([401, 429].includes((await send(trick, [[hash(1), "one"]])).status), trick); // whoever guesses is held back
  assert.equal(await (await server.fetch("/a.txt", { headers: { host: "one.localhost" } })).text(), "one");
});

test("a manifest of files that cannot all be is refused; one of a hundred thousand is taken", async (t) => {
  const { begin, session, send, deploy, server } = await start(t);
  const entry = { hash: hash(1), size: 1 };
  for (const manifest of [
    undefined, null, [], "x", { "/a": entry, a: entry }, { "/a": entry, "/a/b": entry }, { "/a/b/c": entry, "/a-": entry, "/a/b": entry },
    { "/_headers": entry }, { _redirects: entry }, { "/a": entry, "/b": { hash: hash(1), size: 2 } }, { "/a": { hash: hash(1) } }, { "/a": { hash: hash(1), size: "1" } },
    { "/a": { hash: hash(1), size: -1 } }, { "/a": { hash: hash(1), size: 1e300 } }, { [`/${"x".repeat(300)}`]: entry }, { [`/${"a/".repeat(100)}b`]: entry },
    { "/%2e%2e/\u0000": entry }, { "/a\nb": entry }, { "/a\\b": entry }, { "/../../state.json": entry }, { "/a/../../key": entry },
  ]) {
    const { status, body } = await begin("w", manifest);
    assert.deepEqual([status, body.success, body.errors[0].code], [400, false, 10021], JSON.stringify([manifest, body]));
  }
  const many = (count, size = 1) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`/f/${i}`, { hash: hash(i), size }]));
  assert.equal((await begin("w", { "/a": { hash: hash(1), size: (25 << 20) + 1 } })).status, 413);
  const over = await begin("w", many(100_001));
  assert.deepEqual([over.status, over.body.success, over.body.errors[0].code], [413, false, 10021]);
  const { buckets } = await session("w", many(100_000));
  assert.equal(buckets.flat().length, 100_000);
  assert.ok(buckets.every((bucket) => bucket.length > 0 && bucket.length <= 500));
  // What one request carries fits into it.
  const large = await session("w", many(10, 20 << 20));
  assert.deepEqual(large.buckets.map((bucket) => bucket.length), Array(10).fill(1));
  // Names that look like ours, or differ by case alone, are names like any other.
  const odd = ["state.json", "key", "sums.json", "A.txt", "a.txt", ".hidden", "a b.txt", "ä.txt", "%2e%2e", "..a/b..", "bundle/job.json", "assets"];
  const { jwt } = await session("w", Object.fromEntries(odd.map((name, i) => [`/${name}`, { hash: hash(1000 + i), size: 4 }])));
  assert.equal((await send(jwt, odd.map((_, i) => [hash(1000 + i), String(1000 + i)]))).status, 201);
  assert.equal((await deploy("w", jwt)).status, 200);
  for (const name of ["state.json", "key", "A.txt", "a.txt", "ä.txt", "bundle/job.json"]) assert.equal(await server.text(`/${encodeURI(name)}`), String(1000 + odd.indexOf(name)), name);
});

test("sessions have a number and a sum of memory: the oldest end", async (t) => {
  const { session, send, server } = await start(t);
  const good = async ({ jwt }) => (await send(jwt, [[hash(1), "a"]])).status;
  const first = await session("w", { "/a": { hash: hash(1), size: 1 } });
  const small = await session("w", { "/a": { hash: hash(1), size: 1 } });
  assert.equal(await good(first), 201);
  const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) / 1024;
  for (let i = 0; i < 63; i++) await session("w", { "/a": { hash: hash(1), size: 1 } });
  assert.deepEqual([await good(first), await good(small)], [401, 201]);
  const long = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`/${"x".repeat(150)}/${i}`, { hash: hash(1), size: 1 }]));
  const large = [];
  for (let i = 0; i < 12; i++) large.push(await session("w", long));
  assert.equal(await good(small), 401);
  assert.deepEqual([await good(large[11]), await good(large[5])], [201, 401]); // 12 MB each
  assert.ok(memory() < 600, `${memory()} MiB`);
});
