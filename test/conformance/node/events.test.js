// node:events
import EventEmitter, { once, on, errorMonitor, EventEmitter as Named, getEventListeners } from "node:events";
import { test, assert, assertEquals, assertRejects, assertThrows } from "../harness.js";

test("listeners run in order, once, prepended, removed", () => {
  assert(EventEmitter === Named);
  const e = new EventEmitter();
  const seen = [];
  const a = (x) => seen.push(["a", x]);
  e.on("x", a).once("x", () => seen.push("once")).prependListener("x", () => seen.push("first"));
  assertEquals([e.emit("x", 1), e.emit("x", 2), e.emit("y")], [true, true, false]);
  assertEquals(seen, ["first", ["a", 1], "once", "first", ["a", 2]]);
  e.off("x", a);
  assertEquals([e.listenerCount("x"), e.eventNames()], [1, ["x"]]);
  e.removeAllListeners();
  assertEquals(e.eventNames(), []);
});

test("removing while emitting does not skip", () => {
  const e = new EventEmitter();
  const seen = [];
  e.on("x", function one() { seen.push(1); e.off("x", one); });
  e.on("x", () => seen.push(2));
  e.emit("x");
  assertEquals(seen, [1, 2]);
});

test("an error without a listener is thrown", () => {
  const e = new EventEmitter();
  assertThrows(RangeError, () => e.emit("error", new RangeError("r")));
  assertThrows(Error, () => e.emit("error", "text"), /Unhandled error/);
  const seen = [];
  e.on(errorMonitor, (x) => seen.push(x));
  e.on("error", (x) => seen.push(x));
  e.emit("error", 1);
  assertEquals(seen, [1, 1]);
});

test("newListener, removeListener, symbols, subclasses", () => {
  class Sub extends EventEmitter {}
  const e = new Sub();
  const seen = [];
  e.on("newListener", (name) => seen.push(name));
  const s = Symbol("s");
  e.on(s, () => {});
  assertEquals(seen, [s]);
  function Old() { EventEmitter.call(this); }
  Object.setPrototypeOf(Old.prototype, EventEmitter.prototype);
  const old = new Old();
  old.on("a", () => seen.push("old"));
  old.emit("a");
  assertEquals([seen.at(-1), getEventListeners(old, "a").length], ["old", 1]);
  assertThrows(TypeError, () => e.on("x", 1));
});

test("once() and on() as promises", async () => {
  const e = new EventEmitter();
  setTimeout(() => e.emit("x", 1, 2), 1);
  assertEquals(await once(e, "x"), [1, 2]);
  setTimeout(() => e.emit("error", new TypeError("t")), 1);
  await assertRejects(TypeError, once(e, "x"));
  const target = new EventTarget();
  setTimeout(() => target.dispatchEvent(new Event("z")), 1);
  assertEquals((await once(target, "z"))[0].type, "z");
  setTimeout(() => { e.emit("y", 1); e.emit("y", 2); }, 1);
  const got = [];
  for await (const [value] of on(e, "y")) {
    got.push(value);
    if (got.length === 2) break;
  }
  assertEquals([got, e.listenerCount("y")], [[1, 2], 0]);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 1);
  const error = await once(e, "never", { signal: controller.signal }).catch((x) => x);
  assertEquals(error.name, "AbortError");
});
