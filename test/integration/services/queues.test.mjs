// Queues (Q-1..10): sending, delivery, verdicts, retries, dead letters, and that nothing
// acknowledged is lost.
import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../admin/lib.mjs";
import { project, serve, tempDir } from "../lib/server.mjs";

// What the consumer sees is written to an object; what it should do with a message stands in its body.
const worker = `
import { DurableObject } from "cloudflare:workers";
export class Log extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS seen (n INTEGER PRIMARY KEY, entry TEXT)");
  }
  add(entries) { for (const e of entries) this.ctx.storage.sql.exec("INSERT INTO seen (entry) VALUES (?)", JSON.stringify(e)); }
  all() { return this.ctx.storage.sql.exec("SELECT entry FROM seen ORDER BY n").toArray().map((r) => JSON.parse(r.entry)); }
  count() { return this.ctx.storage.sql.exec("SELECT count(*) AS c, count(DISTINCT json_extract(entry, '$.body.n')) AS d FROM seen").one(); }
}
const show = (v) => v instanceof ArrayBuffer ? [...new Uint8Array(v)] : v instanceof Map ? { map: [...v] } : v instanceof Date ? { date: +v } : v;
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const log = env.LOG.getByName("log");
    try {
      switch (url.pathname) {
        case "/send": {
          const { body, options } = await request.json();
          return Response.json(await env.QUEUE.send(body, options));
        }
        case "/batch": {
          const { messages, options } = await request.json();
          return Response.json(await env.QUEUE.sendBatch(messages, options));
        }
        case "/dead": return Response.json(await env.DEAD.metrics());
        case "/types":
          await env.QUEUE.sendBatch([{ body: { a: [1, null] } }, { body: "text", contentType: "text" },
            { body: new Uint8Array([1, 2, 3]), contentType: "bytes" }, { body: new Map([[1, new Date(5)]]), contentType: "v8" }]);
          return new Response("ok");
        case "/undefined": await env.QUEUE.send(undefined); return new Response("ok");
        case "/function": await env.QUEUE.send(() => 1); return new Response("ok");
        case "/all": return Response.json(await log.all());
        case "/count": return Response.json(await log.count());
        case "/metrics": return Response.json(await env.QUEUE.metrics());
      }
    } catch (error) {
      return new Response(error.name + ": " + error.message, { status: 400 });
    }
    return new Response("?", { status: 404 });
  },
  async queue(batch, env, ctx) {
    await env.LOG.getByName("log").add(batch.messages.map((m) => ({ queue: batch.queue, id: m.id, attempts: m.attempts, body: show(m.body), size: batch.messages.length,
      stamp: m.timestamp instanceof Date && Math.abs(Date.now() - m.timestamp) < 60000 })));
    if (batch.queue === "dead") return;
    let fail = false;
    for (const m of batch.messages) {
      const what = m.body?.do;
      if (what === "ack") m.ack();
      if (what === "ack-then-retry") { m.ack(); m.retry(); }
      if (what === "retry") m.retry({ delaySeconds: m.body.delay });
      if (what === "retry-once" && m.attempts === 1) m.retry();
      if (what === "ackAll") batch.ackAll();
      if (what === "retryAll" && m.attempts === 1) batch.retryAll();
      if (what === "throw" || (what === "throw-once" && m.attempts === 1)) fail = true;
      if (what === "produce" && m.body.left > 0) await env.QUEUE.send({ do: "produce", left: m.body.left - 1 });
    }
    if (fail) throw new Error("the consumer threw");
  },
};`;

const config = (consumer = {}, producer = {}, more = {}) => JSON.stringify({
  name: "q", main: "index.js", compatibility_date: "2026-01-01",
  durable_objects: { bindings: [{ name: "LOG", class_name: "Log" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Log"] }],
  queues: {
    producers: [{ binding: "QUEUE", queue: "work", ...producer }, { binding: "DEAD", queue: "dead" }],
    consumers: consumer === null ? [] : [{ queue: "work", max_batch_timeout: 0, ...consumer }, { queue: "dead", max_batch_timeout: 0 }],
  },
  ...more,
});

async function start(t, consumer, { producer, ...options } = {}) {
  const server = await serve(project({ "wrangler.json": config(consumer, producer), "index.js": worker }), options);
  t.after(() => server.kill());
  extend(server);
  return server;
}

function extend(server) {
  const post = (path) => async (value) => {
    const response = await server.fetch(path, { method: "POST", body: typeof value === "string" ? value : JSON.stringify(value) });
    const text = await response.text();
    return response.ok ? JSON.parse(text) : text;
  };
  server.send = (body, options) => post("/send")({ body, options });
  server.batch = (messages, options) => post("/batch")({ messages, options });
  server.all = async () => (await server.fetch("/all")).json();
  server.metrics = async () => (await server.fetch("/metrics")).json();
  /** Waits until so many deliveries were seen and nothing is left; gives them. */
  server.seen = async (count, left = 0) => {
    await server.untilTrue(async () => (await server.all()).length >= count && (await server.metrics()).backlogCount === left, `${count} deliveries`);
    return server.all();
  };
}

for (const lanes of [1, 2]) {
  test(`Q-1 Q-3 messages of every type arrive, ${lanes} lanes`, async (t) => {
    const server = await start(t, { max_batch_size: 4, max_batch_timeout: 1 }, { lanes });
    assert.equal(await server.text("/types"), "ok");
    const seen = await server.seen(4);
    assert.deepEqual(seen.map((m) => m.body), [{ a: [1, null] }, "text", [1, 2, 3], { map: [[1, new Date(5).toJSON()]] }]);
    assert.ok(seen.every((m) => m.queue === "work" && m.attempts === 1 && /^[0-9a-f]{32}$/.test(m.id) && m.stamp && m.size === 4));
    assert.equal(new Set(seen.map((m) => m.id)).size, 4);
  });

  test(`Q-4 verdicts, ${lanes} lanes`, async (t) => {
    const server = await start(t, { max_batch_size: 3, max_batch_timeout: 1, max_retries: 1 }, { lanes });
    const bodies = async (...bodies) => { await server.batch(bodies.map((body) => ({ body }))); };
    // The first verdict on a message counts, and before what is said about the batch.
    await bodies({ n: 1, do: "ack-then-retry" }, { n: 2, do: "retry-once" }, { n: 3 });
    let seen = await server.seen(4);
    assert.deepEqual(seen.map((m) => [m.body.n, m.attempts]), [[1, 1], [2, 1], [3, 1], [2, 2]]);
    assert.equal(seen[1].id, seen[3].id);
    // What was not acknowledged alone is retried when the handler throws.
    await bodies({ n: 4, do: "ack" }, { n: 5, do: "throw-once" }, { n: 6 });
    seen = (await server.seen(9)).slice(4);
    assert.deepEqual(seen.map((m) => [m.body.n, m.attempts]).sort(), [[4, 1], [5, 1], [5, 2], [6, 1], [6, 2]]);
    await server.until(/the consumer threw/);
    await bodies({ n: 7, do: "retryAll" }, { n: 8, do: "ack" }, { n: 9 });
    seen = (await server.seen(14)).slice(9);
    assert.deepEqual(seen.map((m) => [m.body.n, m.attempts]).sort(), [[7, 1], [7, 2], [8, 1], [9, 1], [9, 2]]);
  });
}

// Consumers that change what they were given; each throws or retries what it says, and keeps nothing else.
const CHANGES = {
  shift: "const seen = []; let m; while ((m = batch.messages.shift())) seen.push(m); seen[2].retry();",
  reverse: "batch.messages.reverse()[0].retry();",
  length: "const last = batch.messages[2]; batch.messages.length = 0; last.retry();",
  grow: "const [, , m] = batch.messages; batch.messages.push(m, m); m.retry();",
  replace: "const m = batch.messages[2]; batch.messages = []; m.retry();",
  proxy: "const m = batch.messages[2]; batch.messages = new Proxy(batch.messages, { get() { throw 1; } }); m.retry();",
  patched: "for (const name of ['setUint8', 'setInt32']) DataView.prototype[name] = () => {}; batch.messages[2].retry();",
  throws: "batch.messages[0].ack(); batch.messages[1].ack(); batch.messages.splice(0); throw new Error('on purpose');",
};
for (const [name, text] of Object.entries(CHANGES)) {
  test(`Q-4 a consumer that changes batch.messages loses nothing: ${name}`, async (t) => {
    const config = { name: "q", main: "index.js", compatibility_date: "2026-01-01", kv_namespaces: [{ binding: "SEEN" }],
      queues: { producers: [{ binding: "QUEUE", queue: "work" }], consumers: [{ queue: "work", max_batch_size: 3, max_batch_timeout: 1, max_retries: 1 }] } };
    const server = await serve(project({ "wrangler.json": JSON.stringify(config), "index.js": `
      export default {
        async fetch(request, env) {
          if (request.method === "POST") return Response.json(await env.QUEUE.sendBatch([{ body: 0 }, { body: 1 }, { body: 2 }]));
          return Response.json({ left: (await env.QUEUE.metrics()).backlogCount, again: await env.SEEN.get("again") });
        },
        async queue(batch, env) {
          if (batch.messages[0].attempts === 2) return env.SEEN.put("again", batch.messages.map((m) => m.body).join());
          ${text}
        },
      };` }));
    t.after(() => server.kill());
    await (await server.fetch("/", { method: "POST" })).json();
    const state = async () => (await server.fetch("/")).json();
    await server.untilTrue(async () => (await state()).left === 0, "the end of all messages");
    assert.deepEqual(await state(), { left: 0, again: "2" });
  });
}

// What handlers give to waitUntil(): [code of the handler, of the first delivery; which messages come again].
const WAITING = {
  "rejected": ["ctx.waitUntil(scheduler.wait(20).then(() => { throw new Error('on purpose'); }));", "0,1,2"],
  "rejected, beside acknowledged ones": ["batch.messages[0].ack(); ctx.waitUntil(Promise.reject(new Error('on purpose')));", "1,2"],
  "with verdicts": ["ctx.waitUntil(scheduler.wait(20).then(() => { batch.messages[2].retry(); }));", "2"],
  "begun by another": ["ctx.waitUntil(scheduler.wait(10).then(() => ctx.waitUntil(scheduler.wait(10).then(() => batch.retryAll()))));", "0,1,2"],
  "and a handler that throws": ["ctx.waitUntil(scheduler.wait(20).then(() => { batch.messages[0].ack(); })); throw new Error('on purpose');", "1,2"],
};
const NO_WAIT = "queue_consumer_no_wait_for_wait_until";
for (const [name, [text, again]] of [...Object.entries(WAITING), [NO_WAIT, [WAITING.rejected[0] + " batch.messages[2].retry();", "2"]]]) {
  test(`Q-4 promises of waitUntil() are part of the handler: ${name}`, async (t) => {
    const config = { name: "q", main: "index.js", compatibility_date: "2026-01-01", kv_namespaces: [{ binding: "SEEN" }],
      compatibility_flags: name === NO_WAIT ? [NO_WAIT] : [],
      queues: { producers: [{ binding: "QUEUE", queue: "work" }], consumers: [{ queue: "work", max_batch_size: 3, max_batch_timeout: 1, max_retries: 1 }] } };
    const server = await serve(project({ "wrangler.json": JSON.stringify(config), "index.js": `
      export default {
        async fetch(request, env) {
          if (request.method === "POST") return Response.json(await env.QUEUE.sendBatch([{ body: 0 }, { body: 1 }, { body: 2 }]));
          return Response.json({ left: (await env.QUEUE.metrics()).backlogCount, again: await env.SEEN.get("again") });
        },
        async queue(batch, env, ctx) {
          if (batch.messages[0].attempts === 2) return env.SEEN.put("again", batch.messages.map((m) => m.body).join());
          ${text}
        },
      };` }));
    t.after(() => server.kill());
    await (await server.fetch("/", { method: "POST" })).json();
    const state = async () => (await server.fetch("/")).json();
    await server.untilTrue(async () => (await state()).left === 0, "the end of all messages");
    assert.deepEqual(await state(), { left: 0, again });
  });
}

test("Q-5 batches are full or have waited; delays hold messages back", async (t) => {
  const server = await start(t, { max_batch_size: 5, max_batch_timeout: 1 });
  const before = Date.now();
  await server.batch(Array.from({ length: 12 }, (_, n) => ({ body: { n } })));
  const seen = await server.seen(12);
  assert.deepEqual(seen.map((m) => m.size), [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 2, 2]);
  assert.ok(Date.now() - before >= 990, "the last two waited for more");
  const later = Date.now();
  const sent = await server.batch([{ body: { n: 20 }, delaySeconds: 2 }, { body: { n: 21 } }], { delaySeconds: 1 });
  assert.equal(sent.metadata.metrics.backlogCount, 2);
  const delayed = (await server.seen(14)).slice(12);
  assert.deepEqual(delayed.map((m) => m.body.n), [21, 20]);
  assert.ok(Date.now() - later >= 2000);
});

test("Q-5 the producer's delivery_delay, and a consumer that runs alone", async (t) => {
  const server = await start(t, { max_batch_size: 1, max_concurrency: 1 }, { producer: { delivery_delay: 1 }, lanes: 2 });
  const before = Date.now();
  await server.batch([{ body: { n: 1 } }, { body: { n: 2 }, delaySeconds: 0 }]); // together, so that the delay alone decides
  const seen = await server.seen(2);
  assert.deepEqual(seen.map((m) => m.body.n), [2, 1]);
  assert.ok(Date.now() - before >= 1000);
});

test("Q-6 after max_retries a message goes to the dead letter queue, or is dropped and told", async (t) => {
  const server = await start(t, { max_retries: 2, dead_letter_queue: "dead", max_batch_size: 1 });
  await server.send({ n: 1, do: "throw" });
  const seen = await server.seen(4);
  assert.deepEqual(seen.map((m) => [m.queue, m.attempts]), [["work", 1], ["work", 2], ["work", 3], ["dead", 1]]);
  assert.deepEqual(seen[3].body, { n: 1, do: "throw" });
  await server.untilTrue(async () => (await (await server.fetch("/dead")).json()).backlogCount === 0, "the end of the dead letter");
  const none = await start(t, { max_retries: 0, max_batch_size: 1 });
  await none.send({ do: "retry" });
  await none.until(/queue work: a message was dropped after 1 attempts/);
  assert.equal((await none.seen(1)).length, 1);
});

test("Q-7 limits are told", async (t) => {
  const server = await start(t, null);
  assert.match(await server.send("x".repeat(128_001 - 2)), /Queue send failed: message length of 128001 bytes exceeds limit of 128000/);
  assert.equal(typeof await server.send("x".repeat(128_000 - 2)), "object");
  assert.match(await server.batch(Array.from({ length: 101 }, () => ({ body: 1 }))), /exceeds limit of 100/);
  assert.match(await server.batch(Array.from({ length: 3 }, () => ({ body: "y".repeat(90_000) }))), /batch size of 270006 bytes exceeds limit of 256000/);
  assert.match(await server.batch([]), /at least one message/);
  assert.match(await server.send(1, { delaySeconds: 86401 }), /delaySeconds must be/);
  assert.match(await server.send(1, { delaySeconds: -1 }), /delaySeconds must be/);
  assert.match(await server.send(1, 60), /parameter 2 is not of type 'SendOptions'/);
  assert.match(await server.batch([{ body: 1 }], 60), /parameter 2 is not of type 'SendBatchOptions'/);
  assert.match(await server.send(1, { contentType: "xml" }), /Unsupported queue message content type: xml/);
  assert.match(await server.send(1, { contentType: "text" }), /requires a value of type string/);
  assert.match(await server.text("/undefined"), /body cannot be undefined/);
  assert.match(await server.text("/function"), /cannot be serialized as JSON/);
  assert.equal((await server.metrics()).backlogCount, 1, "what was refused left nothing behind");
});

test("Q-2 metrics count what is waiting", async (t) => {
  const server = await start(t, null);
  assert.deepEqual(await server.metrics(), { backlogCount: 0, backlogBytes: 0 });
  const sent = await server.batch([{ body: "ab" }, { body: "cd", delaySeconds: 100 }]);
  assert.equal(sent.metadata.metrics.backlogCount, 2);
  const metrics = await server.metrics();
  assert.equal(metrics.backlogBytes, 8);
  assert.ok(Math.abs(Date.parse(metrics.oldestMessageTimestamp) - Date.now()) < 30_000);
});

test("Q-8 messages, delayed ones too, survive a restart and wait for their consumer", async (t) => {
  const data = tempDir();
  const without = await start(t, null, { data });
  await without.batch([{ body: { n: 1 } }, { body: { n: 2 }, delaySeconds: 1 }]);
  assert.equal((await without.stop()).code, 0);
  const server = await start(t, { max_batch_size: 1 }, { data });
  assert.deepEqual((await server.seen(2)).map((m) => m.body.n), [1, 2]);
});

test("Q-8 nothing that was acknowledged is lost when the server is killed", async (t) => {
  const data = tempDir();
  const acknowledged = new Set();
  for (let round = 0; round < 4; round++) {
    const server = await start(t, { max_batch_size: 7 }, { data, lanes: 2 });
    let killed = false;
    const before = acknowledged.size;
    const sender = async (who) => {
      for (let i = 0; !killed; i++) {
        const ids = Array.from({ length: 5 }, (_, k) => `${round}.${who}.${i}.${k}`);
        try {
          const result = await server.batch(ids.map((n, k) => ({ body: { n, do: k === 0 ? "retry-once" : "" }, delaySeconds: k === 1 ? 1 : 0 })));
          if (typeof result === "object") for (const id of ids) acknowledged.add(id);
        } catch {
          return;
        }
      }
    };
    const senders = [0, 1, 2].map(sender);
    await server.untilTrue(() => acknowledged.size - before >= 40 + 30 * round, "some messages");
    killed = true;
    await server.kill();
    await Promise.all(senders);
  }
  const server = await start(t, { max_batch_size: 50 }, { data });
  await server.untilTrue(async () => (await server.metrics()).backlogCount === 0, "an empty queue");
  const seen = new Set((await server.all()).map((m) => m.body.n));
  const lost = [...acknowledged].filter((id) => !seen.has(id));
  assert.deepEqual(lost, []);
  assert.ok(acknowledged.size > 50, `${acknowledged.size} messages were acknowledged`);
});

test("Q-10 a worker that produces to its own queue does not starve", async (t) => {
  const server = await start(t, { max_batch_size: 1 });
  await server.send({ do: "produce", left: 30 });
  assert.equal((await server.seen(31)).length, 31);
});

test("Q-5 a reload takes new settings over", async (t) => {
  const dir = project({ "wrangler.json": config(null), "index.js": worker });
  const server = await serve(dir);
  t.after(() => server.kill());
  extend(server);
  await server.send({ n: 1 });
  const { writeFileSync } = await import("node:fs");
  writeFileSync(`${dir}/wrangler.json`, config({ max_batch_size: 1 }));
  server.signal("SIGHUP");
  await server.reloaded();
  assert.equal((await server.seen(1))[0].body.n, 1);
});

test("Q-9 publish, pull, acknowledge and retry over HTTP", async (t) => {
  const server = await start(t, { type: "http_pull", max_retries: 1, dead_letter_queue: "dead", visibility_timeout_ms: 60_000 });
  const api = (method, target, body) => ask({ data: server.data }, method, `/api/queues/work${target}`, { body });
  await server.send({ from: "worker" });
  const published = await api("POST", "/messages", { body: { a: [1, 2.5, "x"], b: null } });
  assert.equal(published.status, 200, published.text);
  assert.equal((await api("POST", "/messages/batch", { messages: [{ body: "plain" }, { body: "later", delay_seconds: 60 }] })).json.result.metadata.metrics.backlog_count, 4);
  const pulled = (await api("POST", "/messages/pull", { batch_size: 10 })).json.result;
  assert.equal(pulled.message_backlog_count, 4);
  const body = (m) => (m.metadata["CF-Content-Type"] === "text" ? m.body : JSON.parse(Buffer.from(m.body, "base64")));
  assert.deepEqual(pulled.messages.map(body), [{ from: "worker" }, { a: [1, 2.5, "x"], b: null }, "plain"]);
  assert.ok(pulled.messages.every((m) => m.attempts === 1 && /^[0-9a-f]{32}$/.test(m.id)));
  assert.deepEqual((await api("POST", "/messages/pull", {})).json.result.messages, [], "what is leased is not given twice");
  const [first, second, third] = pulled.messages.map((m) => ({ lease_id: m.lease_id }));
  const settled = await api("POST", "/messages/ack", { acks: [first], retries: [second, { ...third, delay_seconds: 60 }] });
  assert.deepEqual(settled.json.result, { ackCount: 1, retryCount: 2, settledCount: 3, warnings: {} });
  const again = (await api("POST", "/messages/pull", { batch_size: 10, visibility_timeout_ms: 100 })).json.result.messages;
  assert.deepEqual(again.map((m) => [m.attempts, m.id]), [[2, pulled.messages[1].id]]);
  // The lease ends, and with it the last retry.
  await server.untilTrue(async () => (await server.all()).some((m) => m.queue === "dead"), "the dead letter");
  assert.equal((await api("POST", "/messages/ack", { acks: [{ lease_id: again[0].lease_id }] })).json.result.settledCount, 0);
  const queue = (await api("GET", "")).json.result;
  assert.equal(queue.backlog_count, 2);
});

test("Q-9 pause, retention, purge; bad requests are told", async (t) => {
  const server = await start(t, { max_batch_size: 1 });
  const api = (method, target, body) => ask({ data: server.data }, method, `/api/queues/work${target}`, { body });
  const paused = await api("PATCH", "", { settings: { delivery_paused: true, message_retention_period: 3600 } });
  assert.deepEqual(paused.json.result.settings, { delivery_paused: true, message_retention_period: 3600 });
  await server.batch([{ body: 1 }, { body: 2 }]);
  assert.equal((await server.metrics()).backlogCount, 2);
  assert.deepEqual(await server.all(), []);
  assert.equal((await api("POST", "/purge")).json.result.backlog_count, 0);
  await server.send(3);
  await api("PATCH", "", { settings: { delivery_paused: false } });
  assert.deepEqual((await server.seen(1)).map((m) => m.body), [3]);
  for (const [target, body, message] of [
    ["/messages", {}, /must have a "body"/], ["/messages", { body: 1, content_type: "xml" }, /content_type/],
    ["/messages", { body: "x".repeat(128_001) }, /exceeds limit of 128000/], ["/messages/batch", { messages: [] }, /array of messages/],
    ["/messages/pull", { batch_size: 0 }, /batch_size/], ["/messages/pull", { visibility_timeout_ms: 1e9 }, /visibility_timeout_ms/],
    ["/messages/ack", { acks: [{ lease_id: "zz" }] }, /lease_id/],
  ]) assert.match((await api("POST", target, body)).json.error.message, message);
  assert.match((await api("PATCH", "", { settings: { message_retention_period: 1 } })).text, /must be a number from 60 to 1209600/);
  assert.equal((await ask({ data: server.data }, "GET", "/api/queues/none")).status, 404);
});

test("Q-5 two consumers of one queue are refused", async () => {
  const dir = project({ "wrangler.json": config({}), "index.js": worker });
  const other = project({ "wrangler.json": config({}).replace('"name":"q"', '"name":"other"'), "index.js": worker });
  await assert.rejects(serve([dir, other]), /queue\/work has two consumers \(q and other\)/);
});

test("Q-8 an orderly stop with messages delayed, leased and at the consumer loses none", async (t) => {
  const data = tempDir();
  for (const lanes of [1, 2]) {
    const server = await start(t, { max_batch_size: 10, max_batch_timeout: 60 }, { data, lanes });
    const pull = (body) => ask({ data }, "POST", "/api/queues/work/messages/pull", { body });
    await server.batch([{ body: { n: lanes, do: "" }, delaySeconds: 3600 }, { body: { n: 10 + lanes } }]);
    assert.equal((await pull({ batch_size: 1, visibility_timeout_ms: 60_000 })).json.result.messages.length, 1);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  }
  const server = await start(t, { max_batch_size: 1 }, { data });
  assert.deepEqual((await server.seen(2, 2)).map((m) => m.body.n).sort(), [11, 12]);
});
