// Classes come, change their names, change their worker, and go: their objects keep id and data.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { alone } from "../lib/differences.mjs";
import { cairn, project, serve, tempDir } from "../lib/server.mjs";

const binding = (name, className, script) =>
  `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "${className}"\n${script ? `script_name = "${script}"\n` : ""}`;
const migration = (tag, text) => `[[migrations]]\ntag = "${tag}"\n${text}\n`;
const toml = (name, ...parts) => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-03-01"\n${parts.join("")}`;
/** A worker that exports these classes; /BINDING/name/METHOD/value calls one. */
const code = (...classes) => `import { DurableObject } from "cloudflare:workers";
class Base extends DurableObject {
  set(v) { this.ctx.storage.kv.put("v", v); }
  get() { return [this.ctx.storage.kv.get("v") ?? null, this.ctx.id.toString(), this.ctx.id.name, this.constructor.name]; }
  alarmIn(ms) { return this.ctx.storage.setAlarm(Date.now() + Number(ms)); }
  alarm() { this.ctx.storage.kv.put("v", "rang in " + this.constructor.name); }
}
${classes.map((name) => `export class ${name} extends Base {}`).join("\n")}
export default {
  async fetch(request, env) {
    const [, binding, name, method, value] = new URL(request.url).pathname.split("/");
    try {
      return Response.json((await env[binding].getByName(name)[method](value)) ?? null);
    } catch (error) {
      return Response.json({ error: error.message }, { status: 500 });
    }
  },
};
`;
const write = (dir, config, text) => {
  writeFileSync(path.join(dir, "wrangler.toml"), config);
  if (text !== undefined) writeFileSync(path.join(dir, "index.js"), text);
};
const worker = (config, text) => project({ "wrangler.toml": config, "index.js": text });
const run = (...args) => {
  const { status, stdout, stderr } = spawnSync(cairn, args, { encoding: "utf8", timeout: 120_000 });
  return { status, stdout, stderr };
};
const deploy = (dirs, data, ...args) => run("deploy", ...[dirs].flat(), "--data", data, ...args);
const call = async (server, url) => (await server.fetch(url)).json();
/** Starting is refused: what the server says. */
const refused = async (dirs, data, ...args) => {
  const error = await serve(dirs, { data, args }).then(
    async (server) => { await server.kill(); throw new Error("it started"); },
    (e) => e,
  );
  assert.match(error.message, /"code":1/);
  return error.message;
};

const v1 = migration("v1", 'new_sqlite_classes = ["Old"]');
const renames = migration("v2", 'renamed_classes = [{ from = "Old", to = "New" }]');

for (const lanes of [1, 2]) {
  test(`DO-MIG-1 DO-MIG-2: a rename keeps ids, data, names and alarms, over kill -9 (${lanes} lanes)`, async () => {
    const data = tempDir();
    const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
    let server = await serve(dir, { data, lanes });
    await call(server, "/B/x/set/one");
    const [, id] = await call(server, "/B/x/get");
    await call(server, "/B/ringer/set/quiet");
    await call(server, "/B/ringer/alarmIn/1500");
    await server.kill();
    write(dir, toml("w", binding("B", "New"), v1, renames), code("New"));
    server = await serve(dir, { data, lanes });
    assert.deepEqual(await call(server, "/B/x/get"), ["one", id, "x", "New"]);
    await server.untilTrue(async () => (await call(server, "/B/ringer/get"))[0] === "rang in New", "the alarm");
    await server.kill();
    server = await serve(dir, { data, lanes });
    assert.deepEqual(await call(server, "/B/x/get"), ["one", id, "x", "New"]);
    await server.stop();
  });

  test(`DO-MIG-2: a class that was renamed is listed by its new name (${lanes} lanes)`, alone("offline"), async () => {
    const data = tempDir();
    const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
    let server = await serve(dir, { data, lanes });
    await call(server, "/B/x/set/one");
    await server.stop();
    write(dir, toml("w", binding("B", "New"), v1, renames), code("New"));
    server = await serve(dir, { data, lanes });
    await server.stop();
    const list = run("objects", "list", "--data", data).stdout;
    assert.match(list, /w\/New/);
    assert.doesNotMatch(list, /w\/Old/);
  });

  test(`DO-MIG-2: a rename while the server runs (${lanes} lanes)`, async () => {
    const data = tempDir();
    const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
    const server = await serve(dir, { data, lanes });
    await call(server, "/B/x/set/one");
    const [, id] = await call(server, "/B/x/get");
    write(dir, toml("w", binding("B", "New"), v1, renames), code("New", "Old"));
    server.signal("SIGHUP");
    await server.reloaded();
    assert.deepEqual(await call(server, "/B/x/get"), ["one", id, "x", "New"]);
    // The old name is free for a new class with objects of its own.
    write(dir, toml("w", binding("B", "New"), binding("O", "Old"), v1, renames, migration("v3", 'new_sqlite_classes = ["Old"]')));
    server.signal("SIGHUP");
    await server.reloaded(2);
    const [value, other] = await call(server, "/O/x/get");
    assert.equal(value, null);
    assert.notEqual(other, id);
    // What is refused changes nothing.
    write(dir, toml("w", binding("B", "Nope"), v1, renames, migration("v3", 'new_sqlite_classes = ["Old"]')));
    server.signal("SIGHUP");
    await server.until(/which does not exist; create it by a migration; the last good version keeps serving/);
    assert.deepEqual(await call(server, "/B/x/get"), ["one", id, "x", "New"]);
    await server.stop();
  });

  test(`DO-MIG-2: a transfer moves the objects to another worker of the server (${lanes} lanes)`, async () => {
    const data = tempDir();
    const host = (name) => `[cairn]\nhosts = ["${name}.test"]\n`;
    const ask = async (server, name, url) => {
      const { Connection } = await import("../lib/server.mjs");
      const connection = new Connection(server.port);
      const { text } = await connection.get(url, { headers: { host: `${name}.test` } });
      connection.close();
      return JSON.parse(text);
    };
    const a = worker(toml("a", binding("ROOM", "Room"), v1.replace("Old", "Room"), host("a")), code("Room"));
    const b = worker(toml("b", host("b")), code());
    let server = await serve([a, b], { data, lanes });
    await ask(server, "a", "/ROOM/x/set/kept");
    const [, id] = await ask(server, "a", "/ROOM/x/get");
    await server.stop();
    write(b, toml("b", binding("HALL", "Hall"), migration("b1", 'transferred_classes = [{ from = "Room", from_script = "a", to = "Hall" }]'), host("b")), code("Hall"));
    server = await serve([b, a], { data, lanes });
    assert.deepEqual(await ask(server, "b", "/HALL/x/get"), ["kept", id, "x", "Hall"]);
    assert.deepEqual(await ask(server, "a", "/ROOM/x/get"), ["kept", id, "x", "Hall"]); // the old binding forwards
    await ask(server, "a", "/ROOM/x/set/more");
    assert.equal((await ask(server, "b", "/HALL/x/get"))[0], "more");
    await server.stop();
  });
}

test("DO-MIG-2 DO-MIG-4: deletion is refused, allowed by name, and taken back", alone("offline"), async () => {
  const data = tempDir();
  const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
  let server = await serve(dir, { data });
  await call(server, "/B/x/set/precious");
  const [, id] = await call(server, "/B/x/get");
  await server.stop();
  const deletes = migration("v2", 'deleted_classes = ["Old"]');
  write(dir, toml("w", binding("B", "Old"), v1, deletes), code("Old"));
  assert.match(deploy(dir, data, "--allow-delete", "Old").stdout, /refused.*binding "B".*does not exist/);
  write(dir, toml("w", v1, deletes), code());
  assert.match(await refused(dir, data), /--allow-delete Old/);
  let answer = deploy(dir, data, "--dry-run");
  assert.equal(answer.status, 1);
  assert.match(answer.stdout, /^refused .*--allow-delete Old$/m);
  answer = deploy(dir, data, "--dry-run", "--allow-delete", "Old");
  assert.equal(answer.status, 0);
  assert.match(answer.stdout, /^delete +w\/Old \(can be taken back until \d{4}-/m);
  assert.equal(deploy(dir, data, "--allow-delete", "w/Old").status, 0);
  assert.equal(deploy(dir, data).stdout, "nothing changes\n");
  const again = migration("v3", 'new_sqlite_classes = ["Old"]');
  write(dir, toml("w", binding("B", "Old"), v1, deletes, again), code("Old"));
  answer = deploy(dir, data, "--recover", "Old");
  assert.equal(answer.stdout, "recover   w/Old\n");
  server = await serve(dir, { data });
  assert.deepEqual(await call(server, "/B/x/get"), ["precious", id, "x", "Old"]);
  await server.stop();
});

test("DO-MIG-1: what is out of step or gone from the code is refused at start", async () => {
  const data = tempDir();
  const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
  await (await serve(dir, { data })).stop();
  write(dir, toml("w", binding("B", "Old"), v1), code("Other"));
  assert.match(await refused(dir, data), /the code no longer exports the class "Old"/);
  write(dir, toml("w", v1, renames), code("Old"));
  assert.match(await refused(dir, data), /the code no longer exports the class "New"/);
  write(dir, toml("w", binding("B", "Old"), renames), code("Old"));
  assert.match(await refused(dir, data), /"v1" has been applied here, but the configuration no longer has it/);
  write(dir, toml("w", binding("B", "Old")), code("Old"));
  assert.match(await refused(dir, data), /neither "migrations" nor "exports"/);
  write(dir, toml("w", binding("B", "Old"), binding("C", "Old", "nobody"), v1), code("Old"));
  assert.match(await refused(dir, data), /the binding "C" is to the class "Old" of nobody, which does not exist; serve that worker too/);
  write(dir, toml("w", binding("B", "Old"), v1), code("Old"));
  await (await serve(dir, { data })).stop();
});

test("DO-MIG-3: exports: created, renamed, removed tombstone, never back to migrations", alone("offline"), async () => {
  const data = tempDir();
  const created = (name) => `[exports.${name}]\ntype = "durable-object"\nstorage = "sqlite"\n`;
  const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
  let server = await serve(dir, { data });
  await call(server, "/B/x/set/kept");
  const [, id] = await call(server, "/B/x/get");
  await server.stop();
  write(dir, toml("w", binding("B", "Old"), created("Old"))); // from migrations to exports: nothing to do
  assert.equal(deploy(dir, data, "--dry-run").stdout, "nothing changes\n");
  assert.equal(deploy(dir, data).status, 0);
  write(dir, toml("w", binding("B", "New"), created("New"), '[exports.Old]\ntype = "durable-object"\nstate = "renamed"\nrenamed_to = "New"\n'), code("New"));
  assert.match(deploy(dir, data, "--dry-run").stdout, /^rename +w\/Old -> w\/New$/m);
  server = await serve(dir, { data });
  assert.deepEqual(await call(server, "/B/x/get"), ["kept", id, "x", "New"]);
  await server.stop();
  write(dir, toml("w", binding("B", "New"), created("New")));
  assert.equal(deploy(dir, data).stdout, "nothing changes\n");
  write(dir, toml("w", binding("B", "New"), v1, renames));
  assert.match(await refused(dir, data), /cannot go back to "migrations"/);
  write(dir, toml("w", binding("B", "New"), created("New"), v1));
  assert.match(deploy(dir, data).stderr, /exclude each other/);
});

test("DO-MIG-4: deploy has a running server do it, also a deletion, and says what came of it", alone("classes"), async () => {
  const data = tempDir();
  const dir = worker(toml("w", binding("B", "Old"), v1), code("Old"));
  const server = await serve(dir, { data });
  await call(server, "/B/x/set/one");
  write(dir, toml("w", v1, migration("v2", 'deleted_classes = ["Old"]')), code());
  const answer = deploy(dir, data, "--allow-delete", "Old");
  assert.equal(answer.status, 0, answer.stderr);
  assert.match(answer.stdout, /^delete .*\nthe server has deployed it\n$/);
  await server.until(/delete +w\/Old/);
  assert.match((await call(server, "/B/x/get")).error, /undefined/);
  const table = JSON.parse(readFileSync(path.join(data, "classes.json"), "utf8"));
  assert.ok(table.classes[0].deleted_ms > 0);
  write(dir, toml("w", v1, migration("v2", 'deleted_classes = ["Old"]')), 'throw new Error("does not start"); export default {};');
  const failed = await new Promise((resolve) => {
    const child = spawn(cairn, ["deploy", dir, "--data", data], { stdio: ["ignore", "ignore", "pipe"] });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text) => { stderr += text; });
    child.on("close", (status) => resolve({ status, stderr }));
  });
  assert.equal(failed.status, 1);
  assert.match(failed.stderr, /the server that uses .*does not start/);
  await server.stop();
});

test("DO-MIG-2: past the retention time the objects of a deleted class go for good", alone("classes"), async () => {
  const data = tempDir();
  const history = "[cairn.history]\ndays = 2\n";
  const dir = worker(toml("w", binding("B", "Old"), v1, history), code("Old"));
  const server = await serve(dir, { data });
  for (let i = 0; i < 120; i++) await call(server, `/B/o${i}/set/${i}`);
  await server.stop();
  const deletes = migration("v2", 'deleted_classes = ["Old"]');
  write(dir, toml("w", v1, deletes, history), code());
  assert.equal(deploy(dir, data, "--allow-delete", "Old").status, 0);
  const file = path.join(data, "classes.json");
  const age = (days) => {
    const table = JSON.parse(readFileSync(file, "utf8"));
    table.classes[0].deleted_ms = Date.now() - days * 86_400_000;
    delete table.crc32c; // as an older version wrote it, and as who edits it must
    table.version = 1;
    writeFileSync(file, JSON.stringify(table));
  };
  const { namespace } = JSON.parse(readFileSync(file, "utf8")).classes[0];
  const count = () => run("objects", "list", `w/Old (deleted, ${namespace})`, "--json", "--data", data).stdout.split("\n").filter(Boolean).length;
  age(1.9);
  deploy(dir, data);
  assert.equal(count(), 120);
  age(2.1);
  deploy(dir, data);
  assert.equal(count(), 0);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")).classes, []);
  assert.equal(run("check", data).status, 0);
});
