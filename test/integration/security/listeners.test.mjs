// Without being told, a server listens on loopback only, and nobody else can read its data.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, readdirSync, readlinkSync, statSync } from "node:fs";
import path from "node:path";
import { spawn, spawnSync } from "node:child_process";
import { test } from "node:test";
import { Server, cairn, project, serve, tempDir } from "../lib/server.mjs";

const files = { "index.js": 'export default { fetch() { return new Response("hello"); } };' };

/** Addresses that the process listens on, from the kernel: ["127.0.0.1:8787", ...]. */
function listening(pid) {
  const inodes = new Set();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? [];
      if (inode) inodes.add(inode);
    } catch {} // closed meanwhile
  }
  const found = [];
  for (const file of ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"])
    for (const line of readFileSync(`/proc/${pid}/net/${file}`, "utf8").split("\n").slice(1)) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      if (!inodes.has(inode) || (file.startsWith("tcp") && state !== "0A")) continue;
      found.push(`${file} ${local.split(":")[0]}`);
    }
  return [...new Set(found)].sort();
}

test("loopback only, unless told", async (t) => {
  // The defaults, but for ports that other tests may use.
  const child = spawn(cairn, ["serve", project(files), "--data", tempDir()], {
    stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_LISTEN: "", CAIRN_ADMIN: "" },
  });
  const server = new Server(child);
  t.after(() => server.kill());
  // The port 8787 may be taken: then it says so, and where it would have listened.
  const outcome = await Promise.race([server.ready.then(() => "ready"), server.exited.then(() => "ended")]).catch(() => "ended");
  if (outcome === "ready") assert.deepEqual(listening(server.pid), ["tcp 0100007F"]);
  else assert.match(server.output, /listen on 127\.0\.0\.1 port 8787/);
  const asked = await serve(project(files), { args: ["--admin", "127.0.0.1:0"] });
  t.after(() => asked.kill());
  assert.deepEqual(listening(asked.pid), ["tcp 0100007F"]);
  const told = await serve(project(files), { args: ["--listen", "0.0.0.0:0"] });
  t.after(() => told.kill());
  assert.deepEqual(listening(told.pid), ["tcp 00000000"]);
});

const mode = (file) => (statSync(file).mode & 0o777).toString(8);

test("the data directory is the server's alone, whichever command made it", async () => {
  const objects = {
    "wrangler.json": JSON.stringify({
      name: "app", main: "index.js", compatibility_date: "2026-01-01", durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
      migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    }),
    "index.js": 'import { DurableObject } from "cloudflare:workers"; export class Cell extends DurableObject {} export default { fetch() { return new Response("x"); } };',
  };
  for (const args of [["serve"], ["build"], ["deploy"]]) {
    const dir = project(objects), data = path.join(tempDir(), "data");
    if (args[0] === "serve") await (await serve(dir, { data })).stop();
    else assert.equal(spawnSync(cairn, [...args, dir, "--data", data], { encoding: "utf8" }).status, 0);
    assert.equal(mode(data), "700", args[0]);
  }
  const plain = path.join(tempDir(), "data");
  const server = await serve(project(files), { data: plain, args: ["--admin", "127.0.0.1:0"] });
  assert.equal(mode(plain), "700");
  assert.equal(mode(path.join(plain, "control.sock")), "600");
  assert.equal(mode(path.join(plain, "admin.token")), "600");
  await server.stop();
});

test("one that others can read is told of", async () => {
  const data = path.join(tempDir(), "data");
  mkdirSync(data);
  chmodSync(data, 0o755);
  const server = await serve(project(files), { data });
  await server.until(/others can read the data directory \(mode 755\): chmod 700/);
  await server.stop();
});
