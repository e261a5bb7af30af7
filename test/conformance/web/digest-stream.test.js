// crypto.DigestStream: https://developers.cloudflare.com/workers/runtime-apis/web-crypto/
import { test, assert, assertEquals, assertRejects, assertThrows } from "../harness.js";

const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("");
const utf8 = (text) => new TextEncoder().encode(text);

test("DigestStream digests what is written", async () => {
  for (const [algorithm, want] of [
    ["MD5", "900150983cd24fb0d6963f7d28e17f72"],
    ["SHA-1", "a9993e364706816aba3e25717850c26c9cd0d89d"],
    [{ name: "sha-256" }, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    ["SHA-384", "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"],
  ]) {
    const stream = new crypto.DigestStream(algorithm);
    assert(stream instanceof WritableStream);
    const writer = stream.getWriter();
    await writer.write(utf8("a"));
    await writer.write(utf8("bc").buffer);
    assertEquals(stream.bytesWritten, 3n);
    await writer.close();
    const digest = await stream.digest;
    assert(digest instanceof ArrayBuffer);
    assertEquals(hex(digest), want);
  }
});

test("DigestStream takes the end of a pipe", async () => {
  const stream = new crypto.DigestStream("SHA-512");
  await new Blob(["a".repeat(100000)]).stream().pipeTo(stream);
  assertEquals(hex(await stream.digest), hex(await crypto.subtle.digest("SHA-512", utf8("a".repeat(100000)))));
});

test("DigestStream fails when it is aborted", async () => {
  const stream = new crypto.DigestStream("SHA-256");
  await stream.abort(new Error("enough"));
  await assertRejects(Error, stream.digest);
  assertThrows("NotSupportedError", () => new crypto.DigestStream("SHA-3"));
});
