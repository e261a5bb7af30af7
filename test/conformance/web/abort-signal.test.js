// AbortController and AbortSignal: https://dom.spec.whatwg.org/#aborting-ongoing-activities
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interfaces", () => {
  assertInterface("AbortController", { methods: { abort: 0 }, getters: ["signal"] });
  assertInterface("AbortSignal", {
    methods: { throwIfAborted: 0 }, getters: ["aborted", "reason"], setters: ["onabort"],
    statics: { abort: 0, timeout: 1, any: 1 },
  });
  assertThrows(TypeError, () => new AbortSignal(), "Illegal constructor");
  assert(new AbortController().signal instanceof EventTarget);
});

test("abort() sets reason and fires once", () => {
  const controller = new AbortController();
  const { signal } = controller;
  const seen = [];
  signal.onabort = (e) => seen.push(["on", e.type, e.isTrusted, e.target === signal]);
  signal.addEventListener("abort", () => seen.push("listener"));
  assertEquals([signal.aborted, signal.reason], [false, undefined]);
  controller.abort();
  controller.abort("again");
  assertEquals([signal.aborted, signal.reason.name, signal.reason instanceof DOMException], [true, "AbortError", true]);
  assertEquals(seen, [["on", "abort", true, true], "listener"]);
});

test("any reason will do", () => {
  const controller = new AbortController();
  controller.abort(42);
  assertEquals(controller.signal.reason, 42);
  assertThrows(42, () => controller.signal.throwIfAborted());
  new AbortController().signal.throwIfAborted();
});

test("onabort takes functions and objects, gives null otherwise", () => {
  const { signal } = new AbortController();
  assertEquals(signal.onabort, null);
  const f = () => {};
  signal.onabort = f;
  assert(signal.onabort === f);
  signal.onabort = 5;
  assertEquals(signal.onabort, null);
});

test("AbortSignal.abort()", () => {
  assertEquals(AbortSignal.abort().aborted, true);
  assertEquals(AbortSignal.abort().reason.name, "AbortError");
  assertEquals(AbortSignal.abort("why").reason, "why");
});

test("AbortSignal.timeout() takes any number", () => {
  for (const number of ["5", 1.5, null, 2 ** 53 - 1, -1, NaN, Infinity, "x", 2 ** 53, undefined]) assertEquals(AbortSignal.timeout(number).aborted, false);
});

test("AbortSignal.timeout() needs a number", () => {
  assertThrows(TypeError, () => AbortSignal.timeout());
});

test("AbortSignal.timeout()", async () => {
  const signal = AbortSignal.timeout(5);
  assertEquals(signal.aborted, false);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  assertEquals([signal.reason.name, signal.reason.code], ["TimeoutError", 23]);
});

test("AbortSignal.any()", () => {
  const a = new AbortController();
  const b = new AbortController();
  const any = AbortSignal.any([a.signal, b.signal]);
  const nested = AbortSignal.any([any]);
  let count = 0;
  nested.onabort = () => count++;
  b.abort("b");
  a.abort("a");
  assertEquals([any.reason, nested.reason, count], ["b", "b", 1]);
  assertEquals(AbortSignal.any([]).aborted, false);
  assertEquals(AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason, 1);
  assertThrows(TypeError, () => AbortSignal.any(1));
  assertThrows(TypeError, () => AbortSignal.any([{}]));
});

test("a follower is marked before anybody hears of it", () => {
  const controller = new AbortController();
  const follower = AbortSignal.any([controller.signal]);
  let aborted;
  controller.signal.addEventListener("abort", () => (aborted = follower.aborted));
  controller.abort();
  assertEquals(aborted, true);
});
