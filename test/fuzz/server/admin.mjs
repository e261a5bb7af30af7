// The admin listener by grammar: every route of its description, with parameters, bodies and tokens that nobody would send. Without
// the token nothing but health is answered, and nothing is answered with an internal error.
import http from "node:http";
import { readOpenapi } from "../../../tools/build-openapi.mjs";
import { brief, main } from "./lib.mjs";

const TOKEN = "the token of the fuzzer";
const files = {
  "wrangler.json": JSON.stringify({
    name: "app", main: "index.js", compatibility_date: "2026-01-01", durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] }, migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    kv_namespaces: [{ binding: "KV", id: "kv" }], d1_databases: [{ binding: "DB", database_name: "db", database_id: "db" }], r2_buckets: [{ binding: "R2", bucket_name: "files" }],
    queues: { producers: [{ binding: "Q", queue: "jobs" }] }, analytics_engine_datasets: [{ binding: "P", dataset: "visits" }], triggers: { crons: ["0 0 1 1 *"] },
  }),
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Cell extends DurableObject { async fetch() { await this.ctx.storage.put("k", 1); this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t(a)"); return new Response("ok"); } }
export default { async fetch(r, env) { await env.KV.put("k", "v"); await env.R2.put("k", "v"); env.P.writeDataPoint({ doubles: [1] }); await env.Q.send("m"); return env.CELL.getByName("one").fetch(r); }, scheduled() {} };`,
};
const routes = Object.entries(readOpenapi(new URL("../../..", import.meta.url).pathname).paths)
  .flatMap(([path, methods]) => Object.keys(methods).filter((name) => name !== "parameters").map((method) => [method.toUpperCase(), path]))
  .filter(([, path]) => !["/api/backup", "/api/tail", "/api/deploy"].includes(path)) // a folder for each, an answer without end, a build
  .filter(([, path]) => !/^\/(client\/v4|node)\//.test(path)); // test/tokens/ asks for those; deployments take a turn each
const OPEN = ["/healthz", "/readyz", "/metrics"];
const NAMES = ["app/Cell", "one", "kv", "db", "files", "jobs", "visits", "k", "app", "", "..", "%00", "%", "\u00e4", "x".repeat(2000), "$cairn", "0".repeat(64), "f".repeat(64), "-1", "a/b/c/d/e/f/g/h/i/j", "'; DROP TABLE t; --"];
const PARAMS = ["limit", "cursor", "prefix", "after", "namespace", "key", "order", "bookmark", "time", "before", "format", "count", "name", "delimiter", "sql", "query", "expiration", "ttl", "metadata"];
const VALUES = ["0", "-1", "1", "99999999999999999999", "1e9", "NaN", "", "null", "\u0000", "x".repeat(5000), "2026-01-01T00:00:00Z", "yesterday", "00000000-00000001-00000000-00000000000000000000000000000000", "AAAA", "%", "[]", "largest", "a b"];
const SQLS = ["SELECT 1", "SELECT * FROM t", "SELECT ?", "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 2000) SELECT * FROM c", "SELECT zeroblob(1000000)", "DROP TABLE _cf_KV", "/**/ALTER TABLE t RENAME TO _cf_KV", "ATTACH 'x' AS y", "BEGIN", "", ";", "SELECT", "INSERT INTO t VALUES(1)", "SELECT count() FROM visits", "SELECT * FROM visits FORMAT JSON", "SELECT quantile(2)(double1) FROM visits", "SHOW TABLES", "x".repeat(200_000), "SELECT randomblob(3)", "PRAGMA page_count", "SELECT 1e400, -0.0, X'00'"];

function json(random, depth = 0) {
  switch (random.below(depth > 3 ? 6 : 9)) {
    case 0: return null;
    case 1: return random.one([0, -1, 1e308, 0.5, 2 ** 53, 1]);
    case 2: return random.one(SQLS);
    case 3: return random.one(VALUES);
    case 4: return random.chance(50);
    case 5: return random.one(NAMES);
    case 6: return Array.from({ length: random.below(4) }, () => json(random, depth + 1));
    default: return Object.fromEntries(Array.from({ length: random.below(5) }, () => [random.one(["sql", "params", "body", "content_type", "type", "messages", "delay_seconds", "visibility_timeout_ms", "batch_size", "acks", "retries", "lease_id", "paused", "time", "bookmark", "value", "keys", "to", "count", "cron", "settings", "delivery_paused", "message_retention_period", ...PARAMS]), json(random, depth + 1)]));
  }
}

const send = (port, { method, target, headers, body }) => new Promise((resolve, reject) => {
  const request = http.request({ host: "127.0.0.1", port, method, path: target, headers: { ...headers, "content-length": Buffer.byteLength(body) }, timeout: 120_000 }, (response) => {
    let text = "";
    response.on("data", (part) => (text += part)).on("end", () => resolve({ status: response.statusCode, text })).on("error", () => resolve({ status: 0, text }));
  });
  request.on("timeout", () => reject(new Error(`no answer to ${method} ${target}`))).on("error", () => resolve({ status: 0, text: "" }));
  request.end(body);
});

let port;
await main({
  name: "server admin", files, width: 4, options: { env: { CAIRN_ADMIN: "127.0.0.1:0", CAIRN_ADMIN_TOKEN: TOKEN } },
  async once(server, random) {
    port ??= Number((await server.until(/admin on https?:\/\/\S+:(\d+)/))[1]);
    if (random.chance(2)) await send(server.port, { method: "GET", target: "/", headers: {}, body: "" });
    const [method, path] = random.one(routes);
    const filled = path.replace(/\{\w+\}/g, () => (random.chance(80) ? encodeURIComponent(random.one(NAMES)) : random.one(NAMES).replace(/[^!-~]/g, ""))) + (random.chance(3) ? random.one(["/", "//", "/x", "/%2e%2e"]) : "");
    const query = Array.from({ length: random.below(3) }, () => `${random.one(PARAMS)}=${encodeURIComponent(random.one(VALUES))}`).join("&");
    // Now and then without the token, rarely enough that the address is not locked out.
    const authorized = !random.chance(1);
    let body = method === "GET" || method === "HEAD" ? "" : random.chance(80) ? JSON.stringify(json(random)) : random.one([...SQLS, "{", "[1", "\u0000", '{"sql":']);
    if (path.endsWith("/sql") && random.chance(60)) body = path.includes("analytics") ? random.one(SQLS) : JSON.stringify({ sql: random.one(SQLS), params: random.chance(70) ? [] : json(random) });
    const request = { method: random.chance(97) ? method : random.one(["GET", "POST", "PUT", "DELETE", "PATCH"]), target: query ? `${filled}?${query}` : filled, body, headers: authorized ? { authorization: `Bearer ${TOKEN}` } : {} };
    if (/[^!-~]/.test(request.target)) return;
    const answer = await send(port, request);
    const what = `${request.method} ${brief(request.target)} ${brief(body, 300)}: ${answer.status} ${brief(answer.text, 300)}`;
    if (answer.status >= 500 && answer.status !== 503 && answer.status !== 504) throw new Error(`an internal error: ${what}\n${brief(server.output.slice(-5000))}`);
    if (!authorized && answer.status >= 200 && answer.status < 300 && !OPEN.includes(filled)) throw new Error(`without a token: ${what}`);
    return answer.status;
  },
});
