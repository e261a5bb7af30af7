import nodeTest, { mock } from "node:test";
import { assertEquals, assertThrows, test } from "../harness.js";

test("mock.fn: calls, results, errors and constructions are noted", () => {
  const add = mock.fn((a, b) => a + b);
  assertEquals(add(1, 2), 3);
  assertEquals(add.mock.callCount(), 1);
  const [call] = add.mock.calls;
  assertEquals([call.arguments, call.result, call.error, call.this], [[1, 2], 3, undefined, undefined]);
  const thrower = mock.fn(() => { throw new RangeError("no"); });
  assertThrows(RangeError, () => thrower());
  assertEquals(thrower.mock.calls[0].error.message, "no");
  class Thing { constructor(x) { this.x = x; } }
  const Mocked = mock.fn(Thing);
  const made = new Mocked(7);
  assertEquals([made.x, made instanceof Thing, Mocked.mock.calls[0].result === made, Mocked.mock.calls[0].target === Thing], [7, true, true, true]);
});

test("mock.fn: implementations by count, once and for good", () => {
  const f = mock.fn(() => "original", () => "replaced", { times: 2 });
  f.mock.mockImplementationOnce(() => "once", 1);
  assertEquals([f(), f(), f()], ["replaced", "once", "original"]);
  f.mock.mockImplementation(() => "later");
  f.mock.resetCalls();
  assertEquals(f.mock.callCount(), 0);
});

test("mock.method: replaces a method, a getter or a setter, and puts it back", () => {
  const object = { n: 1, twice() { return this.n * 2; }, get g() { return this.n; } };
  const m = mock.method(object, "twice", function () { return this.n * 3; });
  assertEquals([object.twice(), m.mock.callCount()], [3, 1]);
  m.mock.restore();
  assertEquals(object.twice(), 2);
  const g = mock.getter(object, "g", () => 9);
  assertEquals([object.g, g.mock.callCount()], [9, 1]);
  mock.restoreAll();
  assertEquals(object.g, 1);
  assertThrows(TypeError, () => mock.method(object, "n"));
  assertThrows(TypeError, () => mock.method(object, "twice", { getter: true, setter: true }));
});

test("node:test has mocks and nothing to run", () => {
  assertEquals(Object.keys(nodeTest).sort(), ["MockFunctionContext", "MockTracker", "mock"]);
});
