// What is moved: `POST /fill?from=N&to=M` writes, `GET /objects?from=N&to=M` and `GET /services` describe all that is there. The same
// script runs on workerd and, after `cairn import`, on cairn.
import { DurableObject } from "cloudflare:workers";
import { Movable, exportObjects } from "./export.js"; // of examples/moving

const FAR = 4102444800; // 2100-01-01, in seconds
const LATE = 2145916800; // 2038-01-01: workerd takes no later one for KV

/** A value as JSON that tells apart what JSON does not. */
function show(value, seen = new Map()) {
  if (typeof value === "bigint") return { bigint: String(value) };
  if (value === undefined) return { undefined: true };
  if (typeof value === "number") return Object.is(value, -0) || !Number.isFinite(value) ? { number: Object.is(value, -0) ? "-0" : String(value) } : value;
  if (value === null || typeof value !== "object") return value;
  if (seen.has(value)) return { same: seen.get(value) };
  seen.set(value, seen.size);
  if (value instanceof Date) return { date: +value };
  if (value instanceof RegExp) return { regexp: String(value) };
  if (value instanceof Map) return { map: [...value].map((pair) => pair.map((part) => show(part, seen))) };
  if (value instanceof Set) return { set: [...value].map((item) => show(item, seen)) };
  if (value instanceof ArrayBuffer) return { buffer: [...new Uint8Array(value)] };
  if (ArrayBuffer.isView(value)) return { view: value.constructor.name, bytes: [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)] };
  if (value instanceof Error) return { error: value.name, message: value.message, cause: show(value.cause, seen) };
  const entries = Object.keys(value).map((key) => [key, show(value[key], seen)]);
  return Array.isArray(value) ? { array: value.length, entries } : { object: entries };
}

const bytes = (size, start) => Uint8Array.from({ length: size }, (_, i) => (i * 7 + start) & 255);

function values(n) {
  const self = { n };
  self.self = self;
  const buffer = bytes(16, n).buffer;
  const named = [1, [2]];
  named.x = "y";
  return {
    plain: { n, text: "x".repeat(n % 50), "é☃": [true, false, null, undefined, -0, 1.5, NaN, 2 ** 31, -n] },
    self, sparse: [1, , 3], named, // eslint-disable-line no-sparse-arrays
    big: [BigInt(n) ** 9n, -5n, 0n], dates: [new Date(1e12 + n), /a"b/giu],
    map: new Map([[n, new Set([1, "a", { n }])], ["k", new Map()]]),
    views: [new Uint16Array(buffer, 2, 3), new Uint8Array(buffer), buffer, new Float64Array([n / 3])],
    error: new RangeError("no " + n, { cause: { n } }),
  };
}

class Thing extends Movable(DurableObject) {
  alarm() {}
  async describe() {
    const { storage } = this.ctx, entries = [];
    for (const [key, value] of await storage.list()) entries.push([key, show(value)]);
    return { id: this.ctx.id.toString(), name: this.ctx.id.name ?? null, alarm: await storage.getAlarm(), entries, tables: this.tables?.() ?? null };
  }
}

export class Room extends Thing {
  async fill(n) {
    const { storage } = this.ctx, { sql } = storage;
    if (n % 3 !== 1) for (const [key, value] of Object.entries(values(n))) await storage.put(key, value);
    if (n % 3 !== 2) {
      sql.exec("CREATE TABLE IF NOT EXISTS line (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, number REAL, bytes BLOB)");
      sql.exec("CREATE INDEX IF NOT EXISTS line_what ON line (what)");
      sql.exec("CREATE TABLE IF NOT EXISTS pair (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID");
      for (let i = 0; i < n % 7; i++) sql.exec("INSERT INTO line (what, number, bytes) VALUES (?, ?, ?)", `é ${n} ${i}`, i / 3, bytes(i * 100, n));
      sql.exec("DELETE FROM line WHERE id = 1");
      sql.exec("INSERT INTO pair VALUES (?, ?)", n, "b");
    }
    if (n % 10 === 0) {
      sql.exec("CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text)");
      sql.exec("INSERT INTO words VALUES (?)", `word${n} and others`);
    }
    if (n % 4 === 0) await storage.setAlarm(FAR * 1000 + n);
    if (n % 8 === 0) await storage.deleteAlarm();
    return this.ctx.id.toString();
  }
  tables() {
    const { sql } = this.ctx.storage;
    const schema = sql.exec("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE '\\_\\_miniflare%' ESCAPE '\\' ORDER BY name").toArray();
    const rows = (name) => sql.exec(`SELECT * FROM "${name}" ORDER BY 1`).raw().toArray().map((row) => row.map((cell) => (cell instanceof ArrayBuffer ? show(cell) : cell)));
    const plain = schema.filter(({ name, sql: text }) => /^CREATE TABLE/.test(text) && !/^(words_|sqlite_)/.test(name));
    const found = schema.some(({ name }) => name === "words") ? sql.exec("SELECT rowid, text FROM words WHERE words MATCH 'others'").toArray() : null;
    return { schema, rows: plain.map(({ name }) => [name, rows(name)]), found };
  }
}

export class Old extends Thing {
  async fill(n) {
    await this.ctx.storage.put({ k: [n, "old"], when: new Date(n) });
    if (n % 2) await this.ctx.storage.setAlarm(FAR * 1000 - n);
    return this.ctx.id.toString();
  }
}

/** Two of three objects have names; ids of the others are stored in D1 as texts. */
async function object(env, n) {
  const space = n % 5 === 4 ? env.OLD : env.ROOM;
  if (n % 3) return space.getByName(`named ${n}`);
  const row = await env.DB.prepare("SELECT id FROM kept WHERE n = ?").bind(n).first();
  return space.get(row ? space.idFromString(row.id) : space.newUniqueId());
}

async function fillServices(env, n) {
  const text = (size) => `value ${n} `.repeat(size);
  await env.KV.put(`key/${n}`, text(n % 20), n % 2 ? { metadata: { n, "é": [1.5, null, "☃"] } } : {});
  await env.KV.put(`é ${n}?&=`, bytes(n * 10, n), { expiration: LATE + n });
  await env.DB.prepare("INSERT INTO item (name, price, body) VALUES (?, ?, ?)").bind(`item ${n}`, n / 7, bytes(n % 9, n)).run();
  await env.BUCKET.put(`a/${n}`, text(n % 5), {
    httpMetadata: { contentType: "text/plain;é".slice(0, 10), cacheControl: "max-age=60", cacheExpiry: new Date(FAR * 1000) },
    customMetadata: { n: String(n), "key": "é ☃" },
  });
  if (n % 20 === 0) {
    await env.BUCKET.put(`large/${n}`, bytes(100_000, n));
    const upload = await env.BUCKET.createMultipartUpload(`parts/${n}`, { customMetadata: { parts: "2" }, httpMetadata: { contentType: "x/y" } });
    const parts = [await upload.uploadPart(1, new Uint8Array(5 << 20).fill(n)), await upload.uploadPart(2, bytes(1000, n))];
    await upload.complete(parts);
  }
}

async function fill(env, from, to) {
  if (from === 0) await env.DB.batch(["CREATE TABLE kept (n INTEGER PRIMARY KEY, id TEXT)", "CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, price REAL, body BLOB)",
    "CREATE VIEW cheap AS SELECT name FROM item WHERE price < 1", "CREATE TRIGGER no_rename BEFORE UPDATE ON item BEGIN SELECT RAISE(ABORT, 'no'); END"].map((sql) => env.DB.prepare(sql)));
  for (let n = from; n < to; n++) {
    const id = await (await object(env, n)).fill(n);
    if (n % 3 === 0) await env.DB.prepare("INSERT INTO kept VALUES (?, ?)").bind(n, id).run();
    if (n % 10 === 0) await fillServices(env, n / 10);
  }
}

async function digest(body) {
  return [...new Uint8Array(await crypto.subtle.digest("SHA-256", body))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function services(env) {
  const kv = [], r2 = [];
  for (let cursor; ; ) {
    const page = await env.KV.list({ cursor });
    for (const { name, expiration, metadata } of page.keys) kv.push([name, expiration ?? null, metadata ?? null, await digest(await env.KV.get(name, "arrayBuffer"))]);
    if (page.list_complete) break;
    cursor = page.cursor;
  }
  for (const { key } of (await env.BUCKET.list()).objects) {
    const { etag, size, uploaded, httpMetadata, customMetadata, body } = await env.BUCKET.get(key);
    r2.push([key, etag, size, +uploaded, { ...httpMetadata, cacheExpiry: +(httpMetadata.cacheExpiry ?? 0) }, customMetadata, await digest(await new Response(body).arrayBuffer())]);
  }
  const rows = async (sql) => (await env.DB.prepare(sql).raw()).map((row) => row.map((cell) => (Array.isArray(cell) ? { bytes: cell } : cell)));
  const d1 = [await rows("SELECT * FROM kept"), await rows("SELECT * FROM item"), await rows("SELECT * FROM cheap"),
    await rows("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE '\\_cf\\_%' ESCAPE '\\' ORDER BY name"), await rows("SELECT * FROM sqlite_sequence")];
  return { kv, d1, r2, empty: (await env.EMPTY.list()).keys.length };
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    const from = Number(searchParams.get("from")), to = Number(searchParams.get("to"));
    if (pathname === "/export") return exportObjects(request, { Room: env.ROOM, Old: env.OLD }, env.EXPORT_KEY);
    if (pathname === "/fill") return Response.json((await fill(env, from, to)) ?? null);
    if (pathname === "/services") return Response.json(await services(env));
    const all = [];
    for (let n = from; n < to; n++) all.push(await (await object(env, n)).describe());
    return Response.json(all);
  },
};
