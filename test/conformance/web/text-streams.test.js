// TextEncoderStream and TextDecoderStream: https://encoding.spec.whatwg.org/#interface-textdecoderstream
import { assertEquals, assertInterface, assertRejects, assertThrows, test } from "../harness.js";

function through(transform, ...chunks) {
  const writer = transform.writable.getWriter();
  writer.closed.catch(() => {});
  writer.ready.catch(() => {});
  for (const chunk of chunks) writer.write(chunk).catch(() => {});
  writer.close().catch(() => {});
  return Array.fromAsync(transform.readable);
}
const flat = (chunks) => chunks.flatMap((chunk) => [...chunk]);

test("the interfaces", () => {
  assertInterface("TextEncoderStream", { getters: ["encoding", "readable", "writable"] });
  assertInterface("TextDecoderStream", { getters: ["encoding", "fatal", "ignoreBOM", "readable", "writable"] });
  assertEquals(new TextEncoderStream().encoding, "utf-8");
  assertThrows(RangeError, () => new TextDecoderStream("nonsense"));
}, { differs: { workerd: "the accessors are inherited from TransformStream" } });

test("encoding: chunks become UTF-8", async () => {
  assertEquals(flat(await through(new TextEncoderStream(), "a\u00e9", "\u20ac")), [0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac]);
});

test("encoding: a pair split over chunks is joined, a lone half replaced", async () => {
  assertEquals(flat(await through(new TextEncoderStream(), "\ud83d", "\ude00")), [0xf0, 0x9f, 0x98, 0x80]);
  assertEquals(flat(await through(new TextEncoderStream(), "a\ud83d")), [0x61, 0xef, 0xbf, 0xbd]);
  assertEquals(flat(await through(new TextEncoderStream(), "\ud83d", "b")), [0xef, 0xbf, 0xbd, 0x62]);
});

test("decoding: a sequence split over chunks is joined", async () => {
  const chunks = [[0xe2], [0x82], [0xac, 0x21]].map((c) => new Uint8Array(c));
  assertEquals((await through(new TextDecoderStream(), ...chunks)).join(""), "\u20ac!");
});

test("decoding: an incomplete end is replaced, or refused if fatal", async () => {
  const cut = new Uint8Array([0x61, 0xe2, 0x82]);
  assertEquals((await through(new TextDecoderStream(), cut)).join(""), "a\ufffd");
  await assertRejects(TypeError, through(new TextDecoderStream("utf-8", { fatal: true }), cut));
});

test("decoding: labels and byte order marks", async () => {
  const stream = new TextDecoderStream("UTF8", { ignoreBOM: true });
  assertEquals([stream.encoding, stream.ignoreBOM], ["utf-8", true]);
  const marked = new Uint8Array([0xef, 0xbb, 0xbf, 0x61]);
  assertEquals((await through(stream, marked)).join(""), "\ufeffa");
  assertEquals((await through(new TextDecoderStream(), marked)).join(""), "a");
});

test("decoding: only bytes", async () => {
  await assertRejects(TypeError, through(new TextDecoderStream(), "text"));
});
