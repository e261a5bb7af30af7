// What goes with a turn besides the writes of ways to go on (turns.test.mjs): the ctx of an object that
// is used in another's turn, objects that were reset meanwhile, alarms, WebSockets, CPU time,
// subrequests, requests without an object, and traces.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { WebSocket } from "ws";
import { project, serve, tempDir } from "../lib/server.mjs";
import { Rig, checkLog, evicted } from "../../stress/turns/rig.mjs";

const cellOf = (op) => op.split(" ")[0];

async function started(t, options) {
  const rig = new Rig({ idle: 10_000, ...options });
  t.after(() => rig.end());
  await rig.start();
  return rig;
}
const rule = (name, body) => test(`rules: ${name}`, body);

for (const lanes of [1, 2]) {
  test(`the ctx of an object, used in another turn, ${lanes} lanes`, async (t) => {
    const rig = await started(t, { lanes });
    const { outside } = await rig.post("/ready");
    const faults = new Map(outside.map((how) => [how, []]));
    const acknowledged = [];
    for (const [h, how] of outside.entries()) {
      for (const from of ["outside", "other"]) {
        for (let i = 0; i < 4; i++) {
          const cell = `${from}${h}-${i}`, op = `${cell} ${i}`, via = `via-${cell}`;
          const target = from === "outside" ? `/outside/${cell}/${encodeURIComponent(how)}` : `/other/${via}/${encodeURIComponent(how)}`;
          try {
            await rig.post(`/hello/${cell}`);
            await rig.post(`/hello/${via}`);
            const answer = await rig.post(target, { op, other: cell });
            if (!answer.elsewhere) acknowledged.push({ how, from, cell, op });
          } catch (error) {
            faults.get(how).push(`${from}: ${error.message}`);
          }
        }
      }
    }
    assert.ok(acknowledged.length >= outside.length);
    await rig.kill();
    await rig.start();
    for (const { how, from, cell, op } of acknowledged) {
      const dump = await rig.post(`/dump/${cell}`);
      if (JSON.stringify(dump.outside) !== JSON.stringify([[`outside ${op}`, op]])) faults.get(how).push(`${from}: ${op} was acknowledged, stored is ${JSON.stringify(dump.outside)}`);
      if (from === "other" && (await rig.post(`/dump/via-${cell}`)).outside.length > 0) faults.get(how).push(`via-${cell} has what was written to ${cell}`);
    }
    for (const how of outside) {
      await t.test(`outside: ${how}`, () => assert.deepEqual(faults.get(how).slice(0, 3), []));
    }
  });
}

rule("an object that was reset writes nothing when what it waited for is settled", async (t) => {
  const rig = await started(t);
  for (let i = 0; i < 4; i++) {
    const cell = `z${i}`;
    const waiting = rig.post(`/waitFor/${cell}`, { op: `${cell} zombie`, group: cell }).then(() => "answered", (error) => error.message);
    await rig.server.until(new RegExp(`@asked ${cell} zombie`));
    await rig.post(`/hello/${cell}`);
    await assert.rejects(rig.post(`/reset/${cell}`), /meant to reset/);
    assert.match(await waiting, /meant to reset/);
    assert.equal(await rig.post(`/hello/${cell}`), cell);
    await rig.post(`/release/other`, { group: cell });
    assert.deepEqual((await rig.post(`/dump/${cell}`)).marks, []);
  }
  await rig.kill();
  await rig.start();
  for (let i = 0; i < 4; i++) assert.deepEqual((await rig.post(`/dump/z${i}`)).marks, []);
});

// T2 of prelude/internal/turn.js
rule("a loop that an object has begun serves others, for nobody once the object was evicted", async (t) => {
  const rig = await started(t, { idle: 500 });
  await rig.post("/beginLoop/l0", { group: "loop" });
  for (const cell of ["l1", "l2"]) assert.equal(await rig.post(`/useLoop/${cell}`, { group: "loop" }), "l0");
  await evicted(rig);
  for (const cell of ["l1", "l2"]) assert.equal(await rig.post(`/useLoop/${cell}`, { group: "loop" }), "l0");
});

// I4 of prelude/internal/gate.js
for (const how of ["blockConcurrencyWhile", "transaction"]) {
  rule(`${how} on the ctx of an object that has left memory fails`, async (t) => {
    const rig = await started(t, { idle: 15 });
    for (const cell of ["g0", "g1"]) await rig.post(`/hello/${cell}`);
    await evicted(rig);
    for (let i = 0; i < 2; i++) await assert.rejects(rig.post(`/other/g1/${how}`, { op: "g0 x", other: "g0" }).then((answer) => assert.fail(JSON.stringify(answer))), /has left memory|its storage cannot be used/);
  });
}

// T5 of prelude/internal/turn.js
for (const end of ["left memory", "was reset"]) {
  rule(`a promise that follows another is settled although the object that made it ${end}`, async (t) => {
    const rig = await started(t, { idle: end === "left memory" ? 15 : 10_000 });
    await rig.post("/passOn/f0", { group: "follow" });
    if (end === "left memory") await evicted(rig);
    else await assert.rejects(rig.post("/reset/f0"), /meant to reset/);
    for (const cell of ["f1", "f2"]) assert.equal((await rig.post(`/follow/${cell}`, { op: `${cell} x`, group: "follow" })).name, cell);
    await rig.kill();
    await rig.start();
    for (const cell of ["f1", "f2"]) assert.deepEqual((await rig.post(`/dump/${cell}`)).marks, [`${cell} x`]);
  });
}

rule("alarms that wait for a shared promise", async (t) => {
  const rig = await started(t);
  const cells = ["a0", "a1", "a2", "a3"];
  await Promise.all(cells.map((cell) => rig.post(`/alarm/${cell}`, { op: `${cell} rang`, group: "alarms" })));
  await rig.server.untilTrue(() => cells.every((cell) => rig.server.output.includes(`@marked ${cell} rang`)), "the alarms");
  // What a line of the log says was written is durable once a later call has been answered.
  await Promise.all(cells.map((cell) => rig.post(`/hello/${cell}`)));
  await rig.kill();
  await rig.start();
  for (const cell of cells) assert.deepEqual((await rig.post(`/dump/${cell}`)).marks, [`${cell} rang`]);
  const faults = [];
  checkLog(rig.log().filter(({ message }) => !/@asked/.test(message)), cellOf, (text) => faults.push(text));
  assert.deepEqual(faults, []);
});

for (const kind of ["hibernatable", "plain"]) {
  rule(`messages of ${kind} WebSockets that wait for a shared promise`, async (t) => {
    const rig = await started(t);
    const cells = ["w0", "w1", "w2", "w3"];
    const sockets = await Promise.all(cells.map((cell) => new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://127.0.0.1:${rig.server.port}/ws/${cell}?id=${kind}-${cell}`);
      socket.received = [];
      socket.on("message", (data) => socket.received.push(JSON.parse(data)));
      socket.on("open", () => resolve(socket)).on("error", reject);
      t.after(() => socket.terminate());
    })));
    for (const way of ["await a shared promise", "a lock made of a list of resolvers", "then()"]) {
      for (const [i, cell] of cells.entries()) sockets[i].send(JSON.stringify({ op: `${cell} ${way}`, way, group: way }));
    }
    await rig.server.untilTrue(() => sockets.every((socket) => socket.received.length === 3), "the answers");
    for (const [i, cell] of cells.entries()) {
      for (const answer of sockets[i].received) assert.deepEqual([answer.name, cellOf(answer.op), answer.error, answer.faults], [cell, cell, undefined, []]);
    }
    await rig.kill();
    await rig.start();
    for (const cell of cells) assert.equal((await rig.post(`/dump/${cell}`)).marks.length, 3, cell);
    const faults = [];
    checkLog(rig.log(), cellOf, (text) => faults.push(text));
    assert.deepEqual(faults.filter((text) => !/another request/.test(text)), []);
  });
}

rule("a message sent on another object's WebSocket reaches its client only", async (t) => {
  const rig = await started(t);
  const received = [];
  const sockets = await Promise.all(["t0", "t1", "t2"].map((cell, i) => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${rig.server.port}/ws/${cell}?id=${cell}`);
    received[i] = [];
    socket.on("message", (data) => received[i].push(JSON.parse(data)));
    socket.on("open", () => resolve(socket)).on("error", reject);
    t.after(() => socket.terminate());
  })));
  assert.equal(sockets.length, 3);
  for (let i = 0; i < 3; i++) await rig.post(`/tell/t${i}`, { op: `t${i} told` });
  await rig.server.untilTrue(() => received.every((list) => list.length === 1), "the messages");
  assert.deepEqual(received, [0, 1, 2].map((i) => [{ told: `t${i} told`, name: `t${i}`, id: `t${i}` }]));
});

rule("a cursor that is read in another's turn gives its own rows", async (t) => {
  const rig = await started(t);
  assert.equal(await rig.post("/openCursor/q0"), "q0 a");
  assert.equal(await rig.post("/openCursor/q1"), "q1 a");
  assert.equal(await rig.post("/readCursor/q1/q0"), "q0 b");
  assert.equal(await rig.post("/readCursor/q0/q1"), "q1 b");
});

// The engine drops what was left to run in the turn that it ends: who waits for that is told, soon.
rule("whoever waits with the one that uses up its CPU time goes on, or is told", async (t) => {
  const rig = await started(t, { extra: { limits: { cpu_ms: 300 } } });
  const asked = { s0: ["/share/s0", {}], s1: ["/spin/s1", {}], s2: ["/share/s2", {}], s3: ["/shared/s3", { op: "s3 x" }] };
  const answers = await Promise.all(Object.values(asked).map(([path, body]) => rig.send(path, JSON.stringify({ ...body, group: "cpu" }))));
  for (const [i, name] of Object.keys(asked).entries()) {
    const { status } = answers[i];
    if (name === "s1") assert.ok(status >= 500);
    else assert.ok(status === 200 || status >= 500, `${name}: ${status}`);
  }
  // Nobody is the worse for it afterwards.
  for (const name of Object.keys(asked)) assert.equal(await rig.post(`/hello/${name}`), name);
});

rule("each object has its own subrequests", async (t) => {
  const rig = await started(t, { extra: { limits: { subrequests: 5 } } });
  const cells = ["r0", "r1", "r2", "r3"];
  const answers = await Promise.all(cells.map((cell) => rig.post(`/subrequests/${cell}/5`, { group: "subrequests" })));
  assert.deepEqual(answers.map(({ name }) => name), cells);
});

for (const lanes of [1, 2]) {
  rule(`requests that share a promise log as themselves, waitUntil too, ${lanes} lanes`, async (t) => {
    const rig = await started(t, { lanes });
    const ops = Array.from({ length: 8 }, (_, i) => `h ${i}`);
    await Promise.all(ops.flatMap((op) => [rig.post("/shared/h", { op, group: "handlers" }), rig.post("/late/h", { op: `${op} late`, group: "handlers" })]));
    await rig.server.untilTrue(() => ops.every((op) => rig.server.output.includes(`@late ${op} late`)), "the lines");
    const faults = [];
    checkLog(rig.log(), () => undefined, (text) => faults.push(text));
    assert.deepEqual(faults, []);
  });
}

rule("traces have the lines of their own invocation", async (t) => {
  const producer = project({
    "wrangler.json": JSON.stringify({
      name: "producer", main: "index.js", compatibility_date: "2026-01-01", cairn: { hosts: ["producer.test"] }, tail_consumers: [{ service: "watcher" }],
      durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    }),
    "index.js": `import { DurableObject } from "cloudflare:workers";
let shared;
const wait = () => (shared ??= new Promise((resolve) => setTimeout(resolve, 50)));
export class Cell extends DurableObject {
  async run(op) { await wait(); console.log("object", op, this.ctx.id.toString()); return op; }
}
export default { async fetch(request, env) {
  const op = new URL(request.url).pathname;
  await env.CELL.getByName(op).run(op);
  await wait();
  console.log("handler", op, request.url);
  return new Response(op);
} };`,
  });
  const watcher = project({
    "wrangler.json": JSON.stringify({ name: "watcher", main: "index.js", compatibility_date: "2026-01-01", cairn: { hosts: ["watcher.test"] } }),
    "index.js": `export default { fetch: () => new Response("none"), tail(items) {
  for (const item of items) console.log("@tail", JSON.stringify({ id: item.durableObjectId, url: item.event?.request?.url, logs: item.logs.map((log) => log.message) }));
} };`,
  });
  const server = await serve([producer, watcher], { args: ["--log", "json"], data: tempDir() });
  t.after(() => server.kill());
  const http = await import("node:http");
  const get = (target) => new Promise((resolve, reject) => http.get({ host: "127.0.0.1", port: server.port, path: target, headers: { host: "producer.test" } },
    (response) => response.resume().on("end", () => resolve(response.statusCode))).on("error", reject));
  const targets = ["/0", "/1", "/2", "/3"];
  assert.deepEqual(await Promise.all(targets.map(get)), [200, 200, 200, 200]);
  await server.untilTrue(() => server.output.split("@tail").length > 8, "the traces");
  const items = server.output.split("\n").filter((line) => line.includes("@tail")).map((line) => JSON.parse(JSON.parse(line).message.replace("@tail ", "")));
  assert.equal(items.length, 8);
  for (const { id, url, logs } of items) {
    assert.equal(logs.length, 1, JSON.stringify(items));
    assert.equal(logs[0][2], id ?? url);
  }
});

describe("what the bundler makes of it", () => {
  rule("await at the top level of a project with node:async_hooks", async (t) => {
    const dir = project({
      "wrangler.json": JSON.stringify({ name: "tla", main: "index.js", compatibility_date: "2026-01-01", compatibility_flags: ["nodejs_compat"] }),
      "index.js": `import { AsyncLocalStorage } from "node:async_hooks";
const storage = new AsyncLocalStorage();
const value = await Promise.resolve("ready");
const inner = await storage.run("inner", async () => { await null; return storage.getStore(); });
export default { fetch: async () => storage.run("x", async () => { await null; return new Response([value, inner, storage.getStore()].join()); }) };`,
    });
    const server = await serve(dir);
    t.after(() => server.kill());
    assert.equal(await server.text("/"), "ready,inner,x");
  });
});
