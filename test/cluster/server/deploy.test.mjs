// Deployments on a cluster: what is uploaded to one node is served by all, whole or not at all, whoever dies.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import test from "node:test";
import { hello } from "../../integration/deploy/lib.mjs";
import { Fleet, NAMES, get } from "./fleet.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 600_000 };

const all = (text, names = NAMES) => Object.fromEntries(names.map((name) => [name, text]));
const object = (text, name = "Room") => `import { DurableObject } from "cloudflare:workers";
export class ${name} extends DurableObject { async fetch() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return new Response(${JSON.stringify(text)} + n); } }
export default { fetch(request, env) { return env.ROOM.getByName("one").fetch(request); } };`;
const room = (migrations, name = "Room") => ({ metadata: {
  bindings: [{ type: "durable_object_namespace", name: "ROOM", class_name: name }], ...(migrations && { migrations }),
} });

test("what one node takes, all serve: versions, rollback, secrets, shares, assets, deletes, tokens, by any node", options, async (t) => {
  const fleet = await Fleet.begin(t);
  const clients = await fleet.clients();
  await clients.a.deploy("x", hello("one"));
  assert.deepEqual(await fleet.answers(), all("one"));
  await clients.b.deploy("x", hello("two")); // another node, the same account, token and worker
  assert.deepEqual(await fleet.answers(), all("two"));

  // A version that is uploaded waits; a roll-out of it by a third node, and back.
  const listed = async (client) => (await client.result("GET", "workers/scripts/x/versions")).items.map((version) => version.id);
  const before = await listed(clients.a);
  const uploaded = (await clients.a.script("x", hello("three"), {}, "POST", "workers/scripts/x/versions")).body.result;
  await until(async () => (await listed(clients.c)).length === before.length + 1, "c knows of the version");
  assert.deepEqual(await fleet.answers(), all("two"));
  const shares = (versions) => ({ json: { strategy: "percentage", versions } });
  await clients.c.result("POST", "workers/scripts/x/deployments", shares([{ version_id: uploaded.id, percentage: 100 }]));
  assert.deepEqual(await fleet.answers(), all("three"));
  await clients.c.result("POST", "workers/scripts/x/deployments", shares([{ version_id: uploaded.id, percentage: 50 }, { version_id: before[0], percentage: 50 }]));
  for (const [name, server] of fleet.nodes) {
    const override = async (id) => (await get(server, "/", { host: "x.localhost", "Cloudflare-Workers-Version-Overrides": `x="${id}"` })).text;
    assert.deepEqual([await override(uploaded.id), await override(before[0])], ["three", "two"], name);
  }
  await clients.b.result("POST", "workers/scripts/x/deployments", shares([{ version_id: before.at(-1), percentage: 100 }])); // rollback to the first
  assert.deepEqual(await fleet.answers(), all("one"));

  // Secrets are readable on every node, and in no file or table in the clear.
  await clients.a.deploy("x", `export default { fetch(request, env) { return new Response("secret " + env.KEY); } };`);
  await clients.b.result("PUT", "workers/scripts/x/secrets", { json: { name: "KEY", text: "hunter2hunter2", type: "secret_text" } });
  assert.deepEqual(await fleet.answers(), all("secret hunter2hunter2"));
  assert.equal(await fleet.engine.ask("SELECT count(*) FROM cairn.piece WHERE position('hunter2hunter2'::bytea in body) > 0"), "0");
  assert.equal(await fleet.engine.ask("SELECT count(*) FROM cairn.depot WHERE state LIKE '%hunter2%'"), "0");

  // Assets: small, empty, and of several pieces.
  const large = "large ".repeat(100_000);
  const jwt = await clients.c.assets("x", { "/a.txt": "an asset", "/empty.txt": "", "/large.txt": large });
  await clients.c.deploy("x", hello("worker"), { metadata: { assets: { jwt }, keep_bindings: ["secret_text"] } });
  assert.deepEqual(await fleet.answers("/a.txt"), all("an asset"));
  assert.deepEqual(await fleet.answers("/empty.txt"), all(""));
  assert.deepEqual(await fleet.answers("/large.txt"), all(large));

  // Who did what is the same everywhere.
  const admin = async (name, target) => (await fetch(fleet.nodes.get(name).admin + target, { headers: { authorization: `Bearer ${readFileSync(`${fleet.base}/${name}/admin.token`, "utf8").trim()}` } })).json();
  const [first, ...others] = await Promise.all(NAMES.map((name) => admin(name, "/api/audit?worker=x")));
  for (const other of others) assert.deepEqual(other, first);
  assert.ok(first.entries?.length > 5 || first.length > 5, JSON.stringify(first));

  // A token that is revoked on one node is refused by all at once; the others know tokens that it made.
  const second = await fleet.clients("b", "second");
  assert.equal((await second.c.ask("GET", "workers/scripts")).status, 200);
  const revoked = await fleet.run("tokens", "revoke", "second", "--data", `${fleet.base}/c`);
  assert.equal(revoked.code, 0, revoked.stderr);
  for (const name of NAMES) assert.ok([401, 403].includes((await second[name].ask("GET", "workers/scripts")).status), name);

  // It is deleted everywhere, and nothing of it is left in the engine or on a disk.
  await clients.b.result("DELETE", "workers/scripts/x?force=true");
  assert.deepEqual(await clients.a.result("GET", "workers/scripts"), []);
  assert.equal(await fleet.engine.ask("SELECT (SELECT count(*) FROM cairn.bundle) || ' ' || (SELECT count(*) FROM cairn.piece)"), "0 0");
  for (const name of NAMES) await until(() => readdirSync(`${fleet.base}/${name}/deployed/code`).length === 0, `nothing is left on ${name}`);
  for (const server of fleet.nodes.values()) assert.deepEqual(await server.stop(), { code: 0, signal: null }, server.output);
});

test("objects of a deleted class stay for the retention time, and go from every node after it", options, async (t) => {
  const fleet = await Fleet.begin(t);
  const clients = await fleet.clients();
  const many = `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject { mark(name) { this.ctx.storage.kv.put("name", name); } }
export default { async fetch(request, env) { const name = new URL(request.url).pathname; await env.ROOM.getByName(name).mark(name); return new Response(name); } };`;
  await clients.a.deploy("x", many, room({ new_tag: "v1", steps: [{ new_sqlite_classes: ["Room"] }] }));
  const nodes = [...fleet.nodes.values()];
  for (let i = 0; i < 60; i++) {
    await until(async () => (await get(nodes[i % nodes.length], `/${i}`, { host: "x.localhost" }).catch(() => ({}))).text === `/${i}`, `object ${i}`);
  }
  const admin = async (name, target) => (await fetch(fleet.nodes.get(name).admin + target, { headers: { authorization: `Bearer ${readFileSync(`${fleet.base}/${name}/admin.token`, "utf8").trim()}` } })).json();
  const left = async (name) => (await admin(name, "/api/namespaces?count=1")).namespaces.filter((each) => each.name.includes("Room")).map((each) => each.objects ?? each.count);
  for (const name of NAMES) assert.deepEqual(await left(name), [60], name);

  await clients.b.deploy("x", hello("no objects"), { metadata: { migrations: { old_tag: "v1", new_tag: "v2", steps: [{ deleted_classes: ["Room"] }] } } });
  await clients.c.deploy("x", hello("again"));
  for (const name of NAMES) assert.deepEqual(await left(name), [60], name);

  // As if that had been long ago.
  const { crc32c, ...table } = JSON.parse(await fleet.engine.ask("SELECT body FROM cairn.document WHERE name = 'classes'"));
  table.version = 1; // without the checksum, as who edits it must
  for (const entry of table.classes) if (entry.deleted_ms) entry.deleted_ms = 1000;
  await fleet.engine.ask(`UPDATE cairn.document SET body = '${JSON.stringify(table)}', version = version + 1 WHERE name = 'classes'`);
  await clients.a.deploy("x", hello("once more"));
  await until(async () => (await left("b"))[0] === 0 || undefined, "they are gone");
  for (const name of NAMES) assert.deepEqual(await left(name), [0], name);
});

test("migrations are applied once; a version that one node cannot serve is served by none; nodes that were away catch up before they serve", options, async (t) => {
  const fleet = await Fleet.begin(t);
  const clients = await fleet.clients();
  await clients.a.deploy("x", object("v1 "), room({ new_tag: "v1", steps: [{ new_sqlite_classes: ["Room"] }] }));
  const call = async () => (await fleet.askHost("/")).value;
  fleet.askHost = (target) => until(async () => {
    for (const [node, server] of fleet.nodes) {
      if (server.exit) continue;
      const { status, text } = await get(server, target, { host: "x.localhost" }).catch(() => ({}));
      if (status === 200) return { node, value: text };
    }
  }, "an answer");
  assert.equal(await call(), "v1 1");
  await clients.c.deploy("x", object("v2 ", "Hall"), room({ old_tag: "v1", new_tag: "v2", steps: [{ renamed_classes: [{ from: "Room", to: "Hall" }] }] }, "Hall"));
  assert.equal(await call(), "v2 2"); // the object's data is there under the new name
  assert.match(await fleet.engine.ask("SELECT body FROM cairn.document WHERE name = 'classes'"), /"Hall"/);

  // What throws at its start is refused with the reason, as by a single server; nothing of it stays.
  const pieces = () => fleet.engine.ask("SELECT count(*) FROM cairn.piece");
  const had = await pieces();
  const refused = await clients.b.script("x", `throw new Error("not today");`, room(null, "Hall"));
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(refused.body), /not today/);
  assert.equal(await call(), "v2 3");
  assert.equal(await pieces(), had);

  // What only one node cannot serve is served by none, with its name and its reason.
  const b = fleet.nodes.get("b");
  rmSync(`${b.data}/deployed/code`, { recursive: true });
  writeFileSync(`${b.data}/deployed/code`, "in the way");
  const away = await clients.a.script("x", object("v2b ", "Hall"), room(null, "Hall"));
  assert.equal(away.status, 400, JSON.stringify(away));
  assert.match(away.body.errors[0].message, /^node b cannot serve it: .*; nothing was changed$/);
  assert.equal(await pieces(), had);
  rmSync(`${b.data}/deployed/code`);
  mkdirSync(`${b.data}/deployed/code`);
  assert.match(await call(), /^v2 /);

  const c = fleet.nodes.get("c");
  assert.deepEqual(await c.stop(), { code: 0, signal: null });
  await clients.a.deploy("y", hello("y one")); // c is away and is not waited for
  await fleet.up("c");
  assert.deepEqual(await fleet.answers("/", "y.localhost"), all("y one")); // and serves it when it is back
  await clients.a.deploy("x", object("v3 ", "Hall"), room(null, "Hall"));
  assert.match(await call(), /^v3 /);
});

test("a node that starts owns nothing before it has the code that is deployed", options, async (t) => {
  const fleet = await Fleet.begin(t);
  const clients = await fleet.clients();
  const rooms = Array.from({ length: 24 }, (_, i) => `r${i}`);
  const code = (version) => `import { DurableObject } from "cloudflare:workers";
    ${version === "New" ? "export class Old extends DurableObject {}" : ""}
    export class ${version} extends DurableObject { who() { return "${version}"; } }
    export default { async fetch(request, env) { return new Response(await env.ROOM.getByName(new URL(request.url).pathname).who()); } };`;
  await clients.a.deploy("x", code("Old"), room({ new_tag: "v1", steps: [{ new_sqlite_classes: ["Old"] }] }, "Old"));
  await fleet.whole();
  await fleet.settled();
  assert.deepEqual(await fleet.nodes.get("b").stop(), { code: 0, signal: null });
  await clients.a.deploy("x", code("New"), room({ old_tag: "v1", new_tag: "v2", steps: [{ new_sqlite_classes: ["New"] }] }, "New")); // b does not have it

  // What it would learn of deployments is kept from it, while it has joined; then another node dies.
  const asleep = "SELECT 1 FROM cairn.depot FOR UPDATE; SELECT pg_sleep(600)";
  const held = fleet.engine.tryAsk(asleep);
  const sleeps = "FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid() AND wait_event = 'PgSleep'";
  await until(async () => (await fleet.engine.ask(`SELECT count(*) ${sleeps}`)) === "1", "the row is locked");
  const b = await fleet.up("b", { wait: false });
  await b.until(/ is a node of /);
  await until(async () => (await fleet.engine.ask("SELECT count(*) FROM cairn.session x JOIN cairn.disk d ON d.id = x.disk WHERE x.live AND d.node = 'b'")) === "1", "b has a session");
  await fleet.nodes.get("a").kill();
  const owned = (node) => fleet.engine.ask(`SELECT count(*) FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner AND x.live JOIN cairn.disk d ON d.id = x.disk WHERE d.node = '${node}'`);
  const answers = async (node) => {
    const list = await Promise.all(rooms.map((name) => get(fleet.nodes.get(node), `/${name}`, { host: "x.localhost" })));
    return list.filter(({ status, text }) => status !== 200 || text !== "New");
  };
  // Those of which b has the only other replica wait for it; the rest is c's.
  const bare = await fleet.engine.ask("SELECT count(*) FROM cairn.shard s WHERE NOT EXISTS (SELECT 1 FROM cairn.session x JOIN cairn.disk d ON d.id = x.disk WHERE x.live AND d.node = 'c' AND d.id = ANY (s.disks))");
  await until(async () => Number(await owned("c")) === 16 - Number(bare), "c has taken over what it has", 20_000);
  assert.equal(await owned("b"), "0");
  for (const { text } of await answers("c")) assert.doesNotMatch(text, /no worker provides/);
  assert.equal(await owned("b"), "0");
  assert.equal(await fleet.engine.ask(`SELECT count(pg_cancel_backend(pid)) ${sleeps}`), "1");
  await held;
  await fleet.ready("b");
  await until(async () => (await owned("b")) !== "0", "b owns something");
  await until(async () => Number(await owned("b")) + Number(await owned("c")) === 16, "all shards have an owner", 60_000);
  for (const node of ["b", "c"]) assert.deepEqual(await answers(node), [], fleet.nodes.get(node).output.slice(-3000));
});

test("a node is killed in the middle of deployments: all serve the old or the new version, whole", options, async (t) => {
  const fleet = await Fleet.begin(t);
  const clients = await fleet.clients();
  const assets = async (client, text) => client.assets("x", { "/version.txt": text });
  await clients.a.deploy("x", hello("v0"), { metadata: { assets: { jwt: await assets(clients.a, "v0") } } });
  const rounds = Number(process.env.DEPLOY_KILLS ?? 5);
  let current = "v0", finished = 0;
  for (let i = 1; i <= rounds; i++) {
    const text = `v${i}`;
    const leader = NAMES[i % 3], victim = i % 2 ? leader : NAMES[(i + 1) % 3];
    const deployed = (async () => {
      const jwt = await assets(clients[leader], text);
      await clients[leader].deploy("x", hello(text), { metadata: { assets: { jwt } } });
      return true;
    })().catch((error) => (t.diagnostic(`round ${i}: ${error.cause?.code ?? error.message}`), false));
    await new Promise((resolve) => setTimeout(resolve, 40 + ((i * 337) % 900)));
    fleet.nodes.get(victim).signal("SIGKILL");
    await fleet.nodes.get(victim).exited;
    const told = await deployed;
    if (told) finished++;
    await fleet.up(victim);
    // All the same: the new one if that was told, else the old or the new one; and code and assets of one version.
    let last;
    await until(async () => {
      const [code, files] = [await fleet.answers(), await fleet.answers("/version.txt")];
      last = JSON.stringify([code, files]);
      const one = code.a;
      return [current, text].includes(one) && (!told || one === text) && NAMES.every((name) => code[name] === one && files[name] === one);
    }, `round ${i}: ${leader} deploys, ${victim} is killed, told ${told}`, 60_000).catch((error) => {
      throw new Error(`${error.message}: ${last}, before ${current}\n${[...fleet.nodes].map(([name, server]) => `${name}:\n${server.output}`).join("\n")}`);
    });
    current = (await fleet.answers()).a;
  }
  t.diagnostic(`${finished} of ${rounds} deployments were told to have succeeded`);
  await clients.b.deploy("x", hello("last")); // nothing holds the next one back
  assert.deepEqual(await fleet.answers(), all("last"));
  const [bundles, named] = (await fleet.engine.ask("SELECT count(DISTINCT id) || ' ' || (SELECT count(*) FROM cairn.piece p WHERE NOT EXISTS (SELECT 1 FROM cairn.bundle b WHERE b.sum = p.sum)) FROM cairn.bundle")).split(" ");
  assert.equal(named, "0");
  const listed = await clients.b.result("GET", "workers/scripts/x/versions");
  assert.equal(Number(bundles), listed.items.length);
});

test("two nodes deploy at once, and one after the other takes its turn; a node that is frozen is not waited for", options, async (t) => {
  const fleet = await Fleet.begin(t);
  const clients = await fleet.clients();
  await Promise.all(NAMES.map((name) => clients[name].deploy(`w-${name}`, hello(name))));
  for (const name of NAMES) assert.deepEqual(await fleet.answers("/", `w-${name}.localhost`), all(name));
  const c = fleet.nodes.get("c");
  c.signal("SIGSTOP");
  await clients.a.deploy("x", hello("without c"));
  for (const name of ["a", "b"]) assert.equal((await get(fleet.nodes.get(name), "/", { host: "x.localhost" })).text, "without c");
  c.signal("SIGCONT");
  await until(async () => (await fleet.answers()).c === "without c", "c catches up");

  // A node that cannot be reached by its engine serves on, and deploys nothing.
  fleet.cut("b", true);
  const failed = await clients.b.script("x", hello("cut off"));
  assert.ok(failed.status >= 400, JSON.stringify(failed));
  fleet.cut("b", false);
  await until(async () => Object.values(await fleet.answers()).every((text) => text === "without c"), "all serve the same");
  await until(async () => (await clients.b.script("x", hello("again"))).status === 200, "b deploys again");
  assert.deepEqual(await fleet.answers(), all("again"));
});

test("bytes in the engine that are not those that were deployed are served by nobody; the other workers are", options, async (t) => {
  const fleet = await Fleet.begin(t, ["a", "b"]);
  const clients = await fleet.clients();
  await clients.a.deploy("z", hello("good"));
  await clients.a.deploy("x", hello("an honest version"));
  const b = fleet.nodes.get("b");
  assert.deepEqual(await b.stop(), { code: 0, signal: null });
  rmSync(`${b.data}/deployed`, { recursive: true }); // it has to fetch everything
  const sum = await fleet.engine.ask("SELECT sum FROM cairn.piece WHERE position('an honest version'::bytea in body) > 0 ORDER BY sum LIMIT 1");
  await fleet.engine.ask("UPDATE cairn.piece SET body = convert_to(replace(convert_from(body, 'UTF8'), 'honest', 'forged'), 'UTF8') WHERE position('an honest version'::bytea in body) > 0");
  assert.ok(sum);
  await fleet.up("b");
  assert.match(fleet.nodes.get("b").output, /does not match its checksum in the engine/);
  assert.equal((await get(fleet.nodes.get("b"), "/", { host: "x.localhost" })).status, 503);
  assert.deepEqual(await fleet.answers("/", "z.localhost"), all("good", ["a", "b"]));
  await clients.a.deploy("x", hello("deployed again"));
  assert.deepEqual(await fleet.answers("/", "x.localhost"), all("deployed again", ["a", "b"]));
});
