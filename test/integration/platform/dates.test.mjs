// A worker starts at every date at which a default changes, and with every flag on and off: an empty one, and one that evaluates all modules
// of Node.js and all globals (T1 of prelude/internal/taken.js), and says what it has of process and timers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { dates, rows, today } from "../lib/dates.mjs";
import { Connection, project, root, serve } from "../lib/server.mjs";

const names = JSON.parse(readFileSync(path.join(root, "prelude/node/names.json"), "utf8"));

const EMPTY = "export default {};";
const NODE = `
import util from "node:util";
import { MessageChannel } from "node:worker_threads";
const LOADERS = { ${names.map((name) => `"${name}": () => import("${name}")`).join(", ")} };
export default { async fetch() {
  const failed = [];
  for (const name of Object.getOwnPropertyNames(globalThis)) try { globalThis[name]; } catch (error) { failed.push(name + ": " + error); }
  for (const [name, load] of Object.entries(LOADERS)) try { if (!(await load()).default) failed.push(name); } catch (error) { failed.push(name + ": " + error); }
  // What wrangler's bundler adds before the platform has it itself (P1 of prelude/node/process.js).
  const has = typeof process === "undefined" ? null : {
    buffer: typeof Buffer, cwd: process.cwd(), functions: ["emitWarning", "hrtime", "memoryUsage", "nextTick", "on", "uptime", "umask"].filter((name) => typeof process[name] !== "function"),
    texts: ["version", "arch", "platform", "title"].filter((name) => typeof process[name] !== "string"), versions: typeof process.versions.node, argv: Array.isArray(process.argv), pid: typeof process.pid,
    streams: ["stdin", "stdout", "stderr"].filter((name) => typeof process[name].on !== "function"), warning: process.emitWarning("w"), unbound: (0, process.listenerCount).call(process, "none"),
  };
  const timer = setTimeout(() => {}, 1);
  clearTimeout(timer);
  return Response.json({ failed, has, timer: typeof timer, text: util.inspect({ a: new Map([[1, 2]]) }), port: typeof new MessageChannel().port1, weak: typeof WeakRef, channel: typeof globalThis.MessageChannel });
} };`;
const config = (name, date, flags) => `name = "${name}"\nmain = "index.js"\ncompatibility_date = "${date}"\ncompatibility_flags = ${JSON.stringify(flags)}\nroutes = ["${name}.test/*"]\n`;

/** Starts both workers of each case in one server, the empty one where no flag is set; resolves with what each of the second kind says. */
async function answersOf(cases) {
  const projects = cases.flatMap(({ date, flags = [] }, i) => [
    ...(flags.length ? [] : [project({ "wrangler.toml": config(`empty${i}`, date, flags), "index.js": EMPTY })]),
    project({ "wrangler.toml": config(`node${i}`, date, ["nodejs_compat", ...flags]), "index.js": NODE }),
  ]);
  const server = await serve(projects);
  try {
    return await Promise.all(cases.map(async (_, i) => {
      const connection = new Connection(server.port);
      const { status, text } = await connection.get("/", { headers: { host: `node${i}.test` } });
      connection.close();
      return status === 200 ? JSON.parse(text) : { failed: `${status} ${text}` };
    }));
  } finally {
    await server.stop();
  }
}

async function checkAll(cases) {
  for (const [i, answer] of (await answersOf(cases)).entries()) {
    const { date, flags = [] } = cases[i], what = JSON.stringify(cases[i]), on = (name, from) => !flags.includes(name) && date >= from;
    assert.deepEqual(answer.failed, [], what);
    assert.equal(answer.text, "{ a: Map(1) { 1 => 2 } }", what);
    assert.equal(answer.port, "object", what);
    const globals = on("no_nodejs_compat_v2", "2024-09-23") || flags.includes("nodejs_compat_v2");
    if (!globals) {
      assert.equal(answer.has, null, what);
      continue;
    }
    const cwd = on("disable_nodejs_process_v2", "2025-09-15") || flags.includes("enable_nodejs_process_v2") ? "/bundle" : "/";
    assert.deepEqual(answer.has, { buffer: "function", cwd, functions: [], texts: [], versions: "string", argv: true, pid: "number", streams: [], unbound: 0 }, what);
    assert.equal(answer.timer, on("no_nodejs_global_timers", "2026-02-10") || flags.includes("enable_nodejs_global_timers") ? "object" : "number", what);
  }
}
async function checkInParts(all) {
  for (let i = 0; i < all.length; i += 30) await checkAll(all.slice(i, i + 30));
}

test("dates/workers_start_at_every_date_at_which_a_default_changes", async () => {
  assert.ok(dates.length > 50, `${dates.length} dates`);
  await checkInParts(dates.map((date) => ({ date })));
});

test("dates/workers_start_with_every_flag_that_is_off", async () => {
  const all = rows.filter(({ off, side }) => off && side === "BOTH" && !/nodejs_compat$/.test(off)).map(({ off }) => ({ date: today, flags: [off] }));
  assert.ok(all.length > 20, `${all.length} flags`);
  await checkInParts(all);
});

test("dates/workers_start_with_every_flag_that_is_on_before_its_date", async () => {
  const all = rows.filter(({ on, side }) => side === "BOTH" && on !== "nodejs_compat").map(({ on }) => ({ date: dates[0], flags: [on] }));
  assert.ok(all.length > 40, `${all.length} flags`);
  await checkInParts(all);
});

test("dates/what_a_flag_takes_is_taken_from_scripts", async () => {
  const [answer] = await answersOf([{ date: today, flags: ["disable_weak_ref", "no_expose_global_message_channel"] }]);
  assert.deepEqual([answer.failed, answer.weak, answer.channel], [[], "undefined", "undefined"]);
});

test("dates/a_worker_that_is_not_bundled_has_the_process_of_its_date", async () => {
  const index = 'export default { fetch: () => Response.json([typeof process.nextTick, typeof process.stdout, typeof process.version]) };';
  const server = await serve(project({ "wrangler.toml": `${config("raw", "2025-01-01", ["nodejs_compat"])}no_bundle = true\n`, "index.js": index }));
  try {
    const connection = new Connection(server.port);
    assert.deepEqual(JSON.parse((await connection.get("/", { headers: { host: "raw.test" } })).text), ["function", "undefined", "undefined"]);
    connection.close();
  } finally {
    await server.stop();
  }
});
