// What ctx.storage makes of its arguments: of what is bound to SQL, of keys, values, ranges, times and options. What is
// expected is what workerd 1.20261104 answers to the same code.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";

const date = (method) => `TypeError: Failed to execute '${method}' on 'DurableObjectStorage': parameter 1 is not of type 'date'.`;
const options = (method, index, type, name = "DurableObjectStorage") =>
  `TypeError: Failed to execute '${method}' on '${name}': parameter ${index} is not of type '${type}'.`;
const bound = (given) => `const { v, t, h } = s.sql.exec("SELECT ?1 AS v, typeof(?1) AS t, ?1 / 2 AS h", ${given}).one(); ` +
  "return [v instanceof ArrayBuffer ? [...new Uint8Array(v)].join() : Object.is(v, -0) ? '-0' : v, t, h];";
const alarm = (given) => `await s.deleteAlarm(); await s.setAlarm(${given}); return s.getAlarm();`;

/** [what the object does, what it answers or throws]. */
const cases = {
  "a whole number is a REAL": [bound("5"), [5, "real", 2.5]],
  "-0 stays": [bound("-0"), ["-0", "real", 0]],
  "a number beyond the integers": [bound("2 ** 63"), [2 ** 63, "real", 2 ** 62]],
  "NaN is NULL": [bound("NaN"), [null, "null", null]],
  "undefined is NULL": [bound("undefined"), [null, "null", null]],
  "true is a text": [bound("true"), ["true", "text", 0]],
  "an object is its text": [bound("{}"), ["[object Object]", "text", 0]],
  "a list is its text": [bound("[1, 2]"), ["1,2", "text", 0]],
  "a Number object is its text": [bound("new Number(4)"), ["4", "text", 2]],
  "a DataView is bytes": [bound("new DataView(new Uint8Array([7, 8, 9]).buffer, 1)"), ["8,9", "blob", 0]],
  "a BigInt is refused": [bound("5n"), "TypeError: Cannot convert a BigInt value to a number"],
  "what toString() throws comes out": [bound("{ toString() { throw new Error('bad'); } }"), "Error: bad"],
  "toString() may use the storage": [bound("{ toString() { return s.sql.exec('SELECT 6').one()['6']; } }"), ["6", "text", 3]],
  "an INTEGER column makes integers of them": [
    "s.sql.exec('CREATE TABLE i (n INTEGER, x, t TEXT)'); s.sql.exec('INSERT INTO i VALUES (?1, ?1, ?1)', 5); " +
    "return s.sql.exec('SELECT typeof(n) || typeof(x) || t AS all_ FROM i WHERE n = ? LIMIT ?', 5, 1).one().all_;", "integerreal5.0"],

  "kv.put() of undefined": ["s.kv.put('u', undefined); return [...s.kv.list()].length + ' ' + [...(await s.get(['u'])).keys()];", "1 u"],
  "put() of undefined": ["await s.put('k', undefined);", "TypeError: put() called with undefined value."],
  "a list is a key": ["await s.put(['a', 'b'], 1); return [...(await s.list()).keys()];", ["a,b"]],
  "a function is entries": ["await s.put(Object.assign(() => 0, { f: 1 })); return [...(await s.list()).keys()];", ["f"]],
  "entries and a number": ["await s.put({ a: 1 }, 5);", "TypeError: put() may only be called with a single key-value pair and optional options as put(key, " +
    "value, options) or with multiple key-value pairs and optional options as put(entries, options)"],

  "an alarm at 0": [alarm("0"), "TypeError: setAlarm() cannot be called with an alarm time <= 0"],
  "an alarm at null": [alarm("null"), date("setAlarm")],
  "an alarm at a text": [alarm("'2030-01-01'"), date("setAlarm")],
  "an alarm at true": [alarm("true"), date("setAlarm")],
  "an alarm at NaN": [alarm("new Date(NaN)"), "TypeError: The value cannot be converted because it is not a valid Date."],
  "an alarm too far": [alarm("1e13"), "TypeError: This API doesn't support dates after 2189."],
  "an alarm, to the millisecond": [alarm("4e12 + 0.7"), 4e12],
  "an alarm in the past": ["const now = Date.now(); await s.setAlarm(5); return (await s.getAlarm()) >= now;", true],
  "a bookmark for a text": ["await s.getBookmarkForTime('2020-01-01');", date("getBookmarkForTime")],

  "a limit is a whole number": ["await s.put({ a: 1, b: 2, c: 3 }); return [(await s.list({ limit: '2.9' })).size, [...s.kv.list({ limit: 2.9 })].length];", [2, 2]],
  "a limit below 1": ["await s.list({ limit: 0.9 });", "TypeError: List limit must be positive."],
  "a limit too large": ["await s.list({ limit: 2 ** 31 });", "TypeError: Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."],
  "bounds are texts": ["await s.put({ null: 1, o: 2 }); return [...(await s.list({ start: null, end: 'o' })).keys()];", ["null"]],
  "a text for a range": ["await s.list('a');", options("list", 1, "ListOptions")],
  "a text for a range of kv": ["s.kv.list('a');", options("list", 1, "ListOptions", "SyncKvStorage")],
  "a number for options of get()": ["await s.get('k', 5);", options("get", 2, "GetOptions")],
  "a number for options of put()": ["await s.put('k', 1, 5);", options("put", 3, "PutOptions")],
  "a number for options of deleteAll()": ["await s.deleteAll(5);", options("deleteAll", 1, "PutOptions")],
  "a transaction of nothing": ["await s.transaction();", options("transaction", 1, "function")],
  "a synchronous one": ["s.transactionSync('a');", options("transactionSync", 1, "function")],
};

const source = `import { DurableObject } from "cloudflare:workers";
const cases = {
${Object.values(cases).map(([code], i) => `  async c${i}(s) { ${code} },`).join("\n")}
};
export class Cell extends DurableObject {
  async run(name) {
    try { return await cases[name](this.ctx.storage); } catch (error) { return String(error); }
  }
  alarm() {}
}
export default { async fetch(request, env) {
  const name = new URL(request.url).pathname.slice(1);
  return Response.json((await env.CELL.getByName(name).run(name)) ?? null);
} };`;

describe("arguments of ctx.storage", () => {
  let server;
  before(async () => {
    server = await serve(project({ "index.js": source, "wrangler.json": JSON.stringify({
      name: "app", main: "index.js", compatibility_date: "2026-05-01",
      durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
      migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    }) }), { nodes: 1 });
  });
  after(() => server.stop());
  Object.entries(cases).forEach(([name, [, expected]], i) => {
    test(name, async () => assert.deepEqual(await (await server.fetch(`/c${i}`)).json(), expected));
  });
});
