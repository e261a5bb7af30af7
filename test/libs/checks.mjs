// The libraries: what each is, what its worker (workers/NAME.js) does, and what must come back.
//
// A check gets `call(path, {method, headers, body})`, which resolves { status, headers, bytes, text,
// json() }. What is expected are constants or follows from what was sent: nothing is asked of the
// library itself outside the server.
import assert from "node:assert/strict";
import zlib from "node:zlib";
import jsQR from "jsqr";

const post = (body, headers) => ({ method: "POST", headers, body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body) });
const same = assert.deepEqual;

export const libraries = [
  {
    name: "hono", kind: "router", packages: ["hono"], does: "parameters, CORS, bearer tokens, cookies, a streamed answer, errors",
    async check(call) {
      same((await call("/books/7?q=x")).json(), { id: 7, q: "x" });
      assert.equal((await call("/books/seven")).status, 404);
      assert.equal((await call("/books/7")).headers["access-control-allow-origin"], "*");
      assert.equal((await call("/admin/name")).status, 401);
      assert.equal((await call("/admin/name", { headers: { authorization: "Bearer secret" } })).text, "root");
      const visit = await call("/visits", { headers: { cookie: "visits=41" } });
      same([visit.text, visit.headers["set-cookie"]], ["42", ["visits=42; Path=/; HttpOnly"]]);
      assert.equal((await call("/stream")).text, "one\ntwo\nthree\n");
      same([(await call("/fail")).status, (await call("/fail")).text], [500, "caught: on purpose"]);
    },
  },
  {
    name: "itty-router", kind: "router", packages: ["itty-router"], does: "a router within a router, JSON bodies, errors",
    async check(call) {
      same((await call("/notes/7?lang=de")).json(), { id: "7", lang: "de" });
      same((await call("/notes/0")).json(), { status: 404, error: "no such note" });
      same((await call("/notes/", post({ title: "milk" }))).json(), { created: "milk" });
      assert.equal((await call("/elsewhere")).status, 404);
    },
  },
  {
    name: "express", kind: "router", onlyCairn: true /* it wants wrangler's bundler elsewhere */, packages: ["express"], does: "on `node:http`: routes, JSON bodies, redirects, a streamed answer, errors",
    async check(call) {
      same((await call("/api/users/5?verbose=1")).json(), { id: "5", verbose: true });
      const made = await call("/api/users", post({ name: "Ann" }, { "content-type": "application/json" }));
      same([made.status, made.headers.location, made.json()], [201, "/api/users/7", { made: "Ann" }]);
      const old = await call("/old");
      same([old.status, old.headers.location], [302, "/api/users/1"]);
      assert.equal((await call("/stream")).text, "one\ntwo\nthree\n");
      same([(await call("/fail")).status, (await call("/fail")).text], [500, "caught: on purpose"]);
      assert.equal((await call("/nowhere")).status, 404);
    },
  },
  {
    name: "zod", kind: "validation", packages: ["zod"], does: "an order checked and coerced, or refused with paths",
    async check(call) {
      const order = { id: "9b2f0d3e-7c1a-4a58-9d51-0f6e8a7b1c2d", email: "a@example.org", placed: "2026-11-15", lines: [{ sku: "AB-1", count: 2 }], shipping: { kind: "post", country: "de" } };
      const good = (await call("/", post(order))).json();
      same([good.placed, good.shipping.country], ["2026-11-15T00:00:00.000Z", "DE"]);
      const bad = await call("/", post({ ...order, email: "a@", lines: [{ sku: "ab", count: 0 }], extra: 1 }));
      same([bad.status, bad.json()], [422, ["email", "lines.0.sku", "lines.0.count", "extra"]]);
    },
  },
  {
    name: "valibot", kind: "validation", packages: ["valibot"], does: "a form with transformations and an asynchronous check",
    async check(call) {
      const form = { "content-type": "application/x-www-form-urlencoded" };
      same((await call("/", post("name=+Ann+&age=30", form))).json(), { name: "Ann", age: 30 });
      same((await call("/", post("name=root&age=7", form))).json(), { name: ["taken"], age: ["too young"] });
    },
  },
  {
    name: "jose", kind: "JWT", packages: ["jose"], does: "HS256, RS256, ES256, EdDSA; key sets; JWE; the example of RFC 7515; forgeries refused",
    async check(call) {
      const signed = (await call("/sign")).json();
      same(Object.keys(signed), ["HS256", "RS256", "ES256", "EdDSA"]);
      for (const result of Object.values(signed)) same(result, { sub: "ann", role: "editor", refused: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" });
      const token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
      same((await call("/verify", post(token))).json(), { iss: "joe", exp: 1300819380, "http://example.com/is_root": true });
      assert.equal((await call("/encrypt")).text, "for your eyes");
    },
  },
  {
    name: "drizzle", kind: "SQL builder", packages: ["drizzle-orm"], objects: { LIBRARY: "Library" }, does: "tables, a join, JSON columns and a transaction undone, in a Durable Object",
    async check(call) {
      same((await call("/")).json(), {
        ids: [1, 2, 3], summary: [{ name: "Le Guin", books: 2 }, { name: "Lem", books: 1 }],
        tags: ["sf", "anarchy"], undone: { error: "changed my mind", left: 3 },
      });
    },
  },
  {
    name: "kysely", kind: "SQL builder", packages: ["kysely"], objects: { SHOP: "Shop" }, does: "schema, inserts and aggregates through a driver on a Durable Object",
    async check(call) {
      same((await call("/")).json(), {
        rows: [{ item: "tea", total: 5.5 }, { item: "cake", total: 4 }],
        text: 'update "sale" set "price" = price * ? where "item" in (?, ?)',
      });
    },
  },
  {
    name: "graphql-yoga", kind: "GraphQL", packages: ["graphql-yoga", "graphql"], does: "queries, variables, a mutation, errors, a subscription as server-sent events",
    async check(call) {
      const ask = (query, variables, accept = "application/json") => call("/graphql", post({ query, variables }, { "content-type": "application/json", accept }));
      same((await ask("query($y: Int) { films(year: $y) { title } }", { y: 1979 })).json(), { data: { films: [{ title: "Stalker" }, { title: "Alien" }] } });
      same((await ask('mutation { addFilm(title: "Ran", year: 1985) { id } }')).json(), { data: { addFilm: { id: "4" } } });
      assert.match((await ask("{ nothing }")).json().errors[0].message, /Cannot query field "nothing"/);
      const events = (await ask("subscription { countdown(from: 2) }", undefined, "text/event-stream")).text;
      same([...events.matchAll(/"countdown":(\d)/g)].map((m) => m[1]), ["2", "1", "0"]);
      assert.match(events, /event: complete/);
    },
  },
  {
    name: "aws-sdk", kind: "S3 client", packages: ["@aws-sdk/client-s3", "@xmldom/xmldom"], does: "put, list, get, ranges and delete; a stand-in checks every signature",
    async check(call) {
      same((await call("/")).json(), {
        keys: [["notes/a b.txt", 19], ["notes/bytes", 3]], text: "hello from a worker", type: "text/plain", part: "from", missing: "NoSuchKey",
      });
    },
  },
  {
    name: "aws4fetch", kind: "S3 client", packages: ["aws4fetch"], does: "signed requests, signed links, a wrong secret refused",
    async check(call) {
      same((await call("/")).json(), { put: 200, got: "figures", eve: 403 });
    },
  },
  {
    name: "openai", kind: "AI client", packages: ["openai"], does: "an answer read as a stream of events, a tool call, errors",
    async check(call) {
      same((await call("/")).json(), { text: "one, two, three \u{1F389}", tool: "count", failed: "NotFoundError 404" });
    },
  },
  {
    name: "marked", kind: "markdown", packages: ["marked"], does: "tables, task lists, code, an own renderer",
    async check(call) {
      const { text } = await call("/", post("# Hi *there*\n\n- [x] done\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n[x](http://e.org) `a<b`\n"));
      assert.match(text, /<h1>Hi <em>there<\/em><\/h1>/);
      assert.match(text, /<li><input checked="" disabled="" type="checkbox"> done<\/li>/);
      assert.match(text, /<td align="center">2<\/td>/);
      assert.match(text, /<a rel="nofollow" href="http:\/\/e.org">x<\/a> <code>a&lt;b<\/code>/);
    },
  },
  {
    name: "luxon", kind: "date", packages: ["luxon"], does: "time zones over a change of clocks, intervals, other languages",
    async check(call) {
      same((await call("/")).json(), {
        offsets: [60, 120], after: "2026-03-29T03:30:00.000+02:00", tokyo: "2026-11-15 14:00", french: "14 juillet 2026",
        days: 28, duration: { days: 1, hours: 12 }, week: "2026-W53-5", invalid: false,
      });
    },
  },
  {
    name: "dayjs", kind: "date", packages: ["dayjs"], does: "own formats, relative time, time zones",
    async check(call) {
      same((await call("/")).json(), { iso: "2026-11-15T05:30:00.000Z", zone: "2026-11-15 00:30 -05:00", ago: "vor 3 Tagen", end: 30 });
    },
  },
  {
    name: "immer", kind: "immutable data", packages: ["immer"], does: "drafts with maps and sets, freezing, patches there and back",
    async check(call) {
      same((await call("/")).json(), {
        before: ["reader"], after: ["reader", "writer"], back: ["reader"], shared: true, same: true,
        patches: ["add log/0", "add users/a/roles/1"], frozen: "TypeError",
      });
    },
  },
  {
    name: "fflate", kind: "zip", packages: ["fflate"], does: "a zip streamed out, a zip read, gzip through `DecompressionStream`",
    async check(call) {
      const zip = await call("/");
      assert.equal(zip.headers["content-type"], "application/zip");
      assert.ok(zip.bytes.length < 1000, `${zip.bytes.length} bytes`);
      same((await call("/list", post(zip.bytes))).json(), [["a.txt", "first file"], ["folder/b.txt", "second ".repeat(5000)]]);
      // The first entry by the format's own layout: name at 30, then deflated data up to its descriptor.
      assert.equal(zip.bytes.readUInt32LE(0), 0x04034b50);
      assert.equal(zlib.inflateRawSync(zip.bytes.subarray(30 + 5)).toString(), "first file");
      assert.equal((await call("/gzip")).text, "squeeze ".repeat(1000));
    },
  },
  {
    name: "papaparse", kind: "parser", packages: ["papaparse"], does: "CSV with quotes and line breaks, both ways",
    async check(call) {
      same((await call("/json", post('name;n\n"a ""b""\nc";1.5\nd;true\n'))).json(), {
        data: [{ name: 'a "b"\nc', n: 1.5 }, { name: "d", n: true }], errors: [], delimiter: ";",
      });
      assert.equal((await call("/csv", post([{ a: "x,y", b: null }, { a: 'q"', b: 2 }]))).text, 'a,b\n"x,y",\n"q""",2');
    },
  },
  {
    name: "acorn", kind: "parser", packages: ["acorn"], does: "the functions of a script, syntax errors with their line",
    async check(call) {
      same((await call("/", post("export function a() {\n  async function* b() {}\n}\nclass C { static { function c() {} } }"))).json(), ["a:1", "b:2", "c:4"]);
      same((await call("/", post("let x;\nlet x;"))).json(), { error: "SyntaxError", line: 2 });
    },
  },
  {
    name: "mustache", kind: "template", packages: ["mustache"], does: "sections, partials, escaping, lambdas",
    async check(call) {
      assert.equal((await call("/", post({ title: "A & B", author: "ann", items: [{ name: "<1>" }, { name: "2", raw: "<b>" }] }))).text,
        "<h1>A &amp; B</h1>\n<li>&lt;1&gt;</li>\n<li>2<b></li>\n\nDONE BY ANN");
      assert.match((await call("/", post({ title: "x", author: "bo", items: [] }))).text, /nothing/);
    },
  },
  {
    name: "uuid", kind: "uuid", packages: ["uuid", "nanoid"], does: "versions 1, 4, 5, 7; alphabets",
    async check(call) {
      same((await call("/")).json(), { versions: [1, 4, 5, 7], named: "cfbff0d1-9375-5685-968c-48ce8b15ae17", ordered: true, unique: 1000, nano: true, digits: true });
    },
  },
  {
    name: "cheerio", kind: "HTML parser", packages: ["cheerio", "parse5"], does: "a page with mistakes read, asked with selectors, changed",
    async check(call) {
      same((await call("/", post("<title>T &amp; U</title><p>x<p><a href=http://e.org/a>1</a><a href=/b>2</a><ul><li>one<li>two<li>three</ul>"))).json(), {
        title: "T & U", links: ["https://e.org/a", "/b"], items: ["one", "three"],
        table: "<table><tbody><tr><td>1</td><td>2<b>x</b></td></tr></tbody></table>",
      });
    },
  },
  {
    name: "xstate", kind: "state machine", packages: ["xstate"], does: "guards, invoked promises, delays, a snapshot saved and resumed",
    async check(call) {
      same((await call("/")).json(), { refused: "cart", value: "done", items: 2, receipt: "receipt for 2" });
    },
  },
  {
    name: "trpc", kind: "RPC", packages: ["@trpc/server", "@trpc/client"], does: "a router behind the fetch adapter, batches from its client, errors",
    async check(call) {
      same((await call("/")).json(), {
        tea: 3, milk: 0, user: "ann", left: 1, conflict: "CONFLICT", invalid: "BAD_REQUEST",
        batches: ["/trpc/stock,stock,whoami", "/trpc/buy", "/trpc/buy", "/trpc/buy"],
      });
      same((await call("/trpc/stock?input=%22tea%22")).json(), { result: { data: 1 } });
    },
  },
  {
    name: "capnweb", since: "2025-08-15", kind: "RPC", packages: ["capnweb"], does: "pipelined calls over a `MessageChannel`, a batch over HTTP, errors",
    async check(call) {
      same((await call("/")).json(), { greeting: "Hello, Ann", square: 144, refused: "RangeError: no such token" });
      // Its protocol by hand: call square(12) on what the server offers, then ask for the result.
      const batch = [["push", ["pipeline", 0, ["square"], [12]]], ["pull", 1]].map((message) => JSON.stringify(message)).join("\n");
      assert.equal((await call("/rpc", post(batch))).text, '["resolve",1,144]');
    },
  },
  {
    name: "ajv", kind: "schema", packages: ["ajv"], does: "a schema compiled at start-up; compiling later refused, as on the platform",
    async check(call) {
      assert.equal((await call("/", post({ name: "ab", tags: ["a", "b"], size: 10 }))).text, "valid");
      same((await call("/", post({ name: "a", tags: ["a", "a"], size: 7, x: 1 }))).json().sort(), [" additionalProperties", "/name minLength", "/size multipleOf", "/tags uniqueItems"]);
      assert.equal((await call("/late")).text, "EvalError");
    },
  },
  {
    name: "i18next", kind: "i18n", packages: ["i18next"], does: "plural forms, a fallback, numbers by locale",
    async check(call) {
      const ask = async (language) => (await call("/", { headers: { "accept-language": language } })).json();
      same(await ask("pl-PL,pl;q=0.9"), { carts: ["1 rzecz", "2 rzeczy", "5 rzeczy (wiele)"], only: "English only", price: "1\u00a0234\u00a0567,5" });
      same(await ask("de"), { carts: ["1 Ding", "2 Dinge", "5 Dinge"], only: "English only", price: "1.234.567,5 Euro" });
    },
  },
  {
    name: "fast-xml-parser", kind: "RSS, XML", packages: ["fast-xml-parser"], does: "a feed read, a feed written, what is not well formed",
    async check(call) {
      const feed = '<?xml version="1.0"?><rss version="2.0"><channel><title>t</title><item><title>One &amp; two</title><enclosure url="/1.mp3" length="10"/></item></channel></rss>';
      same((await call("/json", post(feed))).json(), [{ title: "One & two", audio: "/1.mp3", size: 10 }]);
      assert.match((await call("/", post(feed))).text, /<rss version="2.0">\s*<channel>\s*<title>copy<\/title>\s*<item>\s*<title>One &amp; two<\/title>/);
      same([(await call("/", post("<a><b></a>"))).status, (await call("/", post("<a><b></a>"))).json()], [400, "InvalidTag"]);
    },
  },
  {
    name: "qrcode", kind: "QR", packages: ["qrcode"], does: "a symbol as bits and SVG; another library reads it",
    async check(call) {
      const text = "https://example.org/?q=cairn";
      const { bits, size, version, svg } = (await call(`/?text=${encodeURIComponent(text)}`)).json();
      same([size, version, svg], [29, 3, true]);
      // Four pixels per module and a margin of four modules, as a camera would see it.
      const side = (size + 8) * 4, pixels = new Uint8ClampedArray(side * side * 4).fill(255);
      for (let y = 16; y < side - 16; y++)
        for (let x = 16; x < side - 16; x++)
          if (bits[(y >> 2) - 4][(x >> 2) - 4] === "1") pixels.fill(0, (y * side + x) * 4, (y * side + x) * 4 + 3);
      assert.equal((jsQR.default ?? jsQR)(pixels, side, side)?.data, text);
    },
  },
];
