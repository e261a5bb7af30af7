// Takes memory and never gives it back: in the worker, an object, an alarm, a consumer of a queue; in every form.
import { DurableObject } from "cloudflare:workers";

const MB = 1 << 20;
let serial = 0;
const bytes = () => new Uint8Array(MB).fill(++serial);
const forms = {
  typed: () => Array.from({ length: 8 }, bytes),
  huge: () => new Float64Array(4 * MB).fill(++serial),
  strings: () => Array.from({ length: 8 }, () => new TextDecoder("latin1").decode(bytes())),
  wide: () => Array.from({ length: 4 }, () => `\u4e00${String.fromCharCode(++serial)}`.repeat(MB / 4).slice(1)),
  small: () => Array.from({ length: 100_000 }, (_, n) => ({ n, of: [serial++] })),
  maps: () => new Map(Array.from({ length: 100_000 }, (_, n) => [`key ${serial}/${n}`, { n }])),
  closures: () => Array.from({ length: 100_000 }, (_, n) => () => n + serial),
  promises: () => Array.from({ length: 50_000 }, () => new Promise(() => {}).then(() => serial)),
  timers: () => Array.from({ length: 900 }, () => { const kept = new Array(1000).fill(++serial); return setTimeout(() => kept, 3600_000); }),
  blobs: () => Array.from({ length: 8 }, () => new Blob([bytes(), bytes()])),
  streams: () => { let n = 0; const stream = new ReadableStream({ pull(c) { c.enqueue(bytes()); if (++n > 8) c.close(); } }, { highWaterMark: 16 }); return stream; },
  clones: () => structuredClone(Array.from({ length: 20_000 }, (_, n) => ({ n, text: `text ${serial++}` }))),
  json: () => JSON.parse(JSON.stringify(Array.from({ length: 20_000 }, (_, n) => ({ n, text: `text ${serial++}` })))),
  headers: () => Array.from({ length: 2000 }, () => new Request("http://x/", { headers: { a: "b".repeat(2000), c: String(++serial) } })),
  pairs: () => Array.from({ length: 2000 }, () => new WebSocketPair()),
  sql(object) {
    return object?.ctx.storage.sql.exec("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 40) SELECT n, randomblob(200000) AS b FROM c").toArray();
  },
  texts(object) {
    return object?.ctx.storage.sql.exec("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) SELECT n, hex(randomblob(150)) AS b FROM c").toArray();
  },
  cursors(object) { // open ones: SQLite holds their rows
    return object && Array.from({ length: 4 }, () => {
      const cursor = object.ctx.storage.sql.exec("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10) SELECT n, randomblob(400000) AS b FROM c ORDER BY b");
      cursor.next();
      return cursor;
    });
  },
  calls(object, env) { // wait before objects that take none: their arguments are nobody's memory
    const box = env.BOX.getByName(`deaf ${++serial}`);
    box.deaf().catch(() => {});
    return Array.from({ length: 8 }, () => box.take2(bytes()).catch(() => {}));
  },
  messages() { // to ends that nobody reads
    return Array.from({ length: 8 }, () => {
      const [near, far] = Object.values(new WebSocketPair());
      near.accept();
      near.send(bytes());
      return [near, far];
    });
  },
  replies(object, env) { // bodies of answers that nobody reads
    return Array.from({ length: 4 }, () => env.SELF.fetch("http://hog.test/big"));
  },
  kv(object, env) {
    return Array.from({ length: 4 }, () => env.KV.put(`key ${++serial % 50}`, bytes()).catch(() => {}));
  },
  gathered(object, env) { // streams that are read and kept
    return env.SELF.fetch("http://hog.test/big").then((response) => response.arrayBuffer());
  },
  tees() {
    const [, kept] = new Response(bytes()).body.tee();
    return kept;
  },
  packed() {
    return new Response(new Response(bytes()).body.pipeThrough(new CompressionStream("gzip")).pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  },
  burst() {
    for (const all = []; ; ) all.push(new Uint8Array(10e6).fill(1));
  },
  burstSmall() {
    for (const all = []; ; ) all.push({ n: all.length, of: [1, 2, 3] });
  },
  burstText() {
    for (let text = "x"; ; ) text = `${text}${text}`.replaceAll("x", "xy");
  },
};
const kept = [];

export class Box extends DurableObject {
  kept = [];
  take(form) { this.kept.push(forms[form](this, this.env)); return "taken"; }
  deaf() { return this.ctx.blockConcurrencyWhile(() => new Promise((resolve) => setTimeout(resolve, 20_000))); }
  take2(value) { this.kept.push(value); }
  async ring(form) {
    this.form = form;
    this.ctx.storage.kv.put("form", form);
    await this.ctx.storage.setAlarm(Date.now());
    return "set";
  }
  alarm() {
    for (let i = 0; i < 3; i++) this.take(this.ctx.storage.kv.get("form"));
    return this.ctx.storage.setAlarm(Date.now() + 20);
  }
}

export default {
  async fetch(request, env, ctx) {
    const [, where, form] = new URL(request.url).pathname.split("/");
    if (where === "worker") kept.push(forms[form](await null, env));
    if (where === "big") return new Response(new Uint8Array(4 * MB).fill(1));
    if (where === "wait") ctx.waitUntil((async () => { const mine = forms[form](); await scheduler.wait(20_000); return mine; })());
    if (where === "object") return new Response(await env.BOX.getByName("greedy").take(form));
    if (where === "objects") return new Response(await env.BOX.getByName(`many ${++serial}`).take(form));
    if (where === "alarm") return new Response(await env.BOX.getByName("ringing").ring(form));
    if (where === "queue") await env.QUEUE.send(form);
    return new Response("taken");
  },
  queue(batch, env) {
    for (const { body } of batch.messages) kept.push(forms[body](null, env));
  },
};
