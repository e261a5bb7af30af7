// fetch(): https://fetch.spec.whatwg.org/#fetch-method
import { test, assert, assertEquals, assertThrows, assertRejects, serverUrl } from "../harness.js";

const network = { needs: "network" };
const at = (path) => serverUrl() + path;
const echo = async (path, init) => (await fetch(at(path), init)).json();
const redirect = (status, to) => at(`/redirect?status=${status}&to=${encodeURIComponent(to)}`);

test("is a function of the global scope", () => {
  assertEquals([typeof fetch, fetch.name], ["function", "fetch"]);
});

test("rejects, never throws, on bad arguments", async () => {
  await assertRejects(TypeError, fetch());
  await assertRejects(TypeError, fetch("/relative"), "Invalid URL: /relative");
  await assertRejects(TypeError, fetch("http://a/", { method: "a b" }));
  await assertRejects(TypeError, fetch("foo:bar"), /Fetch API cannot load/);
});

test("gives status, headers, url and body", async () => {
  const response = await fetch(at("/status?status=404&text=gone&reason=Nope"));
  assert(response instanceof Response);
  assertEquals([response.status, response.statusText, response.ok, response.redirected], [404, "Nope", false, false]);
  assertEquals(response.url, at("/status?status=404&text=gone&reason=Nope"));
  assertEquals(await response.text(), "gone");
  assertEquals(response.bodyUsed, true);
}, network);

test("response headers are immutable, combined, and keep cookies apart", async () => {
  const response = await fetch(at("/headers"));
  assertThrows(TypeError, () => response.headers.set("a", "b"));
  assertEquals(response.headers.get("x-list"), "1, 2");
  assertEquals(response.headers.getSetCookie(), ["a=1", "b=2"]);
  await response.text();
}, network);

test("sends method, headers and bodies of every kind", async () => {
  const got = await echo("/echo?q=1", { method: "put", headers: { "X-A": "b", "content-type": "x/y" }, body: "héllo" });
  assertEquals([got.method, got.path, got.headers["x-a"], got.headers["content-type"], got.body], ["PUT", "/echo?q=1", "b", "x/y", "héllo"]);
  assertEquals(got.headers["content-length"], "6");
  assertEquals((await echo("/echo", { method: "POST", body: new Uint8Array([97, 98]) })).body, "ab");
  assertEquals((await echo("/echo", { method: "POST", body: new Blob(["blob"], { type: "a/b" }) })).headers["content-type"], "a/b");
  assertEquals((await echo("/echo", { method: "POST", body: new URLSearchParams({ a: "1 2" }) })).body, "a=1+2");
  assertEquals((await echo("/echo", { method: "POST" })).headers["content-length"], "0");
  const form = new FormData();
  form.append("k", "v");
  const posted = await echo("/echo", { method: "POST", body: form });
  assert(posted.headers["content-type"].startsWith("multipart/form-data; boundary="));
  assert(posted.body.includes('name="k"'));
}, network);

test("takes a Request, whose body it uses", async () => {
  const request = new Request(at("/echo"), { method: "POST", body: "x", headers: { a: "1" } });
  const got = await (await fetch(request, { headers: { a: "2" } })).json();
  assertEquals([got.method, got.headers.a, got.body], ["POST", "2", "x"]);
  assertEquals(request.bodyUsed, true);
  await assertRejects(TypeError, fetch(request));
}, network);

test("streams a request body", async () => {
  const parts = ["one ", "two ", "three"];
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((r) => setTimeout(r, 1));
      if (parts.length === 0) controller.close();
      else controller.enqueue(new TextEncoder().encode(parts.shift()));
    },
  });
  const got = await echo("/echo", { method: "POST", body, duplex: "half" });
  assertEquals(got.body, "one two three");
  assertEquals(got.headers["transfer-encoding"], "chunked");
}, network);

test("a megabyte goes there and comes back", async () => {
  const bytes = new Uint8Array(1 << 20).map((_, i) => i * 31);
  const response = await fetch(at("/mirror"), { method: "POST", body: bytes });
  const back = await response.bytes();
  assertEquals(back.length, bytes.length);
  assert(back.every((byte, i) => byte === bytes[i]));
}, network);

test("streams a response body, chunk by chunk", async () => {
  const response = await fetch(at("/chunks?n=5&size=1000&ms=1"));
  let size = 0;
  for await (const chunk of response.body) {
    assert(chunk instanceof Uint8Array);
    size += chunk.length;
  }
  assertEquals(size, 5000);
}, network);

test("a large answer can be read slowly, or not to its end", async () => {
  const response = await fetch(at("/chunks?n=100&size=65536&ms=0"));
  const reader = response.body.getReader();
  await reader.read();
  await new Promise((r) => setTimeout(r, 20));
  await reader.read();
  await reader.cancel();
}, network);

for (const coding of ["gzip", "br", "deflate"]) {
  test(`decodes ${coding}`, async () => {
    const response = await fetch(at(`/coded?coding=${coding}`));
    assertEquals(response.headers.get("content-encoding"), coding);
    assertEquals(await response.text(), "coded text ".repeat(100));
  }, coding === "deflate" ? { ...network, differs: { workerd: "workerd decodes gzip and br only" } } : network);
}

test("follows redirects", async () => {
  const response = await fetch(redirect(302, "/echo?there"));
  assertEquals([response.redirected, response.url], [true, at("/echo?there")]);
  assertEquals((await response.json()).method, "GET");
}, network);

test("301, 302 and 303 turn POST into GET and drop the body", async () => {
  for (const status of [301, 302, 303]) {
    const got = await (await fetch(redirect(status, "/echo"), { method: "POST", body: "x" })).json();
    assertEquals([got.method, got.body], ["GET", ""], `status ${status}`);
  }
}, network);

test("headers about the body go with it", async () => {
  const got = await (await fetch(redirect(303, "/echo"), { method: "POST", body: "x" })).json();
  assertEquals(got.headers["content-type"], undefined);
}, { ...network, differs: { workerd: "workerd keeps content-type when a redirect drops the body" } });

test("307 and 308 keep method and body", async () => {
  for (const status of [307, 308]) {
    const got = await (await fetch(redirect(status, "/echo"), { method: "POST", body: "x" })).json();
    assertEquals([got.method, got.body], ["POST", "x"], `status ${status}`);
  }
}, network);

test("a stream cannot be sent twice", async () => {
  const body = new ReadableStream({ start(c) { c.enqueue(new Uint8Array([1])); c.close(); } });
  await assertRejects(TypeError, fetch(redirect(307, "/echo"), { method: "POST", body }), /one-time-use body/);
}, network);

test("authorization does not cross origins", async () => {
  const other = at("/echo").replace("127.0.0.1", "localhost");
  const headers = { authorization: "secret", "x-kept": "1" };
  const got = await (await fetch(redirect(302, other), { headers })).json();
  assertEquals([got.headers.authorization, got.headers["x-kept"]], [undefined, "1"]);
  const same = await (await fetch(redirect(302, "/echo"), { headers })).json();
  assertEquals(same.headers.authorization, "secret");
}, network);

test("redirect: manual gives the redirect itself", async () => {
  const response = await fetch(redirect(302, "/echo"), { redirect: "manual" });
  assertEquals([response.status, response.headers.get("location"), response.redirected], [302, "/echo", false]);
  await response.text();
}, network);

test("redirect: error rejects", async () => {
  await assertRejects(TypeError, fetch(redirect(302, "/echo"), { redirect: "error" }));
}, network);

test("more than 20 redirects are too many", async () => {
  assertEquals(await (await fetch(at("/loop?n=20"))).text(), "end of the loop");
  await assertRejects(TypeError, fetch(at("/loop?n=21")), /Too many redirects/);
}, network);

test("a redirect without location is an answer", async () => {
  const response = await fetch(at("/status?status=302&text=x"));
  assertEquals([response.status, await response.text()], [302, "x"]);
}, network);

test("a signal that is aborted already rejects at once", async () => {
  await assertRejects("AbortError", fetch(at("/echo"), { signal: AbortSignal.abort() }));
  await assertRejects(42, fetch(at("/echo"), { signal: AbortSignal.abort(42) }));
}, network);

test("abort while waiting for the answer", async () => {
  const controller = new AbortController();
  const promise = fetch(at("/never"), { signal: controller.signal });
  setTimeout(() => controller.abort(new Error("enough")), 10);
  const error = await assertRejects(Error, promise);
  assertEquals(error.message, "enough");
  await assertRejects("TimeoutError", fetch(at("/never"), { signal: AbortSignal.timeout(10) }));
}, network);

test("abort while reading the body", async () => {
  const controller = new AbortController();
  const response = await fetch(at("/chunks?n=1000&size=1000&ms=5"), { signal: controller.signal });
  const promise = response.text();
  setTimeout(() => controller.abort(), 20);
  await assertRejects("AbortError", promise);
}, network);

test("204, 304 and HEAD have no body", async () => {
  for (const status of [204, 304]) {
    const response = await fetch(at(`/status?status=${status}`));
    assertEquals([response.status, response.body, await response.text()], [status, null, ""]);
  }
  const response = await fetch(at("/status?status=200&text=abc"), { method: "HEAD" });
  assertEquals([response.status, await response.text()], [200, ""]);
}, network);

test("an answer cut short is an error", async () => {
  const response = await fetch(at("/cut"));
  let error;
  await response.text().catch((e) => (error = e));
  assert(error instanceof Error);
}, network);

test("nobody there is an error", async () => {
  let error;
  await fetch("http://127.0.0.1:1/").catch((e) => (error = e));
  assert(error instanceof Error);
}, network);

test("a clone can be read as well", async () => {
  const response = await fetch(at("/status?status=200&text=twice"));
  const copy = response.clone();
  assertEquals([await response.text(), await copy.text()], ["twice", "twice"]);
}, network);

test("data: URLs", async () => {
  const response = await fetch("data:text/html;charset=utf-8,<b>%C3%A9</b>");
  assertEquals([response.status, response.headers.get("content-type"), await response.text()], [200, "text/html;charset=utf-8", "<b>é</b>"]);
  assertEquals(await (await fetch("data:;base64,aGk=")).text(), "hi");
  await assertRejects(TypeError, fetch("data:nothing"));
});

test("data: the type is written as it was understood", async () => {
  const types = {
    'text/html;a="b"': "text/html;a=b",
    'TEXT/HTML;A="x y";a=2': 'text/html;a="x y"',
    "text/plain;;b=1;c": "text/plain;b=1",
    'image/svg+xml;n="q\\"r"': 'image/svg+xml;n="q\\"r"',
    "nonsense": "text/plain;charset=US-ASCII",
    "": "text/plain;charset=US-ASCII",
    ";charset=utf-8": "text/plain;charset=utf-8",
  };
  for (const [given, expected] of Object.entries(types)) {
    const response = await fetch(`data:${given},x`);
    assertEquals([given, response.headers.get("content-type")], [given, expected]);
  }
});
