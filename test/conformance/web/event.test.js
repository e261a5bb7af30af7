// Event and its heirs: https://dom.spec.whatwg.org/#interface-event
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("Event", {
    length: 1,
    methods: { composedPath: 0, stopPropagation: 0, stopImmediatePropagation: 0, preventDefault: 0 },
    getters: ["type", "target", "currentTarget", "eventPhase", "bubbles", "cancelable", "defaultPrevented", "composed", "isTrusted", "timeStamp", "srcElement", "returnValue"],
  });
  assertEquals([Event.NONE, Event.CAPTURING_PHASE, Event.AT_TARGET, Event.BUBBLING_PHASE], [0, 1, 2, 3]);
  assertEquals(new Event("x").AT_TARGET, 2);
});

test("defaults and init", () => {
  const e = new Event("x");
  assertEquals([e.type, e.eventPhase, e.bubbles, e.cancelable, e.composed], ["x", 0, false, false, false]);
  assertEquals([e.defaultPrevented, e.returnValue, e.isTrusted, e.cancelBubble, typeof e.timeStamp], [false, true, false, false, "number"]);
  assertEquals(e.composedPath(), []);
  const f = new Event(1, { bubbles: true, cancelable: 1, composed: "x" });
  assertEquals([f.type, f.bubbles, f.cancelable, f.composed], ["1", true, true, true]);
});

test("there is no target before the event is sent", () => {
  const { target, currentTarget, srcElement } = new Event("x");
  assertEquals([target, currentTarget, srcElement], [undefined, undefined, undefined]);
});

test("source and ports of a message are ports", () => {
  assertThrows(TypeError, () => new MessageEvent("m", { source: {} }));
  assertThrows(TypeError, () => new MessageEvent("m", { ports: [5] }));
  const { port1 } = new MessageChannel();
  const event = new MessageEvent("m", { source: port1, origin: null });
  assertEquals([event.source === port1, event.origin, event.ports.length], [true, "null", 0]);
});

test("the code of a CloseEvent has a sign", () => {
  assertEquals([new CloseEvent("c", { code: -1 }).code, new CloseEvent("c", { code: 4000 }).code, new CloseEvent("c").code], [-1, 4000, 0]);
});

test("refuses bad arguments", () => {
  assertThrows(TypeError, () => new Event());
  assertThrows(TypeError, () => new Event("x", 1));
});

test("preventDefault() works on cancelable events", () => {
  const e = new Event("x", { cancelable: true });
  e.preventDefault();
  assertEquals([e.defaultPrevented, e.returnValue], [true, false]);
});

test("CustomEvent", () => {
  assertInterface("CustomEvent", { length: 1, getters: ["detail"] });
  const detail = { a: 1 };
  const e = new CustomEvent("x", { detail, cancelable: true });
  assert(e instanceof Event && e.detail === detail && e.cancelable);
});

test("ErrorEvent", () => {
  assertInterface("ErrorEvent", { length: 1, getters: ["message", "filename", "lineno", "colno", "error"] });
  const error = new Error("x");
  const e = new ErrorEvent("error", { message: "m", filename: "f", lineno: 1, colno: 2, error });
  assertEquals([e.message, e.filename, e.lineno, e.colno, e.error === error], ["m", "f", 1, 2, true]);
  assertEquals([new ErrorEvent("x").message, new ErrorEvent("x").lineno], ["", 0]);
});

test("MessageEvent", () => {
  const e = new MessageEvent("message", { data: { a: 1 }, origin: "o", lastEventId: "7" });
  assert(e instanceof Event);
  assertEquals([e.type, e.data, e.origin, e.lastEventId, e.ports.length], ["message", { a: 1 }, "o", "7", 0]);
  assertEquals(new MessageEvent("x").data, null);
});

test("CloseEvent", () => {
  const e = new CloseEvent("close", { code: 1000, reason: "r", wasClean: true });
  assert(e instanceof Event);
  assertEquals([e.code, e.reason, e.wasClean], [1000, "r", true]);
  const d = new CloseEvent("close");
  assertEquals([d.code, d.reason, d.wasClean], [0, "", false]);
});

test("stopImmediatePropagation() is not seen in cancelBubble", () => {
  const event = new Event("x");
  event.stopImmediatePropagation();
  assertEquals(event.cancelBubble, false);
  event.stopPropagation();
  assertEquals(event.cancelBubble, true);
});
