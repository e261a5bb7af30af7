// Services under load: one operation per request.
const KEYS = 1000;
let turn = 0;
let seen = 0; // messages that the consumer has got
const megabyte = new Uint8Array(1 << 20).map((_, i) => (i * 31 + (i >> 8)) & 255);
const cached = "http://cache.example/item";

const routes = {
  "/hello": () => new Response("hello"),
  "/setup": async ({ KV, DB, BUCKET }) => {
    await BUCKET.put("large", megabyte);
    await caches.default.put(cached, new Response("x".repeat(1024), { headers: { "cache-control": "max-age=3600" } }));
    for (let i = 0; i < KEYS; i++) await KV.put(`key${i}`, `a value of a hundred bytes or so, number ${i}, ${"x".repeat(60)}`);
    await DB.exec("CREATE TABLE IF NOT EXISTS items(id INTEGER PRIMARY KEY, name TEXT, price REAL)");
    await DB.exec("CREATE TABLE IF NOT EXISTS log(id INTEGER PRIMARY KEY, text TEXT)");
    for (let i = 0; i < KEYS; i += 100) {
      await DB.batch(Array.from({ length: 100 }, (_, k) => DB.prepare("INSERT OR REPLACE INTO items VALUES (?, ?, ?)").bind(i + k, `item ${i + k}`, (i + k) / 8)));
    }
    return new Response("ok");
  },
  "/kv/get": async ({ KV }) => new Response(await KV.get(`key${turn++ % KEYS}`)),
  "/kv/put": async ({ KV }) => {
    await KV.put(`key${turn++ % KEYS}`, `a value of a hundred bytes or so, ${"x".repeat(60)}`);
    return new Response("ok");
  },
  "/d1/insert": async ({ DB }) => {
    await DB.prepare("INSERT INTO log(text) VALUES (?)").bind("a line of text").run();
    return new Response("ok");
  },
  "/d1/select": async ({ DB }) => Response.json(await DB.prepare("SELECT * FROM items WHERE id = ?").bind(turn++ % KEYS).first()),
  "/r2/put": async ({ BUCKET }) => {
    await BUCKET.put(`large${turn++ % 50}`, megabyte);
    return new Response("ok");
  },
  "/r2/get": async ({ BUCKET }) => new Response((await BUCKET.get("large")).body),
  "/cache/match": () => caches.default.match(cached),
  "/queue/send": async ({ QUEUE }) => {
    await QUEUE.sendBatch(Array.from({ length: 100 }, (_, i) => ({ body: { i, turn } })));
    return new Response("ok");
  },
  "/queue/seen": () => Response.json(seen),
  "/d1/batch": async ({ DB }) => {
    const statement = DB.prepare("INSERT INTO log(text) VALUES (?)");
    await DB.batch(Array.from({ length: 50 }, (_, i) => statement.bind(`line ${i}`)));
    return new Response("ok");
  },
};

export default {
  queue(batch) {
    seen += batch.messages.length;
    batch.ackAll();
  },
  fetch(request, env) {
    return routes[new URL(request.url).pathname](env);
  },
};
