// What an operator types beside the packaged service: the data directory is found, times are those of a clock on the wall, the journal has JSON.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder, project, run, serve } from "../lib/cairn.mjs";
import { cairn } from "../lib/server.mjs";

const files = {
  "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[[durable_objects.bindings]]\nname = "ROOM"\nclass_name = "Room"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Room"]\n`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async next() { const n = (await this.ctx.storage.get("n") ?? 0) + 1; await this.ctx.storage.put("n", n); return n; }
}
export default { fetch: async (request, env) => new Response(await env.ROOM.getByName("a").next()) };`,
};

test("without --data and without .cairn here, commands work on the data directory of the package", async (t) => {
  const dir = project(t, files), elsewhere = folder(t);
  const server = await serve(t, dir);
  await server.text("/");
  await server.stop();
  // A /var/lib of its own: nothing of this machine's is looked at.
  const inside = (command, cwd) => spawnSync("unshare", ["-rm", "sh", "-ec", `mount -t tmpfs none /var/lib; cp -r "$1" /var/lib/cairn; cd "$2"; ${command}`, "sh", path.join(dir, ".cairn"), cwd],
    { encoding: "utf8", env: { PATH: `${path.dirname(cairn)}:${process.env.PATH}` } });
  const listed = inside("cairn objects list && cairn check && cairn backup there", elsewhere);
  assert.equal(listed.status, 0, listed.stderr);
  assert.match(listed.stdout, /^w\/Room +[0-9a-f]{64} .* a\n\/var\/lib\/cairn: 1 objects .* clean\n/);
  assert.match(inside("cairn objects list", dir).stdout, /^w\/Room /); // that of the folder, which is the same here
  for (const create of ["queues create work", "d1 create words"]) { // these ask a server
    assert.match(inside(`cairn ${create}`, elsewhere).stderr, /no server runs on the data directory \/var\/lib\/cairn\n/, create);
  }
  const own = inside("mkdir .cairn; cairn check", elsewhere);
  assert.match(own.stderr, /^cairn: \.cairn: /);
});

test("a data directory of another user says so", { skip: process.getuid() !== 0 && "needs another user" }, (t) => {
  const dir = folder(t);
  const closed = spawnSync("setpriv", ["--reuid=65534", "--clear-groups", cairn, "objects", "list", "--data", "/root"], { cwd: "/", encoding: "utf8", env: { PATH: process.env.PATH } });
  assert.ok(dir);
  assert.equal(closed.status, 1);
  assert.match(closed.stderr, /^cairn: the data directory \/root belongs to another user: try it with sudo\n$/);
});

test("objects go back to a moment in local time, with another zone, and to some time ago", async (t) => {
  const dir = project(t, files);
  const server = await serve(t, dir);
  assert.equal(await server.text("/"), "1");
  const data = ["--data", path.join(dir, ".cairn")];
  const since = JSON.parse(run(["objects", "inspect", "w/Room", "a", "--json", ...data]).stdout);
  const moment = since.changed + 1;
  await server.untilTrue(() => Date.now() > moment + 1, "the next millisecond");
  assert.equal(await server.text("/"), "2");
  // TZ here: two hours east of Greenwich.
  const local = new Date(moment + 2 * 3600_000).toISOString();
  const env = { TZ: "XXX-2" };
  for (const time of [local.replace("Z", "").replace("T", " "), local.replace("Z", "+02:00"), new Date(moment).toISOString(), String(moment)]) {
    const restored = run(["objects", "restore", "w/Room", "a", "--time", time, ...data], { env });
    assert.equal(restored.status, 0, `${time}: ${restored.stderr}`);
    assert.equal(await server.text("/"), "2", time);
  }
  for (const time of ["tomorrow", "25:00"]) {
    const refused = run(["objects", "restore", "w/Room", "a", "--time", time, ...data], { env });
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /is no time: write .*yesterday 10:00/);
  }
});

test("under a service manager with a journal every line is JSON; elsewhere the ready line is as ever", async (t) => {
  const dir = project(t, files), journal = path.join(dir, "journal");
  const fd = openSync(journal, "a");
  const { dev, ino } = fstatSync(fd);
  const start = (args) => spawn(cairn, ["serve", dir, "--listen", "127.0.0.1:0", "--admin", "off", "--log", "json", ...args], { stdio: ["ignore", fd, fd], env: { PATH: process.env.PATH, JOURNAL_STREAM: `${dev}:${ino}` } });
  const child = start([]);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  t.after(() => child.kill("SIGKILL"));
  while (!/"message":"ready on http:/.test(readFileSync(journal, "utf8"))) {
    assert.equal(child.exitCode, null, readFileSync(journal, "utf8"));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const second = start([]);
  assert.equal(await new Promise((resolve) => second.on("exit", resolve)), 1);
  child.kill("SIGTERM");
  await ended;
  closeSync(fd);
  const lines = readFileSync(journal, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.some((line) => line.level === "error" && /in use by cairn \(process/.test(line.message)));
});
