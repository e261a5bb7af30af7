// Request: https://fetch.spec.whatwg.org/#request-class
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("Request", {
    length: 1,
    methods: { clone: 0 },
    getters: ["method", "url", "headers", "redirect", "fetcher", "signal", "cf", "integrity", "keepalive", "cache"],
  });
  assertEquals(String(new Request("http://a/")), "[object Request]");
});

test("defaults", () => {
  const r = new Request("http://example.com");
  assertEquals([r.method, r.url, r.redirect, r.body, r.bodyUsed], ["GET", "http://example.com/", "follow", null, false]);
  assertEquals([r.cf, r.fetcher, r.cache, r.integrity, r.keepalive], [undefined, null, undefined, "", false]);
  assertEquals([...r.headers], []);
  assert(r.headers === r.headers && r.signal === r.signal);
  assert(r.signal instanceof AbortSignal && !r.signal.aborted);
});

test("takes strings, URLs, objects that become strings", () => {
  assertEquals(new Request("http://a/b c?d#e").url, "http://a/b%20c?d#e");
  assertEquals(new Request(new URL("http://a/?q")).url, "http://a/?q");
  assertEquals(new Request({ toString: () => "http://b/" }).url, "http://b/");
  assertThrows(TypeError, () => new Request("/relative"), "Invalid URL: /relative");
  assertThrows(TypeError, () => new Request());
});

test("methods are upper-cased and checked", () => {
  for (const method of ["get", "Post", "patch", "DELETE", "options", "head", "put"]) {
    assertEquals(new Request("http://a/", { method }).method, method.toUpperCase());
  }
  for (const method of ["", "a b", "FOO", "CONNECT"]) {
    assertThrows(TypeError, () => new Request("http://a/", { method }), `Invalid HTTP method string: ${method}`);
  }
});

test("GET and HEAD have no body", () => {
  for (const method of ["GET", "HEAD"]) {
    assertThrows(TypeError, () => new Request("http://a/", { method, body: "" }), "Request with a GET or HEAD method cannot have a body.");
    new Request("http://a/", { method, body: null });
  }
});

test("bodies set the content type", async () => {
  const r = new Request("http://a/", { method: "POST", body: "x" });
  assertEquals(r.headers.get("content-type"), "text/plain;charset=UTF-8");
  assertEquals(await r.text(), "x");
  const given = new Request("http://a/", { method: "POST", body: "x", headers: { "content-type": "a/b" } });
  assertEquals(given.headers.get("content-type"), "a/b");
});

test("refuses bad options", () => {
  assertThrows(TypeError, () => new Request("http://a/", 1));
  assertThrows(TypeError, () => new Request("http://a/", { headers: 1 }));
  assertThrows(TypeError, () => new Request("http://a/", { signal: 1 }));
  assertThrows(TypeError, () => new Request("http://a/", { cf: 1 }));
  assertThrows(TypeError, () => new Request("http://a/", { redirect: "x" }));
  assertThrows(TypeError, () => new Request("http://a/", { cache: "x" }), "Unsupported cache mode: x");
  assertThrows(TypeError, () => new Request("http://a/", { integrity: "sha256-x" }));
  assertEquals(new Request("http://a/", null).url, "http://a/");
});

test("keeps redirect, cf, cache and signal", () => {
  const { signal } = new AbortController();
  const r = new Request("http://a/", { redirect: "manual", cf: { a: 1 }, cache: "no-store", signal });
  assertEquals([r.redirect, r.cf, r.cache, r.signal === signal], ["manual", { a: 1 }, "no-store", true]);
  assertEquals(new Request(r).redirect, "manual");
  assert(new Request("http://a/", { signal: null }).signal instanceof AbortSignal);
});

test("redirect: error is accepted", () => {
  assertEquals(new Request("http://a/", { redirect: "error" }).redirect, "error");
}, { differs: { workerd: "workerd refuses the mode \"error\"" } });

test("a Request made from another one takes its body", async () => {
  const a = new Request("http://a/", { method: "POST", body: "x", headers: { h: "1" } });
  const b = new Request(a);
  assertEquals([a.bodyUsed, b.bodyUsed, b.method, b.headers.get("h")], [true, false, "POST", "1"]);
  b.headers.set("h", "2");
  assertEquals([a.headers.get("h"), await b.text()], ["1", "x"]);
  assertThrows(TypeError, () => new Request(a), "Cannot reconstruct a Request with a used body.");
});

test("a body in the init leaves the other one's alone", async () => {
  const a = new Request("http://a/", { method: "POST", body: "x" });
  const b = new Request(a, { body: "y" });
  assertEquals([a.bodyUsed, await b.text(), await a.text()], [false, "y", "x"]);
});

test("headers in the init replace all", () => {
  const a = new Request("http://a/", { headers: { a: "1", b: "2" } });
  assertEquals([...new Request(a, { headers: { c: "3" } }).headers], [["c", "3"]]);
});

test("a Request as init", () => {
  const a = new Request("http://a/", { method: "DELETE", headers: { a: "1" } });
  const b = new Request("http://b/", a);
  assertEquals([b.url, b.method, b.headers.get("a")], ["http://b/", "DELETE", "1"]);
});

test("clone()", async () => {
  const a = new Request("http://a/", { method: "POST", body: "x", headers: { h: "1" } });
  const b = a.clone();
  b.headers.set("h", "2");
  assertEquals([a.headers.get("h"), b.method, await a.text(), await b.text()], ["1", "POST", "x", "x"]);
  assertThrows(TypeError, () => a.clone());
});

test("can be subclassed", () => {
  class Mine extends Request {}
  const r = new Mine("http://a/", { method: "PUT" });
  assert(r instanceof Mine && r instanceof Request);
  assertEquals(r.method, "PUT");
});

test("attributes refuse other receivers", () => {
  assertThrows(TypeError, () => Object.getOwnPropertyDescriptor(Request.prototype, "url").get.call({}), /^Illegal invocation/);
  assertThrows(TypeError, () => Request.prototype.clone.call(new Response()), /^Illegal invocation/);
});

test("a body is not left behind by a method that has none", async () => {
  const withBody = () => new Request("http://a/", { method: "POST", body: "b" });
  for (const method of ["GET", "HEAD"]) assertThrows(TypeError, () => new Request(withBody(), { method }));
  assertEquals(new Request(withBody(), { method: "GET", body: null }).body, null);
  assertEquals(await new Request(withBody(), { method: "PUT" }).text(), "b");
});
