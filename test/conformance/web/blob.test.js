// Blob: https://w3c.github.io/FileAPI/#blob-section
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("Blob", {
    methods: { slice: 0, arrayBuffer: 0, bytes: 0, text: 0, stream: 0 },
    getters: ["size", "type"],
  });
});

test("is made of strings, buffers, views and blobs", async () => {
  const blob = new Blob(["a", new Uint8Array([98]), new Uint8Array([99]).buffer, new Blob(["d"]), 1, {}, "é"]);
  assertEquals(await blob.text(), "abcd1[object Object]é");
  assertEquals(blob.size, 22);
  assertEquals(new Blob().size, 0);
  assertEquals(new Blob(undefined).size, 0);
});

test("refuses what is no sequence", () => {
  for (const parts of ["x", 1, {}, null]) assertThrows(TypeError, () => new Blob(parts));
});

test("type is lower-cased ASCII, or nothing", () => {
  assertEquals(new Blob([], { type: "A/B;c=D" }).type, "a/b;c=d");
  assertEquals(new Blob([], { type: "é" }).type, "");
  assertEquals(new Blob([]).type, "");
  assertEquals(new Blob([], null).type, "");
});

test("slice()", async () => {
  const blob = new Blob(["abcdef"], { type: "a/b" });
  const cut = async (...args) => await blob.slice(...args).text();
  assertEquals(await cut(), "abcdef");
  assertEquals(await cut(2), "cdef");
  assertEquals(await cut(1, 3), "bc");
  assertEquals(await cut(-2), "ef");
  assertEquals(await cut(-3, -1), "de");
  assertEquals(await cut(4, 2), "");
  assertEquals(await cut(0, 100), "abcdef");
  assertEquals([blob.slice(1).type, blob.slice(1, 2, "X/Y").type], ["", "x/y"]);
  assertEquals(await blob.slice(2).slice(1, 2).text(), "d");
});

test("arrayBuffer() and bytes() are copies", async () => {
  const blob = new Blob(["abc"]);
  new Uint8Array(await blob.arrayBuffer())[0] = 0;
  (await blob.bytes())[1] = 0;
  assertEquals(await blob.text(), "abc");
});

test("stream()", async () => {
  const blob = new Blob(["abc", "def"]);
  let text = "";
  for await (const chunk of blob.stream()) text += new TextDecoder().decode(chunk);
  assertEquals(text, "abcdef");
  assert(blob.stream() !== blob.stream());
});

test("a source that changes later does not change the blob", async () => {
  const data = new Uint8Array([97, 98]);
  const blob = new Blob([data]);
  data[0] = 120;
  assertEquals(await blob.text(), "ab");
});

test("can be cloned", async () => {
  const blob = structuredClone(new Blob(["xabcx"], { type: "a/b" }).slice(1, 4, "c/d"));
  assertEquals([blob.constructor, blob.type, await blob.text()], [Blob, "c/d", "abc"]);
});
