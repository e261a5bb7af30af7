// Files at the top of a data directory, and `cairn check`: a flipped bit in any of them is found, and a server does not
// start on it; those of a version without checksums are taken and get them.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { random, seedOfRun } from "../../lib/random.mjs";
import { cairn, project, serve, tempDir } from "../lib/server.mjs";

const files = {
  "wrangler.toml": 'name = "app"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[[durable_objects.bindings]]\nname = "D"\nclass_name = "D"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["D"]\n',
  "index.js": 'import { DurableObject } from "cloudflare:workers";\nexport class D extends DurableObject { async fetch() { return new Response(String(this.ctx.id)); } }\nexport default { fetch(r, env) { return env.D.getByName("one").fetch(r); } };',
};
const check = (data) => spawnSync(cairn, ["check", data], { encoding: "utf8" });

test("SECRET, classes.json, admin.token, FORMAT: every flipped bit is found", async (t) => {
  const data = tempDir(), dir = project(files), seed = seedOfRun(), next = random(seed);
  t.diagnostic(`seed ${seed}`);
  const server = await serve(dir, { data, env: { CAIRN_ADMIN: "127.0.0.1:0" } });
  const id = await (await server.fetch("/")).text();
  await server.stop();
  assert.equal(check(data).status, 0, check(data).stdout);
  for (const name of ["SECRET", "classes.json", "admin.token", "FORMAT"]) {
    const file = path.join(data, name), good = readFileSync(file);
    for (let i = 0; i < 12; i++) {
      const bytes = Buffer.from(good), at = i === 0 ? 0 : i === 1 ? good.length - 1 : Math.floor(next() * good.length), bit = Math.floor(next() * 8);
      bytes[at] ^= 1 << bit;
      writeFileSync(file, bytes);
      const { status, stdout, stderr } = check(data);
      assert.ok(status === 1 || status === 3, `${name}, byte ${at}, bit ${bit}: ${stdout}${stderr}`);
      assert.match(stdout + stderr, new RegExp(name === "FORMAT" ? "FORMAT|format" : name));
    }
    await assert.rejects(serve(dir, { data, env: { CAIRN_ADMIN: "127.0.0.1:0" } }), `${name}: a server must not start on it`);
    writeFileSync(file, good);
  }
  // As version 1 wrote them.
  writeFileSync(path.join(data, "SECRET"), readFileSync(path.join(data, "SECRET")).subarray(0, 16));
  const { crc32c, ...table } = JSON.parse(readFileSync(path.join(data, "classes.json"), "utf8"));
  assert.match(crc32c, /^[0-9a-f]{8}$/);
  writeFileSync(path.join(data, "classes.json"), JSON.stringify({ ...table, version: 1 }));
  writeFileSync(path.join(data, "admin.token"), "0123456789abcdef0123456789abcdef0123456789abcdef\n");
  assert.equal(check(data).status, 0);
  const again = await serve(dir, { data, env: { CAIRN_ADMIN: "127.0.0.1:0" } });
  assert.equal(await (await again.fetch("/")).text(), id, "the same secret");
  await again.stop();
  assert.equal(readFileSync(path.join(data, "SECRET")).length, 20);
  assert.equal(check(data).status, 0);
});

test("a damaged page is an error for its object alone, and the way back that the message names works", async () => {
  const data = tempDir(), dir = project({
    "wrangler.toml": files["wrangler.toml"],
    "index.js": `import { DurableObject } from "cloudflare:workers";
export class D extends DurableObject {
  fill() { this.ctx.storage.sql.exec("CREATE TABLE t(v)"); for (let i = 0; i < 20; i++) this.ctx.storage.sql.exec("INSERT INTO t VALUES(?)", String(i).repeat(1000)); return String(this.ctx.id); }
  read() { return this.ctx.storage.sql.exec("SELECT count(*) AS n, sum(length(v)) AS s FROM t").one(); }
}
export default { async fetch(r, env) {
  const [, what, name] = new URL(r.url).pathname.split("/");
  try { return Response.json(await env.D.getByName(name)[what]()); } catch (e) { return new Response(String(e), { status: 500 }); }
} };`,
  });
  let server = await serve(dir, { data });
  const id = await (await server.fetch("/fill/one")).json();
  await server.fetch("/fill/two");
  const right = await (await server.fetch("/read/one")).text();
  await server.stop();
  const [folder] = readdirSync(path.join(data, "objects")).map((each) => path.join(data, "objects", each, id.slice(0, 2))).filter((each) => existsSync(path.join(each, `${id}.db`)));
  const file = path.join(folder, `${id}.db`), bytes = readFileSync(file);
  bytes[3 * 4096 + 2000] ^= 4;
  writeFileSync(file, bytes);
  const { status, stdout } = check(data);
  assert.equal(status, 1);
  assert.match(stdout, /page 4 of the database of object .* does not match its checksum/);

  server = await serve(dir, { data });
  const answer = await server.fetch("/read/one");
  assert.equal(answer.status, 500);
  const message = await answer.text();
  assert.match(message, new RegExp(`page 4 .* damaged.*cairn objects restore NAMESPACE ${id} --time`));
  assert.equal((await server.fetch("/read/two")).status, 200);
  // What the message says, on the running server.
  const restored = spawnSync(cairn, ["objects", "restore", "app/D", id, "--time", String(Date.now() - 1), "--data", data], { encoding: "utf8" });
  assert.equal(restored.status, 0, restored.stdout + restored.stderr);
  assert.equal(await (await server.fetch("/read/one")).text(), right);
  await server.stop();
  assert.equal(check(data).status, 0, check(data).stdout);
});
