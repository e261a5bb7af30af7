// Random programs of Durable Objects: half of them run in an object and use its storage, half outside of one and call it.
import { drawFrom } from "./draw.mjs";

export const name = "objects";
export const flags = ["nodejs_compat"];
export const objects = ["Box"]; // classes that both have under env

const CALLS = 20;

// `at` is where a program runs; `tried` gives the words of an error, too: those of SQLite and of the script are the same on both.
export const prelude = `
import { DurableObject, RpcTarget } from "cloudflare:workers";
const said = (e) => (typeof e === "object" && e !== null ? [e.name, e instanceof TypeError && !/^(typed|second|t)$/.test(e.message) ? "in words of its own" : e.message, e.remote, e.retryable, e.overloaded] : ["thrown", e]);
const waits = (v) => v instanceof Promise || Object.prototype.toString.call(v) === "[object JsRpcPromise]";
const tried = (f) => { try { const v = f(); return waits(v) ? (async () => { try { return await v; } catch (e) { return said(e); } })() : v; } catch (e) { return said(e); } };
class Target extends RpcTarget {
  #n = 0;
  own = 1;
  get total() { return this.#n; }
  add(n = 1) { return (this.#n += n); }
  me() { return this; }
  fails(e) { throw e; }
}
export class Box extends DurableObject {
  own = "own";
  #n = 0;
  get visible() { return { a: 1 }; }
  run(n) { return runProgram(programs[n], { ctx: this.ctx, storage: this.ctx.storage, sql: this.ctx.storage.sql, env: this.env }); }
  echo(...values) { return values.length === 1 ? values[0] : values; }
  kind(value) { return [typeof value, Object.prototype.toString.call(value), describe(value)]; }
  count(n = 1) { return (this.#n += n); }
  fails(e) { throw e; }
  async failsLater(e) { await null; throw e; }
  target() { return new Target(); }
  both() { return { target: new Target(), list: [1, { f: (x) => x + 1 }], date: new Date(0) }; }
  adder(n) { return (x) => x + n; }
  nothing() {}
  alarm() {}
  async calls(f, ...args) { return f(...args); }
  async twice(f) { return [await f(1), await f(2)]; }
  async holds(t) { return [await t.add(2), await t.add(3)]; }
  body(...chunks) { return new ReadableStream({ type: "bytes", start(c) { for (const x of chunks) c.enqueue(new TextEncoder().encode(x)); c.close(); } }); }
  async reads(stream) { return new Response(stream).text(); }
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/throw") throw new RangeError("thrown");
    if (url.pathname === "/redirect") return Response.redirect(new URL("/after", url), +url.searchParams.get("status"));
    if (url.pathname === "/empty") return new Response(null, { status: 204 });
    if (url.pathname === "/status") return new Response("s", { status: 418, statusText: "Teapot", headers: { "x-a": "1", "set-cookie": "a=b" } });
    return Response.json([request.method, request.url, [...request.headers].filter(([k]) => k !== "accept-encoding" && k !== "content-length" && k !== "transfer-encoding"), request.redirect, await request.text()]);
  }
}
async function runProgramIn(program, n, env) {
  const box = env.Box.getByName("program " + n);
  if (outside[n]) return runProgram(program, { box, env });
  const results = await box.run(n);
  return results;
}
const asked = async (r) => [r.status, r.statusText, r.url, r.redirected, [...r.headers].filter(([k]) => k !== "content-length" && k !== "content-type" && k !== "transfer-encoding"), await r.text()];
`;

// --- in an object --------------------------------------------------------------------------------

const key = (d) => d.mostly(() => d.pick(['"a"', '"b"', '"c"', '"ab"', '"b2"', '""', '"é"', '"x".repeat(300)']), 0.9);
const keys = (d) => `[${d.some(3, () => key(d)).join(", ")}]`;
const stored = (d) => d.pick([
  () => d.any(), () => d.number(), () => d.text(), () => "{ a: [1, { b: null }], c: undefined }", () => "new Map([[\"k\", new Set([1, \"x\"])]])", () => "new Date(5)", () => "[1, , 3]", () => "10n ** 30n",
  () => "new Error(\"m\", { cause: 1 })", () => "{ n: -0, i: Infinity, x: NaN }", () => "new Uint8Array([1, 2, 3])", () => "\"y\".repeat(200000)", () => "/r/gi"])();
const listing = (d) => d.pick(["", "", "{}", `{ prefix: ${key(d)} }`, `{ start: ${key(d)} }`, `{ end: ${key(d)}, reverse: true }`, `{ startAfter: ${key(d)}, limit: ${d.number()} }`, `{ limit: 1, reverse: ${d.any()} }`,
  `{ start: ${key(d)}, startAfter: ${key(d)} }`, d.hostile()]);
const options = (d) => d.pick(["", "", "", ", {}", ", { allowConcurrency: true }", ", { noCache: true }", ", { allowUnconfirmed: true }", `, ${d.hostile()}`]);
const time = (d) => d.pick(["9e12", "new Date(9e12)", "9e12 + 0.7", "8e15", "8.7e15", d.number, d.any].map((x) => (typeof x === "function" ? x() : x)).filter((x) => !/^(1|2|3|10|255|256|65536|1\.9|0\.5|-.*|0|2 \*\* 31|2 \*\* 32|true|new Date\(0\)|new Number.*|.*valueOf.*|NaN)$/.test(x)));

const table = (d) => d.pick(["t", "t", "u", "\"odd name\"", "missing"]);
const column = (d) => d.pick(["a", "b", "rowid", "*", "count(*)", "a + b", "typeof(a)", "a || b", "max(a)", "upper(b)", "json(b)", "missing", "null"]);
const expression = (d) => d.pick(["?", "? / 2", "typeof(?)", "? = ?", "? || 'x'", "cast(? as integer)", "quote(?)", "? + ?", "abs(?)", "length(?)", "hex(?)", "?1 + ?1", ":a", "?2", "json_extract(?, '$.a')", "round(?, 1)", "unhex('4142')", "iif(?, 1, 2)", "group_concat(?)",
  "1e400", "9223372036854775807", "9007199254740993", "x'0102'", "-0.0", "substr(?, 2)", "like('a%', ?)", "glob('*', ?)", "instr(?, 'a')", "printf('%d %s', ?, 1)", "unixepoch(?)", "date('2020-01-01')", "random() is not null", "sqlite_version() is not null", "load_extension('x')"]);
const statement = (d) => d.pick([
  () => `CREATE TABLE ${d.pick(["", "IF NOT EXISTS "])}${table(d)} (a ${d.pick(["", "INTEGER", "TEXT", "REAL", "BLOB", "INTEGER PRIMARY KEY"])}, b${d.pick(["", " UNIQUE", " NOT NULL", " DEFAULT 5", " CHECK (b > 0)"])})${d.pick(["", "", " STRICT", " WITHOUT ROWID"])}`,
  () => `INSERT ${d.pick(["", "OR IGNORE ", "OR REPLACE "])}INTO ${table(d)} VALUES (?, ?)${d.pick(["", " RETURNING *", " ON CONFLICT DO NOTHING"])}`,
  () => `INSERT INTO ${table(d)} (a, b) VALUES (1, 'x'), (2.5, x'00ff')`,
  () => `SELECT ${d.some(3, () => expression(d)).concat(expression(d)).join(", ")}`,
  () => `SELECT ${column(d)}${d.pick(["", ` AS ${d.pick(["a", "n", "\"\""])}`])} FROM ${table(d)}${d.pick(["", " WHERE a = ?", " ORDER BY a DESC", " LIMIT 1", " GROUP BY b"])}`,
  () => `UPDATE ${table(d)} SET a = ${d.pick(["a + 1", "?", "NULL"])}${d.pick(["", " WHERE b = ?"])}`,
  () => `DELETE FROM ${table(d)}`, () => `DROP TABLE ${table(d)}`, () => `CREATE INDEX i ON ${table(d)} (a)`, () => "SELECT 1 AS x, 2 AS x", () => "SELECT 1; SELECT ?", () => "SELECT 1; ; ", () => "", () => ";", () => "-- only this",
  () => `PRAGMA ${d.pick(["table_info(t)", "foreign_keys", "user_version = 3", "journal_mode", "table_list", "case_sensitive_like = 1", "quick_check", "index_list('t')", "optimize", "page_count"])}`,
  () => d.pick(["BEGIN", "COMMIT", "SAVEPOINT s", "VACUUM", "ATTACH ':memory:' AS x", "ANALYZE", "REINDEX", "EXPLAIN SELECT 1", "SELECT * FROM _cf_KV", "SELECT name FROM sqlite_master ORDER BY name", "CREATE TEMP TABLE q (a)", "CREATE VIEW v AS SELECT 1 AS one", "SELECT * FROM v", "CREATE VIRTUAL TABLE f USING fts5(a)", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5) SELECT x FROM c", "SELECT value FROM json_each('[1,2]')", "CREATE TABLE _cf_x (a)", "selec 1", "SELECT 'a", "SELECT 1 FROM (", "VALUES (1, 2), (3, 4)"]),
])();
const binds = (d) => d.some(3, () => d.mostly(() => d.pick(["1", "2.5", "\"x\"", "null", "new Uint8Array([65, 0]).buffer", "-0", "true", "\"{\\\"a\\\":1}\"", "2 ** 53 + 2", "1e21", "0", "\"a\""]), 0.8)).map((x) => `, ${x}`).join("");
const reading = (d, c) => d.pick([`${c}.toArray()`, `[...${c}]`, `${c}.one()`, `[...${c}.raw()]`, `${c}.raw().toArray()`, `${c}.columnNames`, `[${c}].map((c) => [c.next(), c.next(), c.columnNames])[0]`, `[${c}].map((c) => [c.toArray().length, c.rowsWritten, c.next()])[0]`,
  `[${c}].map((c) => [c.raw().next(), c.next(), [...c]])[0]`]);
const exec = (d) => reading(d, `sql.exec(${JSON.stringify(statement(d))}${binds(d)})`);

const inside = {
  storage: [
    ["get()", (d) => `storage.get(${d.pick([key, keys])(d)}${options(d)})`],
    ["put()", (d) => `storage.put(${d.pick([() => `${key(d)}, ${stored(d)}`, () => `{ a: ${stored(d)}, b: 1 }`])()}${options(d)})`],
    ["delete()", (d) => `storage.delete(${d.pick([key, keys])(d)}${options(d)})`],
    ["list()", (d) => `storage.list(${listing(d)})`],
    ["deleteAll()", (d) => `storage.deleteAll(${d.pick(["", "{}", d.hostile()])})`],
    ["setAlarm()", (d) => `storage.setAlarm(${time(d)})`],
    ["getAlarm()", () => "storage.getAlarm()"],
    ["deleteAlarm()", () => "storage.deleteAlarm()"],
    ["transaction()", (d) => `storage.transaction(async (t) => { ${d.pick(["t", "storage"])}.put(${key(d)}, 7); ${d.pick(["", "t.rollback();", "throw new RangeError(\"t\");", "await storage.sync();", "storage.kv.put(\"k\", 1);", "t.rollback(); await t.get(\"a\");"])} return ${d.pick([`await t.get(${key(d)})`, "t.list()", "1", "t"])}; })`],
    ["transactionSync()", (d) => `tried(() => storage.transactionSync(() => { sql.exec("CREATE TABLE IF NOT EXISTS t (a, b)"); storage.kv.put("s", 1); ${d.pick(["", "throw new RangeError(\"t\");", "storage.put(\"a\", 1);", "storage.transactionSync(() => { throw 1; });", "storage.setAlarm(9e12);"])} return ${d.pick([exec(d), "storage.kv.get(\"s\")", "Promise.resolve(2)"])}; }))`],
    ["sync()", () => "storage.sync()"],
    ["kv.get()", (d) => `storage.kv.get(${key(d)})`],
    ["kv.put()", (d) => `storage.kv.put(${key(d)}, ${stored(d)})`],
    ["kv.delete()", (d) => `storage.kv.delete(${key(d)})`],
    ["kv.list()", (d) => `[...storage.kv.list(${listing(d)})]`],
    ["members", () => "[typeof storage.transaction, typeof ctx.id.name, ctx.id.name, typeof ctx.container, ctx.getWebSockets(), ctx.getTags === undefined]"],
    ["blockConcurrencyWhile()", (d) => `ctx.blockConcurrencyWhile(async () => ${d.pick(["1", "storage.get(\"a\")", "storage.put(\"a\", 2)"])})`],
  ],
  sql: [["exec()", (d) => `tried(() => ${exec(d)})`], ["a cursor", (d) => `tried(() => sql.exec(${JSON.stringify(statement(d))}${binds(d)}))`], ["exec() of anything", (d) => `sql.exec(${d.any()}${binds(d)})`]],
};

// --- outside -------------------------------------------------------------------------------------

const method = (d) => d.pick(["echo", "echo", "kind", "count", "target", "both", "adder", "nothing", "own", "visible", "missing", "ctx", "env", "constructor", "toString", "then", "run.x", "visible.a", "fetch.name", "alarm", "Symbol", "__proto__"]);
const argument = (d) => d.pick([() => d.any(), () => stored(d), () => "(x) => x * 2", () => "new Target()", () => "new Target().add", () => "box", () => "new Headers({ a: \"b\" })", () => "new Request(\"http://r/\", { method: \"POST\", body: \"b\" })", () => "new Response(\"r\", { status: 201 })",
  () => "new ReadableStream()", () => "class {}", () => "[new Target(), new Target()]", () => "new (class Own { a = 1; })()", () => "new DOMException(\"d\", \"AbortError\")", () => "new AggregateError([new Error(\"x\")], \"all\")", () => "Object.assign(new TypeError(\"t\"), { code: \"C\", more: { a: 1 } })"])();
const thrown = (d) => d.pick(["new Error(\"plain\")", "new TypeError(\"typed\")", "\"text\"", "5", "null", "undefined", "{ a: 1 }", "new DOMException(\"gone\", \"AbortError\")", "new DOMException(\"late\", \"TimeoutError\")", "new (class Mine extends Error { name = \"Mine\"; })(\"own\")", "Object.assign(new Error(\"m\"), { code: \"E\", retryable: true })", "new Error(\"outer\", { cause: new RangeError(\"inner\") })", "Symbol(\"s\")", "true", "new AggregateError([1], \"many\")"]);
const init = (d) => d.pick(["", "", ", { method: \"POST\", body: \"text\" }", ", { method: \"HEAD\" }", ", { method: \"put\", body: new Uint8Array([65]) }", ", { redirect: \"manual\" }", ", { method: \"POST\", body: \"again\", redirect: \"follow\" }", ", { headers: { \"X-A\": \"b\", cookie: \"c\" } }",
  ", { method: \"POST\", body: new URLSearchParams(\"a=b\") }", ", { method: \"POST\", body: new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode(\"s\")); c.close(); } }) }", ", { body: \"x\" }", `, ${d.hostile()}`]);
const address = (d) => d.pick(["\"http://h/\"", "\"http://h/p?q#f\"", "\"/relative\"", "\"http://h/throw\"", "\"http://h/empty\"", "\"http://h/status\"", ...[301, 302, 303, 307, 308].map((s) => `"http://h/redirect?status=${s}"`), "new URL(\"http://u/\")", "new Request(\"http://r/\", { method: \"POST\", body: \"rb\" })", d.any()]);

const outer = {
  box: [
    ["a call", (d) => `tried(() => box.${method(d)}(${d.some(2, () => argument(d)).join(", ")}))`],
    ["echo()", (d) => `tried(() => box.echo(${argument(d)}))`],
    ["kind()", (d) => `tried(() => box.kind(${argument(d)}))`],
    ["a property", (d) => `tried(async () => { const v = await box.${method(d)}; return [typeof v, v]; })`],
    ["fails()", (d) => `tried(() => box.${d.pick(["fails", "failsLater"])}(${thrown(d)}))`],
    ["target()", (d) => `tried(async () => { ${d.pick(["", "using "])}${"t"} = await box.target(); return [await t.add(${d.pick(["", "2", "\"x\""])}), await t.total, await tried(() => t.own), await t.me().add(5)]; })`.replace("; t =", "; const t =").replace("{ t =", "{ const t =").replace("using t =", "const t =")],
    ["a pipeline", (d) => `tried(() => box.${d.pick(["target().add(3)", "target().me().me().total", "both().target.add(1)", "both().list[1].f(4)", "both().date", "target().missing", "target().missing.x()", "adder(2)(3)", "visible.a", "nothing().x", "nothing().x()", `target().fails(${thrown(d)})`])})`],
    ["calls()", (d) => `tried(() => box.calls(${d.pick(["(x) => x + 1", "async () => \"later\"", "() => { throw new RangeError(\"back\"); }", "() => new Target()", "() => undefined", "5", `(x) => x.toString()`])}, ${argument(d)}))`],
    ["twice()", (d) => `tried(() => box.twice(${d.pick(["(x) => x * 3", "async (x) => { if (x === 2) throw new TypeError(\"second\"); return x; }"])}))`],
    ["holds()", () => "tried(() => box.holds(new Target()))"],
    ["dispose", () => "tried(async () => { const t = await box.target(); t[Symbol.dispose](); return tried(() => t.add(1)); })"],
    ["dup()", () => "tried(async () => { const t = await box.target(); const u = t.dup(); t[Symbol.dispose](); return [await u.add(4), await tried(() => t.add(1))]; })"],
    ["body()", (d) => `tried(async () => new Response(await box.body(${d.some(3, () => d.text()).join(", ")})).text())`],
    ["reads()", (d) => `tried(() => box.reads(${d.pick(["new Response(\"text\").body", "new Blob([\"blob\"]).stream()", "new ReadableStream({ start(c) { c.enqueue(new Uint8Array([66])); c.close(); } })", "new ReadableStream({ pull(c) { c.error(new RangeError(\"half\")); } })", "new ReadableStream({ type: \"bytes\", pull(c) { c.enqueue(new Uint8Array([67])); c.close(); } })"])}))`],
    ["fetch()", (d) => `tried(async () => asked(await box.fetch(${address(d)}${init(d)})))`],
    ["the namespace", (d) => `tried(() => { const id = env.Box.${d.pick(["idFromName(\"n\")", "newUniqueId()", "idFromString(\"00\".repeat(32))", "idFromString(\"x\")", `idFromName(${d.any()})`, `idFromString(${d.any()})`, "idFromName(\"m\", 1)", "newUniqueId({ jurisdiction: \"eu\" })"])}; return [typeof id.toString(), id.name, id.equals(env.Box.idFromName("n")), id.jurisdiction === undefined, env.Box.get(id${d.pick(["", ", { locationHint: \"weur\" }", ", { locationHint: 5 }", ", null", `, { retry: { ${d.pick(["maxRetries", "timeoutMs"])}: ${d.any()} } }`, `, { routingMode: ${d.any()} }`, `, ${d.any()}`])}).name]; })`],
    ["members of a stub", () => "[box.name, typeof box.id.toString(), typeof box.anything, typeof box.fetch, String(box), box instanceof Object, Object.keys(box)]"],
  ],
};

export function program(random) {
  const d = drawFrom(random);
  const isOutside = d.chance(0.5);
  const main = isOutside ? "box" : d.pick(["storage", "storage", "sql"]);
  const calls = Array.from({ length: CALLS }, () => {
    const what = isOutside || d.chance(0.85) ? main : d.pick(["storage", "sql"]);
    const [kind, text] = d.pick((isOutside ? outer : inside)[what]);
    return { kind: `${what}: ${kind}`, text: text(d) };
  });
  calls.isOutside = isOutside;
  return calls;
}

/** What the script has besides: which programs run outside. */
export const more = (programs) => `const outside = ${JSON.stringify(programs.map((p) => p.isOutside))};`;

/** Without the figures and hints that this server's sentences have besides. */
const plain = (text) => text.replace(/ The query has \d+ parameter\(s\) and \d+ were given\./g, "").replace(/(?<=SQLITE_AUTH) \([^"]*\)/g, "");

export const known = [
  { cause: "sentences of errors that say more", reason: "the same error; how many parameters there are, what is not allowed", when: ({ here, there }) => plain(here) === there },
  { cause: "`Headers`, `Request` and `Response` in storage", reason: "refused, as other objects of the Web platform are; the platform takes them without a body", when: ({ text, here }) => here.includes("DataCloneError") && /put\(/.test(text) && /new (Headers|Request|Response)\(/.test(text) },
  { cause: "`PRAGMA page_count`", reason: "allowed", when: ({ text }) => text.includes("PRAGMA page_count") },
  { cause: "mistakes in the arguments of `storage.delete()`", reason: "its promise is rejected, as those of the others are; the platform throws", when: ({ kind, here, there }) => kind === "storage: delete()" && here.replace("rejects", "throws") === there },
  { cause: "`content-type` of a request that a redirect leaves without its body", reason: "goes with the body, as the standard has it", when: ({ kind, text, there }) => kind === "box: fetch()" && text.includes("/redirect") && there.includes("content-type") },
  { cause: "relative addresses of `stub.fetch()`", reason: "taken, as `https://object/`; the platform wants whole ones", when: ({ text, here }) => text.includes('"/relative"') && here.includes("https://object/relative") },
  { cause: "stubs of objects that come back by RPC", reason: "stubs of the object, with `id` and `name`; the platform's are plain ones", when: ({ here, there }) => here.includes("DurableObject") && /Fetcher|Stub/.test(there) },
  { cause: "`remote` of a call that ends in undefined in a pipeline", reason: "absent", when: ({ text, there }) => /nothing\(\)\.x|target\(\)\.missing|adder|visible/.test(text) && there.includes("true, undefined, undefined]") },
  { cause: "lone surrogates", reason: "U+FFFD, as the standard has it; the platform writes three bytes that are no UTF-8", when: ({ there }) => there.includes("\ufffd\ufffd\ufffd") },
  { cause: "addresses of other schemes than HTTP's", reason: "an object is asked all the same; the platform refuses them", when: ({ kind, text, there }) => kind === "box: fetch()" && text.includes("new Error(") && there.includes("TypeError") },
  { cause: "rows that `PRAGMA quick_check` reads", reason: "they do not count", when: ({ text }) => text.includes("PRAGMA quick_check") },
  { cause: "texts of functions", reason: "a script is bundled, as wrangler does it, and its functions are what is left then", when: ({ here, there }) => here !== undefined && here.replace(/\s|\\n/g, "") === there?.replace(/\s|\\n/g, "") },
  { cause: "`load_extension()`", reason: "there is no such function; the platform has it and refuses to run it", when: ({ text }) => text.includes("load_extension") },
  { cause: "jurisdictions", reason: "ids can have one, as on the hosted platform; its local runtime has none", when: ({ text }) => text.includes("jurisdiction: \"eu\"") },
  { cause: "elements of lists in a pipeline", reason: "`stub.method().list[1].call()` goes on; the platform finds no such property", when: ({ text }) => text.includes(".list[1]") },
  { cause: "the name of `stub.fetch`", reason: "empty", when: ({ text }) => text.includes("box.fetch.name") },
];
