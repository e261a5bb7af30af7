// Response: https://fetch.spec.whatwg.org/#response-class
import { test, assert, assertEquals, assertThrows, assertRejects, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("Response", {
    methods: { clone: 0 },
    getters: ["status", "statusText", "headers", "ok", "redirected", "url", "webSocket", "cf", "type"],
    statics: { error: 0, json: 1, redirect: 1 },
  });
  for (const name of ["text", "json", "arrayBuffer", "bytes", "blob", "formData"]) assertEquals(typeof Response.prototype[name], "function");
  assertEquals(String(new Response()), "[object Response]");
});

test("defaults", () => {
  const r = new Response();
  assertEquals([r.status, r.statusText, r.ok, r.type, r.url, r.redirected, r.body, r.bodyUsed], [200, "", true, "default", "", false, null, false]);
  assertEquals([r.webSocket, r.cf], [null, undefined]);
  assertEquals([...r.headers], []);
  assert(r.headers === r.headers);
});

test("a script gives statusText, or there is none", () => {
  const texts = [new Response(null, { status: 404 }), Response.json(1), Response.redirect("http://a/"), new Response("").clone(), new Response("", new Response("", { status: 404 }))];
  assertEquals(texts.map((r) => r.statusText), ["", "", "", "", ""]);
});

test("takes status, statusText and headers", () => {
  const r = new Response(null, { status: 404, statusText: "Nope", headers: { A: "b" } });
  assertEquals([r.status, r.statusText, r.ok, r.headers.get("a")], [404, "Nope", false, "b"]);
  assertEquals(new Response("", { status: "201" }).status, 201);
  assertEquals(new Response("", { headers: new Headers([["a", "1"], ["a", "2"]]) }).headers.get("a"), "1, 2");
  assertEquals(new Response("", { headers: [["x", "y"]] }).headers.get("x"), "y");
  assertEquals(new Response("", null).status, 200);
});

test("another Response can be the init", () => {
  const r = new Response("new", new Response("old", { status: 418, statusText: "Tea", headers: { a: "1" }, cf: { x: 1 } }));
  assertEquals([r.status, r.statusText, r.headers.get("a")], [418, "Tea", "1"]);
  r.headers.set("a", "2");
  const redirect = Response.redirect("https://example.com/");
  new Response(null, redirect).headers.set("a", "b"); // the copy may be changed
});

test("refuses bad statuses", () => {
  for (const status of [0, 99, 101, 199, 600, 1000, "x"]) {
    assertThrows(RangeError, () => new Response("", { status }), "Responses may only be constructed with status codes in the range 200 to 599, inclusive.");
  }
});

test("refuses a body for null body statuses", () => {
  for (const status of [204, 205, 304]) {
    assertThrows(TypeError, () => new Response("x", { status }), "Response with null body status (101, 204, 205, or 304) cannot have a body.");
    assertEquals(new Response(null, { status }).body, null);
    assertEquals(new Response(undefined, { status }).status, status);
    assertEquals(new Response("", { status }).body, null); // as the platform has it
  }
});

test("a status is not cut to 16 bits", () => {
  for (const status of [65736, 65536 + 404, -65336, NaN, "x"]) assertThrows(RangeError, () => new Response("", { status }));
});

test("refuses bad statusText, headers and init", () => {
  assertThrows(TypeError, () => new Response("", { statusText: "a\nb" }));
  assertThrows(TypeError, () => new Response("", { headers: 1 }));
  assertThrows(TypeError, () => new Response("", { headers: null }));
  assertThrows(TypeError, () => new Response("", 1));
  assertThrows(TypeError, () => new Response("", { webSocket: 1 }));
  assertThrows(TypeError, () => new Response("", { encodeBody: "sometimes" }));
  new Response("", { encodeBody: "manual" });
  new Response("", { encodeBody: "automatic" });
});

test("keeps cf", () => {
  assertEquals(new Response("", { cf: { a: 1 } }).cf, { a: 1 });
});

test("content types follow the body", () => {
  const type = (body) => new Response(body).headers.get("content-type");
  assertEquals(type("x"), "text/plain;charset=UTF-8");
  assertEquals(type(123), "text/plain;charset=UTF-8");
  assertEquals(type(new URLSearchParams("a=1")), "application/x-www-form-urlencoded;charset=UTF-8");
  assertEquals(type(new Blob(["x"], { type: "a/b" })), "a/b");
  assertEquals(type(new Blob(["x"])), null);
  assertEquals(type(new Uint8Array(1)), null);
  assertEquals(type(new ReadableStream()), null);
  assert(/^multipart\/form-data; boundary=\S+$/.test(type(new FormData())));
  assertEquals(new Response("x", { headers: { "Content-Type": "y/z" } }).headers.get("content-type"), "y/z");
});

test("Response.json()", async () => {
  const r = Response.json({ a: [1, null] }, { status: 201, headers: { x: "y" } });
  assertEquals([r.status, r.headers.get("content-type"), r.headers.get("x")], [201, "application/json", "y"]);
  assertEquals(await r.text(), '{"a":[1,null]}');
  assertEquals(Response.json(1).headers.get("content-type"), "application/json");
  assertEquals(Response.json(1, { headers: { "content-type": "a/b" } }).headers.get("content-type"), "a/b");
  const circular = {};
  circular.self = circular;
  assertThrows(TypeError, () => Response.json(circular));
  assertThrows(TypeError, () => Response.json(1n));
});

test("Response.redirect()", () => {
  const r = Response.redirect("https://example.com/a b#c");
  assertEquals([r.status, r.headers.get("location"), r.body], [302, "https://example.com/a%20b#c", null]);
  for (const status of [301, 302, 303, 307, 308]) assertEquals(Response.redirect("https://a/", status).status, status);
  assertThrows(RangeError, () => Response.redirect("https://a/", 200));
  assertThrows(TypeError, () => Response.redirect("/relative"), "Unable to parse URL: /relative");
});

test("Response.error()", () => {
  const r = Response.error();
  assertEquals([r.status, r.type, r.ok, r.body], [0, "error", false, null]);
});

test("clone() copies everything, and both can be read", async () => {
  const r = new Response("text", { status: 404, statusText: "No", headers: { a: "1" } });
  const c = r.clone();
  c.headers.set("a", "2");
  assertEquals([c.status, c.statusText, r.headers.get("a")], [404, "No", "1"]);
  assertEquals([await r.text(), await c.text()], ["text", "text"]);
});

test("clone() of a stream tees it", async () => {
  const stream = new ReadableStream({ start(c) { c.enqueue(new Uint8Array([104, 105])); c.close(); } });
  const r = new Response(stream);
  const c = r.clone();
  assertEquals([await c.text(), await r.text()], ["hi", "hi"]);
});

test("clone() of a used or locked body throws", async () => {
  const used = new Response("x");
  await used.text();
  assertThrows(TypeError, () => used.clone());
  const locked = new Response("x");
  locked.body.getReader();
  assertThrows(TypeError, () => locked.clone());
});

test("can be subclassed", async () => {
  class Mine extends Response {
    get mine() {
      return 1;
    }
  }
  const r = new Mine("x", { status: 202 });
  assert(r instanceof Response && r instanceof Mine);
  assertEquals([r.mine, r.status, await r.text()], [1, 202, "x"]);
});

test("methods and attributes refuse other receivers", async () => {
  assertThrows(TypeError, () => Object.getOwnPropertyDescriptor(Response.prototype, "status").get.call({}), /^Illegal invocation/);
  assertThrows(TypeError, () => Response.prototype.clone.call(new Request("http://a/")), /^Illegal invocation/);
  await assertRejects(TypeError, () => Response.prototype.text.call({}), /^Illegal invocation/);
});
