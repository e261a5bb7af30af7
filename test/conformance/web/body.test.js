// The Body mixin, on Response: https://fetch.spec.whatwg.org/#body-mixin
import { test, assert, assertEquals, assertThrows, assertRejects } from "../harness.js";

const bytes = (text) => new TextEncoder().encode(text);
const streamOf = (...chunks) => new ReadableStream({
  start(controller) {
    for (const chunk of chunks) controller.enqueue(chunk);
    controller.close();
  },
});
const kinds = {
  string: () => "héllo",
  Uint8Array: () => bytes("héllo"),
  ArrayBuffer: () => bytes("héllo").buffer,
  DataView: () => new DataView(bytes("héllo").buffer),
  "a view with an offset": () => bytes("xxhéllo").subarray(2),
  Blob: () => new Blob(["hé", bytes("llo")]),
  stream: () => streamOf(bytes("hé"), bytes("llo")),
};

for (const [kind, make] of Object.entries(kinds)) {
  test(`a body of kind ${kind} can be read in every way`, async () => {
    assertEquals(await new Response(make()).text(), "héllo");
    assertEquals(new Uint8Array(await new Response(make()).arrayBuffer()), bytes("héllo"));
    assertEquals(await new Response(make()).bytes(), bytes("héllo"));
    assertEquals(await (await new Response(make()).blob()).text(), "héllo");
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of new Response(make()).body) text += decoder.decode(chunk, { stream: true });
    assertEquals(text, "héllo");
  });
}

test("json()", async () => {
  assertEquals(await new Response('{"a":[1,2]}').json(), { a: [1, 2] });
  assertEquals(await new Response(bytes("\ufeff1")).json(), 1);
  await assertRejects(SyntaxError, new Response("{").json());
  await assertRejects(SyntaxError, new Response("").json());
  await assertRejects(SyntaxError, new Response(null).json());
});

test("text() drops a byte order mark and replaces mistakes", async () => {
  assertEquals(await new Response("\ufeffx").text(), "x");
  assertEquals(await new Response(new Uint8Array([0x61, 0xff, 0xc3])).text(), "a\ufffd\ufffd");
});

test("a lone surrogate is replaced", async () => {
  assertEquals(await new Response("\ud800").text(), "\ufffd");
}, { differs: { workerd: "workerd encodes a lone surrogate as three bytes, each replaced when read" } });

test("a buffer is copied", async () => {
  const data = bytes("abc");
  const r = new Response(data);
  data[0] = 120;
  assertEquals(await r.text(), "abc");
});

test("what is read does not change the original", async () => {
  const r = new Response("abc");
  const c = r.clone();
  new Uint8Array(await r.arrayBuffer())[0] = 120;
  assertEquals(await c.text(), "abc");
});

test("no body: empty, and never used", async () => {
  const r = new Response(null);
  assertEquals([await r.text(), await r.text(), r.bodyUsed, r.body], ["", "", false, null]);
  assertEquals((await new Response().arrayBuffer()).byteLength, 0);
});

test("an empty string is a body", async () => {
  const r = new Response("");
  assert(r.body instanceof ReadableStream);
  assertEquals(await r.text(), "");
  assertEquals(r.bodyUsed, true);
});

test("a body can be read once", async () => {
  const r = new Response("x");
  assertEquals(r.bodyUsed, false);
  const promise = r.text();
  assertEquals(r.bodyUsed, true);
  await promise;
  for (const name of ["text", "json", "arrayBuffer", "bytes", "blob"]) {
    await assertRejects(TypeError, r[name](), /Body has already been used/);
  }
  assert(r.body.locked);
});

test("a locked body cannot be read, and is not used", async () => {
  const r = new Response("x");
  const reader = r.body.getReader();
  assertEquals(r.bodyUsed, false);
  await assertRejects(TypeError, r.text(), /locked/);
  reader.releaseLock();
  assertEquals(await r.text(), "x");
});

test("reading the stream uses the body", async () => {
  const r = new Response("xyz");
  assert(r.body === r.body);
  const { value } = await r.body.getReader().read();
  assertEquals([value, r.bodyUsed], [bytes("xyz"), true]);
});

test("body is a byte stream", async () => {
  const reader = new Response("abcdef").body.getReader({ mode: "byob" });
  const { value } = await reader.read(new Uint8Array(4));
  assertEquals(value, bytes("abcd"));
  assertEquals((await reader.read(new Uint8Array(4))).value, bytes("ef"));
  assertEquals((await reader.read(new Uint8Array(4))).done, true);
});

test("a used or locked stream cannot be a body", async () => {
  const used = streamOf(bytes("a"));
  const reader = used.getReader();
  await reader.read();
  reader.releaseLock();
  assertThrows(TypeError, () => new Response(used), /disturbed/);
  const locked = streamOf();
  locked.getReader();
  assertThrows(TypeError, () => new Response(locked), /locked/);
});

test("a stream must give bytes", async () => {
  await assertRejects(TypeError, new Response(streamOf("text")).text(), /did not return bytes/);
  await assertRejects(TypeError, new Response(streamOf(1)).arrayBuffer(), /did not return bytes/);
});

test("an error of the stream is the reader's", async () => {
  const error = new Error("broken");
  const stream = new ReadableStream({ pull(c) { c.error(error); } });
  await assertRejects(error, new Response(stream).text());
});

test("iterables of bytes are bodies", async () => {
  async function* parts() {
    yield bytes("a");
    yield bytes("b");
  }
  assertEquals(await new Response(parts()).text(), "ab");
  assertEquals(await new Response([bytes("c"), bytes("d")]).text(), "cd");
});

test("other objects become strings", async () => {
  assertEquals(await new Response({}).text(), "[object Object]");
  assertEquals(await new Response(12.5).text(), "12.5");
  assertEquals(await new Response(new URL("http://a/")).text(), "http://a/");
});

test("blob() has the content type", async () => {
  const type = async (value) => (await new Response("x", { headers: { "content-type": value } }).blob()).type;
  assertEquals(await type("a/b"), "a/b");
  assertEquals(await type("Text/Plain; a=B"), "text/plain;a=B");
  assertEquals((await new Response(new Uint8Array(1)).blob()).type, "");
});

test("formData() of urlencoded", async () => {
  const r = new Response("a=1&b=%20x&a=2+3", { headers: { "content-type": "application/x-www-form-urlencoded;charset=utf-8" } });
  assertEquals([...(await r.formData())], [["a", "1"], ["b", " x"], ["a", "2 3"]]);
});

test("formData() needs a type it knows", async () => {
  await assertRejects(TypeError, new Response("x").formData(), /^Unrecognized Content-Type header value/);
  await assertRejects(TypeError, new Response(new Uint8Array(1)).formData());
});

test("the type of blob() is written as it was understood", async () => {
  const typeOf = async (type) => (await new Response("", { headers: { "content-type": type } }).blob()).type;
  assertEquals(await typeOf('Text/HTML; A="b"; c="d e"'), 'text/html;a=b;c="d e"');
  assertEquals(await typeOf("text/plain;;x"), "text/plain");
});

test("a body that was read to its end stays locked", async () => {
  const stream = () => new ReadableStream({ start(c) { c.enqueue(new Uint8Array([120])); c.close(); } });
  for (const response of [new Response("x"), new Response(new Uint8Array(2)), new Response(stream()), new Response(new Blob(["x"]))]) {
    const { body } = response; // made before
    await response.text();
    assertEquals([response.bodyUsed, response.body.locked, body === response.body], [true, true, true]);
    assertThrows(TypeError, () => body.getReader());
    await assertRejects(TypeError, body.cancel());
  }
});
