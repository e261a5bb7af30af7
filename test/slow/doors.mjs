// The doors of `make slow` behind the worker: parts of requests, S3, functions of SQL, HTMLRewriter, rules of assets, the administration.
// Each is made from what there is: functions from SQLite's tables, operations from the OpenAPI document.
import { readFileSync } from "node:fs";
import path from "node:path";
import { readOpenapi } from "../../tools/build-openapi.mjs";
import { AwsClient, HOST, KEY, SECRET } from "../integration/services/s3-lib.mjs";
import { root } from "../integration/lib/server.mjs";

export const TOKEN = "operator-of-the-slow-0123456789";
export const environment = { CAIRN_S3_ACCESS_KEY_ID: KEY, CAIRN_S3_SECRET_ACCESS_KEY: SECRET, CAIRN_ADMIN: "127.0.0.1:0", CAIRN_ADMIN_TOKEN: TOKEN };
export const s3Config = `[cairn.s3]\nhost = "${HOST}"\n`;

// --- requests to a worker that reads all of them -----------------------------------------------
// What cannot be sent is not. A field of its own for each kind of header that something here reads.
const FIELDS = ["cookie", "content-type", "accept", "accept-encoding", "cache-control", "if-none-match", "if-match", "if-modified-since", "range", "authorization", "forwarded", "x-forwarded-for", "upgrade", "sec-websocket-protocol", "sec-websocket-extensions", "traceparent", "cdn-loop", "x-other"];
const sendable = (text) => text.replace(/[^\t\x20-\x7e]/g, "a");
export const requests = {
  target: (text) => ({ method: "GET", target: `/${text.replace(/[^\x21-\x7e]/g, "%")}` }),
  query: (text) => ({ method: "GET", target: `/?${text.replace(/[^\x21-\x7e]/g, "+")}` }),
  form: (text) => ({ body: text, headers: { "content-type": "application/x-www-form-urlencoded" } }),
  parts: (text) => ({ body: `--a\r\n${text}\r\n--a--\r\n`, headers: { "content-type": "multipart/form-data; boundary=a" } }),
  boundary: (text) => ({ body: text, headers: { "content-type": `multipart/form-data; boundary="${sendable(text).replace(/["\\]/g, "a").slice(0, 60)}"` } }),
  json: (text) => ({ body: text, headers: { "content-type": "application/json" } }),
  ...Object.fromEntries(FIELDS.map((name) => [name, (text) => ({ method: "GET", headers: { [name]: sendable(text) } })])),
};

// --- S3 ------------------------------------------------------------------------------------------
const client = new AwsClient({ accessKeyId: KEY, secretAccessKey: SECRET, service: "s3", region: "auto" });
async function signed(method, target, { headers, body } = {}) {
  const request = await client.sign(`http://${HOST}${target}`, { method, headers, body });
  return { method, target: new URL(request.url).pathname + new URL(request.url).search, headers: Object.fromEntries(request.headers), body };
}
const inQuery = (text) => encodeURIComponent(text.toWellFormed?.() ?? text.replace(/[\ud800-\udfff]/g, "a"));
const S3_FIELDS = ["x-amz-copy-source", "x-amz-copy-source-range", "x-amz-copy-source-if-match", "x-amz-meta-a", "range", "if-match", "if-none-match", "if-modified-since", "content-md5", "x-amz-checksum-sha256", "cache-control", "x-amz-trailer"];
export const s3 = {
  delete: (text) => signed("POST", "/files?delete", { body: text }),
  "delete, in its element": (text) => signed("POST", "/files?delete", { body: `<Delete><Object><Key>${text}</Key></Object></Delete>` }),
  complete: (text) => signed("POST", "/files/a?uploadId=a", { body: text }),
  key: (text) => signed("GET", `/files/${inQuery(text)}`),
  ...Object.fromEntries(["prefix", "delimiter", "marker", "start-after", "continuation-token", "x-other"].map((name) => [`list, ${name}`, (text) => signed("GET", `/files?list-type=2&${name}=${inQuery(text)}`)])),
  ...Object.fromEntries(S3_FIELDS.map((name) => [name, (text) => signed(/copy|trailer|meta|md5|checksum/.test(name) ? "PUT" : "GET", "/files/a", { headers: { [name]: sendable(text).trim() } })])),
};

// --- SQL -------------------------------------------------------------------------------------------
/** {name: statement with its parameters}: SQLite's own tables of functions, each with as many texts as it takes. */
export function functions() {
  const source = readFileSync(path.join(root, "node_modules/better-sqlite3/deps/sqlite3/sqlite3.c"), "utf8");
  const found = {};
  for (const [, name, given] of source.matchAll(/^\s+(?:[A-Z]*FUNCTION2?|LIKEFUNC|W?AGGREGATE)\(\s*(\w+)\s*,\s*(-?\d+)\s*,/gm)) {
    for (const count of Number(given) < 0 ? [1, 2, 3, 4] : [Number(given)]) {
      if (count > 0) found[`${name}/${count}`] = { place: `SELECT length(${name}(${Array.from({ length: count }, (_, i) => `?${i + 1}`).join(", ")}))`, count };
    }
  }
  for (const [name, count] of [["->", 2], ["LIKE", 2], ["GLOB", 2], ["||", 2]]) found[name] = { place: `SELECT ?1 ${name} ?2`, count };
  found["json_each/1"] = { place: "SELECT count(*), max(fullkey) FROM json_each(?1)", count: 1 };
  found["json_tree/1"] = { place: "SELECT count(*), max(fullkey) FROM json_tree(?1)", count: 1 };
  for (const [name, sql] of Object.entries(found)) if (sql.count > 1) found[`${name}, at its end`] = { ...sql, last: true };
  return { ...found, "a query of FTS5": { statement: "SELECT count(*) FROM fts(?)" }, "NEAR of FTS5": { statement: "SELECT count(*) FROM fts('NEAR(' || ? || ')')" }, statements: {},
    "a text in FTS5": { statement: "INSERT INTO fts VALUES(?)" } };
}

// --- rules of assets -----------------------------------------------------------------------------
const BETWEEN = ["-", ".", "a", "%", "~"];
const eight = (between) => [..."abcdefgh"].map((name) => `:${name}`).join(between);
export const assetFiles = {
  "assets/index.html": "here",
  "assets/_headers": BETWEEN.map((between) => `/${eight(between).replace(":h", "*")}${between}!\n  x: :a\n`).join(""),
  "assets/_redirects": BETWEEN.map((between) => `/${eight(between)}! /to/:a\n/x${eight(between).replace(":h", "*")}? /to\n`).join(""),
};
export const assetConfig = `[assets]\ndirectory = "assets"\nbinding = "ASSETS"\nrun_worker_first = [${BETWEEN.flatMap((between) => [`"/*${between}*${between}*${between}*!"`, `"!/*${between.repeat(50)}*?"`]).join(", ")}]\n`;
export const assetPath = (text) => ({ method: "GET", target: `/${text.replace(/[^\x21-\x7e]|[?#]/g, "-")}` });

// --- the administration ------------------------------------------------------------------------
const document = readOpenapi(root);
/** The names of all properties that a body can have. */
function namesIn(node, depth = 0, names = new Set()) {
  if (node === null || typeof node !== "object" || depth > 12) return names;
  if (node.$ref) return namesIn(node.$ref.slice(2).split("/").reduce((at, key) => at?.[key], document), depth + 1, names);
  for (const name of Object.keys(node.properties ?? {})) names.add(name);
  for (const each of Object.values(node)) namesIn(each, depth + 1, names);
  return names;
}
const headers = (type) => ({ authorization: `Bearer ${TOKEN}`, "content-type": type });
/** {name: (text) => request} of every operation that has a body or a query. `account` is the server's. */
export function operations(account) {
  const found = {};
  for (const [route, item] of Object.entries(document.paths)) for (const [method, operation] of Object.entries(item)) {
    if (method === "parameters" || /\/(?:stop|drain|reload)\b/.test(route)) continue;
    const target = route.replace(/\{(\w+)\}/g, (_, name) => (name === "account" ? account : "none-such"));
    const name = `${method.toUpperCase()} ${route}`;
    for (const query of (operation.parameters ?? []).filter((each) => each.in === "query")) {
      found[`${name}?${query.name}`] = (text) => ({ method: method.toUpperCase(), target: `${target}?${query.name}=${inQuery(text.slice(0, 4000))}`, headers: headers("application/json"), body: method === "get" ? "" : "{}" });
    }
    if (operation.requestBody === undefined) continue;
    const names = [...namesIn(operation.requestBody)];
    found[`${name} (properties)`] = (text) => ({ method: method.toUpperCase(), target, headers: headers("application/json"), body: JSON.stringify(Object.fromEntries((names.length ? names : ["a"]).map((each) => [each, text]))) });
    found[`${name} (body)`] = (text) => ({ method: method.toUpperCase(), target, headers: headers(Object.keys(operation.requestBody.content ?? { "application/json": 0 })[0]), body: text });
  }
  return found;
}
