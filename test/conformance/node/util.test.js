// node:util, node:assert, node:path, node:querystring, node:url, node:string_decoder, node:os
import util from "node:util";
import crypto from "node:crypto";
import assertModule, { AssertionError } from "node:assert";
import strict from "node:assert/strict";
import path from "node:path";
import querystring from "node:querystring";
import url from "node:url";
import { StringDecoder } from "node:string_decoder";
import punycode from "node:punycode";
import { test, assert, assertEquals, assertRejects, assertThrows } from "../harness.js";

test("util: promisify, callbackify, inherits, deprecate, format, inspect", async () => {
  const read = (x, callback) => setTimeout(() => callback(x < 0 ? new RangeError("neg") : null, x * 2), 0);
  assertEquals(await util.promisify(read)(4), 8);
  await assertRejects(RangeError, util.promisify(read)(-1));
  assertEquals(await new Promise((r) => util.callbackify(async (x) => x + 1)(1, (e, v) => r([e, v]))), [null, 2]);
  function A() {} function B() {}
  util.inherits(A, B);
  assert(new A() instanceof B && A.super_ === B);
  assertEquals(util.format("%s %d %j %%", "a", 1.5, { x: 1 }, "more"), 'a 1.5 {"x":1} % more');
  assertEquals(util.inspect({ a: [1, "x"], b: new Map([[1, 2]]) }), "{ a: [ 1, 'x' ], b: Map(1) { 1 => 2 } }");
  assertEquals(util.deprecate((x) => x, "old")(3), 3);
  assertEquals(util.stripVTControlCharacters("\u001b[31mred\u001b[0m"), "red");
});

test("util: types and isDeepStrictEqual", () => {
  assertEquals([util.types.isDate(new Date()), util.types.isDate({}), util.types.isMap(new Map()), util.types.isPromise(Promise.resolve()), util.types.isUint8Array(new Uint8Array())], [true, false, true, true, true]);
  assertEquals([util.types.isBoxedPrimitive(Object(1)), util.types.isNativeError(new TypeError()), util.types.isTypedArray(new DataView(new ArrayBuffer(1))), util.types.isRegExp(/x/)], [true, true, false, true]);
  assertEquals([util.isDeepStrictEqual({ a: [1, new Set([{ b: 1 }])] }, { a: [1, new Set([{ b: 1 }])] }), util.isDeepStrictEqual([1], ["1"])], [true, false]);
});

test("util.parseArgs", () => {
  const { values, positionals } = util.parseArgs({ args: ["-v", "--name=x", "--tag", "a", "--tag", "b", "file"], options: { v: { type: "boolean", short: "v" }, name: { type: "string" }, tag: { type: "string", multiple: true } }, allowPositionals: true });
  assertEquals([{ ...values }, positionals], [{ v: true, name: "x", tag: ["a", "b"] }, ["file"]]);
}, { differs: { workerd: "not implemented there" } });

test("util.MIMEType", () => {
  const mime = new util.MIMEType('text/HTML; charset="utf-8"');
  assertEquals([mime.essence, mime.params.get("charset")], ["text/html", "utf-8"]);
});

test("assert", async () => {
  strict.deepEqual({ a: new Map([[1, [2]]]) }, { a: new Map([[1, [2]]]) });
  for (const fn of [() => strict.equal(1, "1"), () => assertModule.ok(0), () => strict.deepEqual({ a: 1 }, { a: 1, b: 2 }), () => assertModule.strictEqual(NaN, 0), () => assertModule.throws(() => {}), () => assertModule.match("a", /b/), () => assertModule.notDeepStrictEqual([1], [1]), () => assertModule.fail("x"), () => assertModule.ifError(new Error("e"))]) {
    assert((() => { try { fn(); } catch (e) { return e instanceof AssertionError && e.code === "ERR_ASSERTION"; } return false; })(), String(fn));
  }
  assertModule.throws(() => { throw new TypeError("bad thing"); }, TypeError);
  assertModule.throws(() => { throw new TypeError("bad thing"); }, /bad/);
  assertModule.throws(() => { throw Object.assign(new Error("m"), { code: "E" }); }, { message: "m", code: "E" });
  await assertModule.rejects(Promise.reject(new RangeError("r")), RangeError);
  await assertModule.doesNotReject(Promise.resolve());
});

test("assert throws the error that it is given", () => {
  assertThrows(RangeError, () => assertModule(false, new RangeError("mine")));
}, { differs: { workerd: "wraps it, unlike Node.js" } });

test("assert.deepEqual and equal compare strictly, as on the platform", () => {
  for (const [name, a, b] of [["deepEqual", [1], ["1"]], ["equal", 1, "1"]]) {
    let thrown = null;
    try {
      assertModule[name](a, b);
    } catch (error) {
      thrown = error;
    }
    assertEquals(thrown?.code, "ERR_ASSERTION");
  }
});

test("path", () => {
  assertEquals([path.join("/a", "../b", "./c"), path.resolve("/x", "y", "..", "z"), path.basename("/a/b.txt", ".txt"), path.extname("a.b.c"), path.relative("/a/b", "/a/c/d"), path.normalize("/a//b/../c/")], ["/b/c", "/x/z", "b", ".c", "../c/d", "/a/c/"]);
  assertEquals({ ...path.parse("/home/u/f.txt") }, { root: "/", dir: "/home/u", base: "f.txt", ext: ".txt", name: "f" });
  assertEquals([path.sep, path.posix.join("a", "b"), path.isAbsolute("/x"), path.dirname("/a/b")], ["/", "a/b", true, "/a"]);
});

test("querystring", () => {
  assertEquals({ ...querystring.parse("a=1&b=x%20y&a=2&c=+&d=%zz") }, { a: ["1", "2"], b: "x y", c: " ", d: "%zz" });
  assertEquals(querystring.stringify({ a: [1, 2], b: "x y&", c: true, d: null }), "a=1&a=2&b=x%20y%26&c=true&d=");
  assertEquals({ ...querystring.parse("a:1;b:2", ";", ":") }, { a: "1", b: "2" });
});

test("url", () => {
  const parsed = url.parse("http://user:pw@Host.com:8080/p/a?x=1#h", true);
  assertEquals([parsed.protocol, parsed.auth, parsed.host, parsed.port, parsed.pathname, parsed.query.x, parsed.hash], ["http:", "user:pw", "host.com:8080", "8080", "/p/a", "1", "#h"]);
  assertEquals([url.resolve("/one/two/three", "four"), url.resolve("http://a.com/b", "/c")], ["/one/two/four", "http://a.com/c"]);
  assertEquals(url.format({ protocol: "https", hostname: "x.y", pathname: "/p", query: { a: 1 } }), "https://x.y/p?a=1");
  assertEquals([url.fileURLToPath("file:///a%20b"), url.pathToFileURL("/a b#c").href], ["/a b", "file:///a%20b%23c"]);
  assertEquals([url.domainToASCII("español.com"), url.domainToUnicode("xn--espaol-zwa.com")], ["xn--espaol-zwa.com", "español.com"]);
  assert(url.URL === URL && url.urlToHttpOptions(new URL("http://a:b@c/d?e")).path === "/d?e");
});

test("string_decoder and punycode", () => {
  const decoder = new StringDecoder("utf8");
  assertEquals(decoder.write(new Uint8Array([0xe2, 0x82])) + decoder.write(new Uint8Array([0xac])) + decoder.end(), "€");
  const base64 = new StringDecoder("base64");
  assertEquals(base64.write(new Uint8Array([1])) + base64.write(new Uint8Array([2, 3, 4])) + base64.end(), "AQIDBA==");
  assertEquals([punycode.encode("mañana"), punycode.toASCII("mañana.com")], ["maana-pta", "xn--maana-pta.com"]);
});

test("util.types.isKeyObject knows keys by what they are", () => {
  assert(util.types.isKeyObject(crypto.createSecretKey("secret", "utf8")));
  class KeyObject {}
  for (const value of [new KeyObject(), null, undefined, 1, crypto.KeyObject]) assert(!util.types.isKeyObject(value));
});

test("util.styleText wants a stream where one is given", () => {
  assertThrows(TypeError, () => util.styleText("red", "x", { stream: {} }));
  assertEquals(util.styleText("red", "x", { stream: {}, validateStream: false }), "\x1b[31mx\x1b[39m");
});

test("promises are compared by their own properties", () => {
  assert(util.isDeepStrictEqual(Promise.resolve(1), Promise.resolve(2)));
  assert(!util.isDeepStrictEqual(Object.assign(Promise.resolve(1), { a: 1 }), Promise.resolve(1)));
});

test("path.win32.basename of a drive with a suffix", () => {
  assertEquals([path.win32.basename("C:", ".d"), path.win32.basename("C:"), path.win32.basename("C:a.d", ".d")], ["", "", "a"]);
});

test("hashes take texts and views, no ArrayBuffer", () => {
  assertThrows(TypeError, () => crypto.createHash("sha1").update(new ArrayBuffer(2)));
  assertThrows(TypeError, () => crypto.createHmac("sha1", "k").update(new ArrayBuffer(2)));
  assertEquals(crypto.createHash("sha1").update(new DataView(new ArrayBuffer(2))).digest("hex"), "1489f923c4dca729178b3e3233458550d8dddf29");
});
