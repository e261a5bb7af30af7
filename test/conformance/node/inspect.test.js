import util, { inspect } from "node:util";
import { assertEquals, assertThrows, test } from "../harness.js";

const shows = (name, value, expected, options) => test(`inspect: ${name}`, () => assertEquals(inspect(value, options), expected));

shows("getters are named, and called when asked for", { get a() { return 1; }, set b(v) {} }, "{ a: [Getter], b: [Setter] }");
shows("getters are called when asked for", { get a() { return 1; } }, "{ a: [Getter: 1] }", { getters: true });
shows("a proxy is named, its traps are not called", new Proxy({ a: 1 }, { get() { throw new Error("trap"); } }), "Proxy({ a: 1 })");
shows("a revoked proxy", (() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; })(), "<Revoked Proxy>");
shows("sorted keys", { b: 1, a: 2 }, "{ a: 2, b: 1 }", { sorted: true });
shows("numeric separators", 123456789.123, "123_456_789.123", { numericSeparator: true });
shows("long arrays are grouped", Array.from({ length: 27 }, (_, i) => i), `[\n   0,  1,  2,  3,  4,  5,  6,  7,\n   8,  9, 10, 11, 12, 13, 14, 15,\n  16, 17, 18, 19, 20, 21, 22, 23,\n  24, 25, 26\n]`);
shows("hidden properties", [1], "[ 1, [length]: 1 ]", { showHidden: true });
shows("strings are cut", "abcdef", "'abc'... 3 more characters", { maxStringLength: 3 });

test("format: -0, %s of objects with their own toString, %o", () => {
  assertEquals(util.format("%d %s %i", -0, { toString: () => "own" }, 42.9), "-0 own 42");
  assertEquals(util.format("%%s%s", "x"), "%sx");
});

test("util.promisify keeps a custom function, callbackify counts its callback", () => {
  const custom = () => 1;
  const f = () => {};
  f[util.promisify.custom] = custom;
  assertEquals(util.promisify(f) === custom, true);
  const callbackified = util.callbackify(async function name(a, b) { return a + b; });
  assertEquals([callbackified.name, callbackified.length], ["nameCallbackified", 3]);
});

test("util._extend, parseEnv, stripVTControlCharacters", () => {
  assertEquals(util._extend({ a: 1 }, { b: 2 }), { a: 1, b: 2 });
  assertEquals({ ...util.parseEnv("A=1\n# note\nB='x y' # tail\nC=\"l1\\nl2\"\n") }, { A: "1", B: "x y", C: "l1\nl2" });
  assertEquals(util.stripVTControlCharacters("\u001b[31mred\u001b[39m \u001b]8;;http://x\u0007link\u001b]8;;\u0007"), "red link");
});

test("MIMEType parses, changes and refuses", () => {
  const type = new util.MIMEType("Text/HTML; Charset=\"utf-8\"; q=1");
  assertEquals([type.essence, type.params.get("charset"), type.params.has("q")], ["text/html", "utf-8", true]);
  type.subtype = "plain";
  type.params.delete("q");
  assertEquals(String(type), "text/plain;charset=utf-8");
  assertThrows(TypeError, () => new util.MIMEType("nonsense"));
});

test("the platform's objects are shown by their attributes", () => {
  const blob = new Blob(["four"], { type: "text/css" });
  assertEquals(util.inspect(blob), "Blob { size: 4, type: 'text/css' }");
  assertEquals(util.inspect(new Headers({ x: "1", y: "2" })), "Headers(2) { 'x' => '1', 'y' => '2', [immutable]: false }");
  assertEquals(util.inspect(new URLSearchParams("k=1&k=2")), "URLSearchParams(2) { 'k' => '1', 'k' => '2' }");
  assertEquals(util.inspect(new AbortController().signal), "AbortSignal { aborted: false, reason: undefined, onabort: null }");
  const form = new FormData();
  form.set("text", "t");
  form.set("file", blob, "name.css");
  assertEquals(util.inspect(form, { depth: 0 }), "FormData(2) { 'text' => 't', 'file' => [File] }");
  const lines = util.inspect(new Response("ten bytes.")).split("\n");
  assertEquals(lines.map((line) => line.trim().split(":")[0]).filter((name) => name !== "statusText"), [
    "Response {", "status", "headers", "'content-type' => 'text/plain;charset=UTF-8',", "[immutable]", "},", "ok", "redirected", "url", "webSocket", "cf", "type",
    "body", "locked", "[state]", "[supportsBYOB]", "[length]", "},", "bodyUsed", "}",
  ]);
});

test("inspecting a prototype of the platform does not throw", () => {
  for (const face of [Blob, Headers, Request, Response, ReadableStream, URL, AbortSignal]) {
    assertEquals(typeof util.inspect(face.prototype), "string");
  }
});

test("a promise is shown with what it has settled with", () => {
  const rejected = Promise.reject(new Map([[1, 2]]));
  rejected.catch(() => {});
  class Later extends Promise {}
  assertEquals([Promise.resolve({ a: [1] }), new Promise(() => {}), rejected, Later.resolve("x"), [Promise.resolve()]].map((value) => util.inspect(value)), [
    "Promise { { a: [ 1 ] } }", "Promise { <pending> }", "Promise { <rejected> Map(1) { 1 => 2 } }", "Later [Promise] { 'x' }", "[ Promise { undefined } ]",
  ]);
});
