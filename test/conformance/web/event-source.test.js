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

test("empty data is data", async () => {
  assertEquals(await collect(EventSource.from(streamOf("data\n\ndata:\r\rdata: x\n\n")), "message"), [["message", "", ""], ["message", "", ""], ["message", "x", ""]]);
}, { differs: { workerd: "workerd sends no event for empty data" } });

test("over HTTP", async () => {
  const source = new EventSource(`${serverUrl()}/events`);
  assertEquals([source.readyState, source.url, source.withCredentials], [0, `${serverUrl()}/events`, false]);
  let opened = 0;
  source.onopen = () => opened++;
  const seen = await collect(source, "message", "named");
  assertEquals(seen, [["message", "one", "1"], ["named", "two\nlines", "1"], ["message", "three", "1"]]);
  assertEquals([opened, source.readyState], [1, 2]);
}, { needs: "network" });
