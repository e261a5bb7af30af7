// EventSource: https://html.spec.whatwg.org/#server-sent-events
import { test, assertEquals, assertThrows, assertInterface, serverUrl } from "../harness.js";

const streamOf = (...texts) => new ReadableStream({
  start(c) {
    for (const text of texts) c.enqueue(new TextEncoder().encode(text));
    c.close();
  },
});

/** All events of a stream until it fails. */
const collect = (source, ...types) => new Promise((resolve) => {
  const seen = [];
  for (const type of types) source.addEventListener(type, (e) => seen.push([e.type, e.data, e.lastEventId]));
  source.addEventListener("error", () => {
    source.close();
    resolve(seen);
  });
});

test("the interface", () => {
  assertInterface("EventSource", { length: 1, methods: { close: 0 }, getters: ["url", "readyState", "withCredentials"], setters: ["onopen", "onmessage", "onerror"] });
  assertEquals([EventSource.CONNECTING, EventSource.OPEN, EventSource.CLOSED], [0, 1, 2]);
});

test("refuses bad URLs", () => {
  assertThrows("SyntaxError", () => new EventSource("/relative"));
});

test("reads data, event, id, comments, in any cut and line ending", async () => {
  const text = "\ufeff: comment\ndata: one\n\ndata:two\ndata: lines\nid: 7\n\nevent: named\ndata: three\r\n\r\nevent: none\n\ndata: not ended";
  const expected = [["message", "one", ""], ["message", "two\nlines", "7"], ["named", "three", "7"]];
  assertEquals(await collect(EventSource.from(streamOf(text)), "message", "named"), expected);
  assertEquals(await collect(EventSource.from(streamOf(...text)), "message", "named"), expected);
});

test("empty data is no event; of several lines it is one", async () => {
  assertEquals(await collect(EventSource.from(streamOf("data\n\ndata:\r\rdata: x\n\ndata\ndata\n\n")), "message"), [["message", "x", ""], ["message", "\n", ""]]);
});

test("from() is open at once; dispose closes it; a stream in use is refused", () => {
  const stream = new ReadableStream();
  const source = EventSource.from(stream);
  assertEquals(source.readyState, EventSource.OPEN);
  source[Symbol.dispose]();
  assertEquals(source.readyState, EventSource.CLOSED);
  const locked = new ReadableStream();
  locked.getReader();
  assertThrows(TypeError, () => EventSource.from(locked));
});

test("a named event finds its handler property", async () => {
  const source = EventSource.from(streamOf("event: spot\ndata: a\n\nevent: spot\ndata: b\n\n"));
  const seen = [];
  source.onspot = (event) => seen.push(event.data);
  await collect(source);
  assertEquals(seen, ["a", "b"]);
});

test("over HTTP", async () => {
  const source = new EventSource(`${serverUrl()}/events`);
  assertEquals([source.readyState, source.url, source.withCredentials], [0, `${serverUrl()}/events`, false]);
  let opened = 0;
  source.onopen = () => opened++;
  const seen = await collect(source, "message", "named");
  assertEquals(seen, [["message", "one", "1"], ["named", "two\nlines", "1"], ["message", "three", "1"]]);
  assertEquals([opened, source.readyState], [1, 2]);
}, { needs: "network" });
