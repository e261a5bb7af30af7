// console: https://console.spec.whatwg.org/. What is printed is not visible here; what can be
// called, and that nothing throws, is.
import { test, assert, assertEquals } from "../harness.js";

test("has all methods", () => {
  for (const name of ["assert", "clear", "count", "countReset", "debug", "dir", "dirxml", "error", "group", "groupCollapsed",
    "groupEnd", "info", "log", "table", "time", "timeEnd", "timeLog", "trace", "warn"]) {
    assertEquals(typeof console[name], "function", name);
  }
  assertEquals(Object.prototype.toString.call(console), "[object console]");
  const d = Object.getOwnPropertyDescriptor(globalThis, "console");
  assertEquals([d.writable, d.enumerable, d.configurable], [true, false, true]);
});

test("methods work detached", () => {
  const { debug } = console;
  debug("detached");
  [1].forEach(console.debug);
});

test("takes whatever it is given", () => {
  const circular = { list: [1, , 3] };
  circular.self = circular;
  const values = [
    undefined, null, true, -0, 1n, "text", Symbol("s"), () => {}, class A {}, circular, new Map([[circular, 1]]), new Set([1]),
    new Uint8Array(300), new ArrayBuffer(3), new DataView(new ArrayBuffer(1)), new Date(NaN), /x/g, new Error("e", { cause: 1 }),
    new AggregateError([1], "m"), Promise.resolve(), new WeakMap(), new WeakSet(), new Proxy({}, {}), Object.create(null),
    new Proxy({}, { get() { throw new Error("trap"); }, ownKeys() { throw new Error("trap"); }, getPrototypeOf() { throw new Error("trap"); } }),
    { get x() { throw new Error("getter"); } }, new String("s"), new Headers({ a: "b" }), new Response("x"), new Request("http://a/"),
    new URL("http://a/"), new FormData(), new AbortController().signal, new Event("x"), "x".repeat(100000), Array(1e6), [[[[[1]]]]],
    (function () { return arguments; })(1), function* () {}, async () => {}, globalThis.crypto,
  ];
  for (const value of values) console.debug(value, [value], { value });
  console.debug("%s %d %i %f %j %o %O %c %% %x", ...values.slice(0, 8));
  console.debug("%s");
  console.table([{ a: 1 }, { b: 2 }, 3], ["a"]);
  console.table(1);
  console.dir(circular, { depth: 0 });
  console.group("a");
  console.groupEnd();
  console.groupEnd();
  console.assert(true, "not shown");
});
