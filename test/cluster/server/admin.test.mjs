// Administration of a cluster: an operator who asks any node sees one server. What is asked of a node that does not have it is carried out by the one that does
// (src/admin/relay.h), lists are of all nodes (spread.h), and who listens hears all of them (gather.h).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import test, { after } from "node:test";
import { closeBrowser, inspect, noBrowser, withPage } from "../../integration/lib/browser.mjs";
import { cairn } from "../../integration/lib/server.mjs";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

after(closeBrowser);

const options = { skip: absent, timeout: 600_000 };
const NODES = ["a", "b", "c"];

const project = {
  "wrangler.toml": `name = "admin"
main = "index.js"
compatibility_date = "2026-01-01"
kv_namespaces = [{ binding = "KV", id = "kv" }]
d1_databases = [{ binding = "DB", database_name = "db", database_id = "db" }, { binding = "DB2", database_name = "db2", database_id = "db2" }, { binding = "DB3", database_name = "db3", database_id = "db3" }]
r2_buckets = [{ binding = "BUCKET", bucket_name = "bucket" }]
[triggers]
crons = ["0 0 1 1 *"]
[[durable_objects.bindings]]
name = "THING"
class_name = "Thing"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Thing"]
[[queues.producers]]
binding = "QUEUE"
queue = "jobs"
[cairn.cluster]
shards = 16
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Thing extends DurableObject {
  async make(size) {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entry(value TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO entry VALUES (?)", "x".repeat(size));
    await this.ctx.storage.put("key", { size });
    return "made";
  }
  say(text) { console.log("object says " + text); return text; }
}
export default {
  async fetch(request, env) {
    const [, what, name, value] = new URL(request.url).pathname.split("/");
    if (what === "make") return Response.json(await env.THING.getByName(name).make(Number(value)));
    if (what === "id") return Response.json(String(env.THING.idFromName(name)));
    if (what === "say") { console.log("said " + name); return Response.json(name); }
    if (what === "send") return Response.json((await env.QUEUE.send(name), "sent"));
    if (what === "put") return Response.json((await env.KV.put(name, value), "put"));
    if (what === "store") return Response.json((await env.BUCKET.put(name, value), "stored"));
    if (what === "fill") {
      const db = env[name];
      await db.exec("CREATE TABLE IF NOT EXISTS t(v TEXT)");
      await db.prepare("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO t SELECT hex(randomblob(4000)) FROM n").bind(Number(value)).run();
      return Response.json("filled");
    }
    return new Response("?", { status: 404 });
  },
};
`,
};

async function make(t, nodes = NODES, more = {}) {
  const cluster = await Cluster.make(t, { project, ...more });
  for (const name of nodes) await cluster.start(name);
  t.after(() => {
    for (const [name, { exit, output, told }] of cluster.nodes) {
      const text = exit && !told && exit.signal !== "SIGKILL" ? `${name} ended by itself: ${JSON.stringify(exit)}\n${output.slice(-3000)}` : "";
      if (text) t.diagnostic(text); // what it led to is told before
      assert.equal(text, "");
    }
  });
  await cluster.whole();
  await until(async () => (await cluster.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard")) === String(nodes.length), "all nodes own something", 200_000);
  return cluster;
}

/** A request to the control API of a node: {status, type, bytes, value}. */
const ask = (cluster, node, path, { method = "GET", body, headers } = {}) =>
  new Promise((resolve, reject) => {
    const request = http.request({ socketPath: `${cluster.base}/${node}/control.sock`, path, method, headers, agent: false, timeout: 60_000 }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => {
        const bytes = Buffer.concat(parts), type = response.headers["content-type"];
        let value;
        try { value = type === "application/json" ? JSON.parse(bytes) : undefined; } catch (error) { return reject(error); }
        resolve({ status: response.statusCode, type, bytes, value });
      });
    });
    request.on("error", reject).end(body === undefined || typeof body === "string" ? body : JSON.stringify(body));
  });

/** The same, which must be 200. */
async function good(cluster, node, path, more) {
  const answer = await ask(cluster, node, path, more);
  assert.equal(answer.status, 200, `${node} ${path}: ${answer.status} ${answer.bytes}`);
  return answer.value ?? answer.bytes;
}

/** Bookmarks of now without the moment that they were made at. */
const steady = (value) => (Buffer.isBuffer(value) ? value : JSON.parse(JSON.stringify(value).replace(/"bookmark":"([0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8})-[0-9a-f]+"/g, '"bookmark":"$1"')));

/** What all nodes answer, which must be equal. */
async function same(cluster, path, more, nodes = NODES) {
  const [first, ...others] = await Promise.all(nodes.map((node) => good(cluster, node, path, more)));
  others.forEach((other, i) => assert.deepEqual(steady(other), steady(first), `${nodes[i + 1]} ${path}`));
  return first;
}

/** All pages of a list, as one node shows them. */
async function pages(cluster, node, query) {
  const all = [];
  for (let cursor = null, count = 0; count < 100; count++) {
    const page = await good(cluster, node, `/api/objects?namespace=admin%2FThing&${query}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`);
    all.push(...page.objects);
    cursor = page.cursor;
    if (cursor === null) return all;
  }
  throw new Error("the list does not end");
}

const object = (name, rest = "") => `/api/objects/admin%2FThing/${name}${rest}`;
const COUNT = 40;
const names = Array.from({ length: COUNT }, (_, i) => `thing-${String(i).padStart(3, "0")}`);

async function fill(cluster) {
  for (const [i, name] of names.entries()) await cluster.ask(`/make/${name}/${(i * 37) % 5000}`);
}

/** A listener of `cairn tail`'s stream on a node: {lines, find}. */
async function listen(t, cluster, node) {
  const lines = [];
  let text = "", ended = false;
  const request = http.get({ socketPath: `${cluster.base}/${node}/control.sock`, path: "/api/tail", agent: false });
  t.after(() => request.destroy());
  request.on("error", () => (ended = true)).on("response", (response) => {
    response.setEncoding("utf8").on("error", () => (ended = true)).on("data", (more) => {
      const parts = (text + more).split("\n");
      text = parts.pop();
      lines.push(...parts.map((part) => JSON.parse(part)));
    });
  });
  const find = (what, fits, limit = 30_000) => until(() => lines.find(fits), what, limit);
  await find("it listens", (line) => line.listening);
  return { lines, find, request, get ended() { return ended; } };
}

test("every node answers for all of them", options, async (t) => {
  const cluster = await make(t);
  await fill(cluster);
  const owners = new Map();
  for (const name of names) owners.set(name, await cluster.owner(name));
  assert.deepEqual(new Set(owners.values()), new Set(NODES), "objects are on all nodes");

  await t.test("lists of objects: whole, in order, without gaps at the ends of pages, in every order", async () => {
    for (const [query, key] of [["limit=7", (e) => e.id], ["limit=7&sort=name", (e) => e.name], ["limit=6&prefix=thing-01", (e) => e.name],
      ["limit=7&sort=size", (e) => e.size], ["limit=9&sort=size&desc=1", (e) => -e.size], ["limit=5&sort=changed", (e) => e.changed], ["limit=1000", (e) => e.id]]) {
      const lists = [];
      for (const node of NODES) lists.push(await pages(cluster, node, query));
      for (const list of lists) {
        const bare = ({ node, ...entry }) => entry; // shards may still be moved to where they are few
        assert.deepEqual(list.map(bare), lists[0].map(bare), query);
        assert.equal(new Set(list.map((entry) => entry.id)).size, list.length, `${query}: none twice`);
        assert.equal(list.length, query.includes("prefix") ? 10 : COUNT, query);
        for (let i = 1; i < list.length; i++) assert.ok(key(list[i - 1]) <= key(list[i]), `${query}: in order`);
        if (list.length === COUNT) assert.deepEqual(new Set(list.map((entry) => entry.node)), new Set(NODES));
      }
    }
  });

  await t.test("namespaces and what services have are counted over all nodes", async () => {
    const { namespaces } = await same(cluster, "/api/namespaces?count=1");
    assert.equal(namespaces.find((each) => each.name === "admin/Thing").objects, COUNT);
    await same(cluster, "/api/namespaces");
    for (const node of NODES) await cluster.try(node, `/put/${node}/1`);
    await same(cluster, "/api/kv");
    await same(cluster, "/api/d1");
    const workers = await Promise.all(NODES.map((node) => good(cluster, node, "/api/workers")));
    for (const list of workers) assert.deepEqual(list.map(({ deployedAt, ...worker }) => worker), workers[0].map(({ deployedAt, ...worker }) => worker));
  });

  await t.test("an object is looked at, queried, changed and exported from every node, by name and by id", async () => {
    for (const name of [...new Map([...owners].map(([name, node]) => [node, name])).values()]) {
      const { value: id } = await cluster.ask(`/id/${name}`);
      const seen = await same(cluster, object(name));
      assert.equal(seen.tables.find((table) => table.name === "entry").rows, 1);
      assert.deepEqual(steady(await same(cluster, object(id))), steady(seen));
      const sql = { method: "POST", body: { sql: "SELECT length(value) FROM entry", readonly: true } };
      assert.equal((await same(cluster, object(name, "/sql"), sql)).results[0].rows.length, 1);
      const pairs = await same(cluster, object(name, "/kv"));
      assert.equal(pairs.entries[0].key, "key");
      const { commits } = await same(cluster, object(name, "/history"));
      assert.ok(commits.length >= 1);
      const copies = await Promise.all(NODES.map((node) => good(cluster, node, object(name, "/export"))));
      for (const copy of copies) {
        assert.equal(copy.subarray(0, 15).toString(), "SQLite format 3");
        assert.ok(copy.equals(copies[0]));
      }
      for (const [i, node] of NODES.entries()) {
        await good(cluster, node, object(name, "/sql"), { method: "POST", body: { sql: "INSERT INTO entry VALUES (?)", params: [`by ${node}`] } });
        assert.equal((await same(cluster, object(name, "/sql"), { method: "POST", body: { sql: "SELECT count(*) FROM entry" } })).results[0].rows[0][0], 2 + i);
        await good(cluster, node, object(name, `/kv/k%20${node}`), { method: "PUT", body: JSON.stringify(node) });
      }
      assert.equal((await same(cluster, object(name, "/kv"))).entries.length, 4);
      const time = Date.now() + 3_600_000;
      assert.deepEqual(await good(cluster, NODES[0], object(name, "/alarm"), { method: "PUT", body: { time } }), { alarm: time });
      assert.equal((await same(cluster, object(name))).alarm, time);
      await good(cluster, NODES[1], object(name, "/alarm"), { method: "DELETE" });
      const { undo } = await good(cluster, NODES[2], object(name, "/restore"), { method: "POST", body: { bookmark: commits[0].bookmark } });
      assert.equal((await same(cluster, object(name, "/sql"), sql)).results[0].rows.length, 1, "as it was");
      await good(cluster, NODES[0], object(name, "/restore"), { method: "POST", body: { bookmark: undo } });
      assert.equal((await same(cluster, object(name, "/sql"), sql)).results[0].rows.length, 4, "and as it was before that");
    }
  });

  await t.test("what is wrong is said in the same words", async () => {
    const wrong = [object("nobody"), object("ff".repeat(32)), "/api/objects?namespace=no%2FNo", "/api/objects?namespace=admin%2FThing&cursor=zz", "/api/objects?namespace=admin%2FThing&limit=-1",
      "/api/objects/no%2FNo/x", "/api/d1/db/bookmark?time=never", object(names[0], "/export?bookmark=no")];
    for (const path of wrong) {
      const answers = await Promise.all(NODES.map((node) => ask(cluster, node, path)));
      for (const answer of answers) {
        assert.ok(answer.status >= 400 && answer.status < 500, `${path}: ${answer.status} ${answer.bytes}`);
        assert.deepEqual(answer.value, answers[0].value, path);
      }
    }
    const bad = await Promise.all(NODES.map((node) => ask(cluster, node, object(names[1], "/sql"), { method: "POST", body: { sql: "SELEKT" } })));
    for (const answer of bad) assert.deepEqual([answer.status, answer.value], [400, bad[0].value]);
    for (const node of NODES) {
      assert.equal((await ask(cluster, node, "/node/taps", { method: "POST", body: { worker: "admin" } })).status, 405, "which is for nodes");
      assert.equal((await ask(cluster, node, "/node/tail")).status, 405, "and so is this");
    }
  });

  await t.test("consoles of services reach the owner", async () => {
    for (const db of ["db", "db2", "db3"]) {
      await good(cluster, "a", `/api/d1/${db}/query`, { method: "POST", body: { sql: "CREATE TABLE x(v); INSERT INTO x VALUES (1)" } });
      const { bookmark } = await same(cluster, `/api/d1/${db}/bookmark`);
      await good(cluster, "b", `/api/d1/${db}/query`, { method: "POST", body: { sql: "INSERT INTO x VALUES (2)" } });
      assert.notEqual((await same(cluster, `/api/d1/${db}/bookmark`)).bookmark, bookmark);
      const { objects } = await same(cluster, `/api/objects?namespace=%24d1%2F${db}`);
      assert.equal(objects.length, 1);
      await good(cluster, "c", `/api/objects/%24d1%2F${db}/${objects[0].id}/restore`, { method: "POST", body: { bookmark } });
      const { results } = await good(cluster, "a", `/api/d1/${db}/query`, { method: "POST", body: { sql: "SELECT v FROM x" } });
      assert.equal(JSON.stringify(results).includes("2}"), false, JSON.stringify(results));
    }
    for (let i = 0; i < 5; i++) await cluster.ask(`/send/m${i}`);
    const { messages } = await same(cluster, "/api/queues/jobs/messages?limit=3");
    assert.equal(messages.length, 3);
    await same(cluster, "/api/queues");
    await same(cluster, "/api/r2");
    await cluster.ask("/store/o/value");
    await same(cluster, "/api/r2/bucket/objects");
  });

  await t.test("an object is deleted from a node that does not have it", async () => {
    const name = names.at(-1), elsewhere = NODES.find((node) => node !== owners.get(name));
    await good(cluster, elsewhere, object(name), { method: "DELETE" });
    for (const node of NODES) assert.equal((await ask(cluster, node, object(name))).status, 404, node);
    assert.equal((await pages(cluster, "a", "limit=1000")).length, COUNT - 1);
  });

  await t.test("the command line asks any node", async () => {
    const name = names[2], elsewhere = NODES.find((node) => node !== owners.get(name));
    const child = spawn(cairn, ["objects", "sql", "admin/Thing", name, "SELECT count(*) AS n FROM entry", "--json", "--data", `${cluster.base}/${elsewhere}`], { stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const out of [child.stdout, child.stderr]) out.setEncoding("utf8").on("data", (more) => (text += more));
    assert.equal(await new Promise((resolve) => child.on("close", resolve)), 0, text);
  });
});

test("a listener on one node hears all of them, and goes on when one dies, returns or joins", options, async (t) => {
  const cluster = await make(t, ["a", "b"]);
  const tail = await listen(t, cluster, "a");
  for (const node of ["a", "b"]) {
    await cluster.try(node, `/say/hello-${node}`);
    const line = await tail.find(`what ${node} says`, (each) => each.message?.includes(`said hello-${node}`));
    assert.equal(line.node, node);
  }
  cluster.nodes.get("b").signal("SIGKILL");
  const lost = await tail.find("that b is lost", (each) => each.node === "b" && each.level === "warn" && /not heard any more/.test(each.message));
  assert.match(lost.message, /node b/);
  await cluster.try("a", "/say/alone");
  await tail.find("a is heard meanwhile", (each) => each.message?.includes("said alone"));
  await cluster.nodes.get("b").exited;
  await cluster.start("b");
  await cluster.start("c");
  await tail.find("that b is back", (each) => each.node === "b" && /heard/.test(each.message) && !/not heard/.test(each.message), 60_000);
  await tail.find("that c has joined", (each) => each.node === "c" && /joined/.test(each.message), 60_000);
  for (const node of ["b", "c"]) {
    await cluster.try(node, `/say/again-${node}`);
    assert.equal((await tail.find(`what ${node} says`, (each) => each.message?.includes(`said again-${node}`))).node, node);
  }
  assert.equal(tail.ended, false);
});

test("a reader who takes nothing holds no memory on the others", options, async (t) => {
  const cluster = await make(t, ["a", "b"]);
  const rss = (node) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${cluster.nodes.get(node).child.pid}/status`, "utf8"))[1]) / 1024;
  const tail = await listen(t, cluster, "a");
  tail.request.res.pause();
  const word = "w".repeat(2000);
  await Promise.all(Array.from({ length: 20 }, () => cluster.try("b", `/say/${word}`)));
  const before = { a: rss("a"), b: rss("b") };
  for (let i = 0; i < 200; i++) await Promise.all(Array.from({ length: 50 }, () => cluster.try("b", `/say/${word}`)));
  for (const node of ["a", "b"]) assert.ok(rss(node) - before[node] < 40, `${node}: ${before[node]} MB, then ${rss(node)}`); // 40 MB were said, twice
  tail.request.res.resume();
  await until(async () => (await cluster.try("b", "/say/more"), tail.lines.some((line) => line.dropped > 0)), "that lines were dropped", 30_000); // is told with the next one
});

test("lists and looks while the owner is killed, and while shards move, are whole or refused", options, async (t) => {
  const cluster = await make(t);
  await fill(cluster);
  let stop = false;
  const counts = { good: 0, refused: 0 }, wrong = [];
  const run = async (node) => {
    while (!stop) {
      const answer = await ask(cluster, node, "/api/objects?namespace=admin%2FThing&limit=1000").catch((error) => ({ status: 0, error }));
      if (answer.status === 200) {
        counts.good++;
        if (answer.value.objects.length !== COUNT) wrong.push(answer.value.objects.length);
      } else if (answer.status === 503 && /try again/.test(answer.value.error.message)) {
        counts.refused++;
      } else {
        wrong.push(`${answer.status} ${answer.bytes ?? answer.error}`);
      }
      for (const name of names.slice(0, 3)) {
        const seen = await ask(cluster, node, object(name)).catch((error) => ({ status: 0, error }));
        if (seen.status !== 200 && !(seen.status === 503 && /try again/.test(seen.value.error.message))) wrong.push(`${name}: ${seen.status} ${seen.bytes ?? seen.error}`);
      }
    }
  };
  const running = ["a", "c"].map(run);
  await until(() => counts.good > 5, "lists are made");
  for (let i = 0; i < 6; i++) await cluster.command("move", String(i), ["a", "b", "c"][i % 3]);
  cluster.nodes.get("b").signal("SIGKILL");
  const before = counts.good;
  await until(() => counts.good > before + 5, "lists are made again", 60_000);
  stop = true;
  await Promise.all(running);
  assert.deepEqual(wrong, [], JSON.stringify(counts));
});

test("a large database is exported by a node that does not have it, in bounded memory; cut off if its owner dies", options, async (t) => {
  const cluster = await make(t);
  const rss = (node) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${cluster.nodes.get(node).child.pid}/status`, "utf8"))[1]) / 1024;
  for (let i = 0; i < 8; i++) await cluster.ask("/fill/DB/1000", { timeout: 30_000 });
  await cluster.settled();
  const { objects: [{ id, node: owner, size }] } = await good(cluster, "a", "/api/objects?namespace=%24d1%2Fdb");
  assert.ok(size > 60e6, `${size} bytes`);
  const [other] = NODES.filter((node) => node !== owner);
  const path = `/api/objects/%24d1%2Fdb/${id}/export`;
  const before = rss(other);
  const copy = await good(cluster, other, path);
  assert.equal(copy.length, size);
  assert.ok(rss(other) - before < 20, `${before} MB, then ${rss(other)}`);
  const broken = new Promise((resolve) => {
    http.get({ socketPath: `${cluster.base}/${other}/control.sock`, path, agent: false }, (response) => {
      let count = 0, killed = false;
      response.on("data", (part) => {
        count += part.length;
        if (!killed && count > 1e6) {
          killed = true;
          cluster.nodes.get(owner).signal("SIGKILL");
        }
      }).on("error", () => resolve("cut")).on("end", () => resolve(response.complete ? `whole: ${count}` : "cut"));
    });
  });
  assert.equal(await broken, "cut");
});

test("the dashboard of a node shows what the others have", { ...options, skip: absent || noBrowser }, async (t) => {
  const cluster = await make(t, NODES, { args: ["--admin", "127.0.0.1:0"] });
  await fill(cluster);
  await cluster.settled();
  const { objects } = await good(cluster, "a", "/api/objects?namespace=admin%2FThing&limit=1000");
  const { name, node: owner } = objects[0];
  const other = NODES.find((node) => node !== owner);
  const [, admin] = await cluster.nodes.get(other).until(/admin on (http:\S+)/);
  const token = readFileSync(`${cluster.base}/${other}/admin.token`, "utf8").trim();
  await withPage({ width: 1280, height: 900, colorScheme: "light" }, async (page) => {
    await page.goto(`${admin}/#token=${encodeURIComponent(token)}`);
    await page.getByText(`node ${other} alone`).waitFor();
    await inspect(page, "admin-overview");
    await page.getByRole("link", { name: "Objects" }).click();
    await page.getByRole("columnheader", { name: "Node" }).waitFor();
    await page.getByPlaceholder("Beginning of a name or an id").fill(name);
    const row = page.locator("[data-row]", { hasText: name });
    await row.waitFor();
    assert.ok((await row.innerText()).split("\t").some((cell) => NODES.includes(cell)), await row.innerText());
    await page.getByPlaceholder("Beginning of a name or an id").fill("");
    await until(async () => (await page.locator("[data-row]").count()) === COUNT, "all of them");
    await inspect(page, "admin-objects");
    await page.goto(`${admin}/#/object/${encodeURIComponent("admin/Thing")}/${objects[0].id}`);
    await page.locator("option", { hasText: "entry (1)" }).waitFor({ state: "attached" });
    await page.getByText("xxxx").first().waitFor();
    await inspect(page, "admin-object");
    await page.goto(`${admin}/#/logs`);
    await until(async () => {
      await cluster.try(owner, "/say/seen-elsewhere");
      return page.getByText("said seen-elsewhere").first().isVisible();
    }, "what the other node says", 30_000);
    await inspect(page, "admin-logs");
  });
});
