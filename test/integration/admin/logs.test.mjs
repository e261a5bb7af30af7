// OB-1 Every line that a request causes names it: after whatever was awaited, in objects, in other
// workers, and while other requests run in between.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { kv, objects, queue, services } from "../lib/toml.mjs";

const front = project({
  "wrangler.toml": `name = "front"
main = "index.js"
compatibility_date = "2026-03-01"
${objects({ ROOM: "Room" })}
${kv({ KV: "kv" })}
${services({ BACK: "back" })}
${queue("QUEUE", "q", { max_batch_timeout: 0 })}`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export class Room extends DurableObject {
  async speak(n) {
    console.log("line", n, "object");
    await this.ctx.storage.put("k", n);
    await this.ctx.storage.sync();
    console.log("line", n, "object after sync");
    await sleep(2);
    console.log("line", n, "object after a timer");
    if (n === 0) await this.ctx.storage.setAlarm(Date.now());
  }
  async alarm() {
    console.log("line alarm");
    await sleep(1);
    console.log("line alarm after a timer");
  }
}
export default {
  async fetch(request, env, ctx) {
    const n = Number(new URL(request.url).searchParams.get("n"));
    const say = (what) => console.log("line", n, what);
    say("start");
    await request.text();
    say("after the body");
    await sleep(3);
    say("after a timer");
    await env.KV.put("k" + n, "v");
    await env.KV.get("k" + n);
    say("after KV");
    await env.ROOM.getByName("room" + (n % 3)).speak(n);
    say("after an object");
    await env.BACK.hear(n);
    say("after a service");
    await crypto.subtle.digest("SHA-256", new Uint8Array(100));
    say("after a digest");
    if (n === 0) await env.QUEUE.send(n);
    ctx.waitUntil(sleep(5).then(() => say("in waitUntil")));
    const body = new ReadableStream({ async pull(controller) {
      await sleep(1);
      say("in the answer's stream");
      controller.enqueue(new Uint8Array(10));
      controller.close();
    } });
    return new Response(body);
  },
  async queue(batch) {
    console.log("line queue");
    await sleep(1);
    console.log("line queue after a timer");
  },
};
`,
});
const back = project({
  "wrangler.toml": `name = "back"
main = "index.js"
compatibility_date = "2026-03-01"
[cairn]
hosts = ["back.test"]
`,
  "index.js": `import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  async hear(n) {
    console.log("line", n, "other worker");
    await new Promise((resolve) => setTimeout(resolve, 2));
    console.log("line", n, "other worker after a timer");
  }
  fetch() { return new Response("back"); }
}
`,
});

const COUNT = 24;
const LINES = ["start", "after the body", "after a timer", "after KV", "object", "object after sync", "object after a timer", "after an object",
  "other worker", "other worker after a timer", "after a service", "after a digest", "in waitUntil", "in the answer's stream"];

describe("OB-1 the request of a line", () => {
  let server;
  before(async () => { server = await serve([front, back], { args: ["--log", "json"], lanes: 2 }); });
  after(() => server.stop());
  const lines = (pattern) => server.stderr.split("\n").filter((line) => /^\{.*\}$/.test(line)).map((line) => JSON.parse(line)).filter((line) => pattern.test(line.message));

  test("OB-1 is the same before and after every kind of wait, in objects and other workers", async () => {
    await Promise.all(Array.from({ length: COUNT }, (_, n) => server.text(`/?n=${n}`, { method: "POST", body: "x".repeat(100_000) })));
    await server.untilTrue(async () => lines(/^line \d/).length >= COUNT * LINES.length, "the last lines");
    const ids = new Set();
    for (let n = 0; n < COUNT; n++) {
      const own = lines(new RegExp(`^line ${n} `));
      assert.deepEqual(own.map((line) => line.message.replace(`line ${n} `, "")).sort(), [...LINES].sort());
      for (const line of own) assert.equal(line.request, own[0].request, `${line.message} names another request`);
      assert.match(own[0].request, /^[0-9a-f]{16}$/);
      for (const line of own.filter((line) => / object/.test(line.message) && !/after an/.test(line.message))) {
        assert.equal(line.class, "Room");
        assert.equal(line.name, `room${n % 3}`);
        assert.match(line.object, /^[0-9a-f]{64}$/);
      }
      for (const line of own.filter((line) => /other/.test(line.message))) assert.equal(line.worker, "back");
      ids.add(own[0].request);
    }
    assert.equal(ids.size, COUNT);
  });
  test("OB-1 what nobody asked for has a number of its own", async () => {
    for (const kind of ["alarm", "queue"]) {
      await server.untilTrue(async () => lines(new RegExp(`^line ${kind} after`)).length > 0, kind);
      const [first, second] = lines(new RegExp(`^line ${kind}`));
      assert.match(first.request, /^[0-9a-f]{16}$/);
      assert.equal(second.request, first.request);
      assert.ok(lines(/^line \d/).every((line) => line.request !== first.request));
    }
  });
});
