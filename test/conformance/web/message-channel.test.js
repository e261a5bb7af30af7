// MessageChannel and MessagePort: https://html.spec.whatwg.org/#message-channels
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

const next = (port) => new Promise((resolve) => (port.onmessage = resolve));

test("the interfaces", () => {
  assertInterface("MessagePort", { methods: { postMessage: 1, start: 0, close: 0 }, setters: ["onmessage"] });
  assertThrows(TypeError, () => new MessagePort(), "Illegal constructor");
  const { port1, port2 } = new MessageChannel();
  assert(port1 instanceof MessagePort && port2 instanceof MessagePort && port1 !== port2 && port1 instanceof EventTarget);
});

test("messages are cloned and arrive later, in order", async () => {
  const { port1, port2 } = new MessageChannel();
  const value = { a: [1, new Date(5), new Map([[1, 2]])] };
  const seen = [];
  port2.onmessage = (event) => seen.push(event.data);
  port1.postMessage(value);
  port1.postMessage("second");
  value.a = null;
  assertEquals(seen, []);
  await new Promise((r) => setTimeout(r, 10));
  assertEquals(seen, [{ a: [1, new Date(5), new Map([[1, 2]])] }, "second"]);
});

test("both ways", async () => {
  const { port1, port2 } = new MessageChannel();
  port2.onmessage = (event) => port2.postMessage(event.data + 1);
  const answer = next(port1);
  port1.postMessage(1);
  const event = await answer;
  assertEquals([event.data, event.type, event.ports.length, event.target === port1], [2, "message", 0, true]);
  assert(event instanceof MessageEvent);
});

test("addEventListener() needs start()", async () => {
  const { port1, port2 } = new MessageChannel();
  const seen = [];
  port2.addEventListener("message", (event) => seen.push(event.data));
  port1.postMessage(1);
  await new Promise((r) => setTimeout(r, 5));
  port2.start();
  await new Promise((r) => setTimeout(r, 5));
  assertEquals(seen, [1]);
});

test("what cannot be cloned is refused", () => {
  assertThrows("DataCloneError", () => new MessageChannel().port1.postMessage(() => {}));
});

test("close()", async () => {
  const { port1, port2 } = new MessageChannel();
  const seen = [];
  port2.onmessage = (event) => seen.push(event.data);
  port1.close();
  port1.postMessage("lost");
  await new Promise((r) => setTimeout(r, 5));
  assertEquals(seen, []);
});

test("buffers can be transferred", async () => {
  const { port1, port2 } = new MessageChannel();
  const buffer = new Uint8Array([1, 2]).buffer;
  const event = next(port2);
  port1.postMessage(buffer, [buffer]);
  assertEquals(buffer.byteLength, 0);
  assertEquals(new Uint8Array((await event).data), new Uint8Array([1, 2]));
}, { differs: { workerd: "workerd has no transfer list here" } });

test("a message has no origin", async () => {
  const { port1, port2 } = new MessageChannel();
  const got = new Promise((resolve) => { port2.onmessage = (event) => resolve(event.origin); });
  port1.postMessage(1);
  assertEquals(await got, null);
  assertEquals(new MessageEvent("x").origin, "");
});

test("a port starts with its first listener, and knows where a message has come to", async () => {
  const { port1, port2 } = new MessageChannel();
  const event = await new Promise((resolve) => {
    port2.addEventListener("message", resolve);
    port1.postMessage(undefined);
  });
  assertEquals([event.data, event.source === port2, event.origin], [undefined, true, null]);
});

test("both ports are told of the end", async () => {
  const { port1, port2 } = new MessageChannel();
  const ends = [port1, port2].map((port) => new Promise((resolve) => port.addEventListener("close", resolve)));
  port1.close();
  assertEquals((await Promise.all(ends)).map((event) => event.constructor.name), ["Event", "Event"]);
});

test("what stands where a list of transfers should is refused", () => {
  const { port1 } = new MessageChannel();
  for (const wrong of [5, "x", { transfer: 5 }]) assertThrows(TypeError, () => port1.postMessage(1, wrong));
});
