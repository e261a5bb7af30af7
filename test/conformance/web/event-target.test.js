// EventTarget: https://dom.spec.whatwg.org/#interface-eventtarget
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("EventTarget", { methods: { addEventListener: 2, removeEventListener: 2, dispatchEvent: 1 } });
});

test("listeners run in order, with the target as this", () => {
  const target = new EventTarget();
  const seen = [];
  target.addEventListener("x", function (event) {
    seen.push([1, this === target, event.target === target, event.currentTarget === target, event.eventPhase]);
  });
  target.addEventListener("x", () => seen.push(2));
  target.addEventListener("y", () => seen.push(3));
  assertEquals(target.dispatchEvent(new Event("x")), true);
  assertEquals(seen, [[1, true, true, true, 2], 2]);
});

test("objects with handleEvent", () => {
  const target = new EventTarget();
  const seen = [];
  const listener = { handleEvent(event) { seen.push([this === listener, event.type]); } };
  target.addEventListener("x", listener);
  target.dispatchEvent(new Event("x"));
  target.removeEventListener("x", listener);
  target.dispatchEvent(new Event("x"));
  assertEquals(seen, [[true, "x"]]);
});

test("the same listener is added once", () => {
  const target = new EventTarget();
  let count = 0;
  const listener = () => count++;
  target.addEventListener("x", listener);
  target.addEventListener("x", listener);
  target.dispatchEvent(new Event("x"));
  assertEquals(count, 1);
});

test("once", () => {
  const target = new EventTarget();
  let count = 0;
  target.addEventListener("x", () => count++, { once: true });
  target.dispatchEvent(new Event("x"));
  target.dispatchEvent(new Event("x"));
  assertEquals(count, 1);
});

test("passive listeners cannot prevent the default", () => {
  const target = new EventTarget();
  target.addEventListener("x", (e) => e.preventDefault(), { passive: true });
  assertEquals(target.dispatchEvent(new Event("x", { cancelable: true })), true);
  target.addEventListener("x", (e) => e.preventDefault());
  assertEquals(target.dispatchEvent(new Event("x", { cancelable: true })), false);
});

test("signal removes a listener", () => {
  const target = new EventTarget();
  const controller = new AbortController();
  let count = 0;
  target.addEventListener("x", () => count++, { signal: controller.signal });
  target.dispatchEvent(new Event("x"));
  controller.abort();
  target.dispatchEvent(new Event("x"));
  target.addEventListener("x", () => count++, { signal: AbortSignal.abort() });
  target.dispatchEvent(new Event("x"));
  assertEquals(count, 1);
});

test("listeners removed meanwhile do not run, nor those added", () => {
  const target = new EventTarget();
  const seen = [];
  const second = () => seen.push("second");
  target.addEventListener("x", () => {
    seen.push("first");
    target.removeEventListener("x", second);
    target.addEventListener("x", () => seen.push("late"));
  });
  target.addEventListener("x", second);
  target.dispatchEvent(new Event("x"));
  assertEquals(seen, ["first"]);
});

test("stopImmediatePropagation()", () => {
  const target = new EventTarget();
  const seen = [];
  target.addEventListener("x", (e) => (seen.push(1), e.stopImmediatePropagation()));
  target.addEventListener("x", () => seen.push(2));
  target.dispatchEvent(new Event("x"));
  assertEquals(seen, [1]);
});

test("what a listener throws does not stop the others", () => {
  const target = new EventTarget();
  const seen = [];
  target.addEventListener("x", () => {
    throw new Error("thrown by a listener of this test");
  });
  target.addEventListener("x", () => seen.push("still"));
  assertEquals(target.dispatchEvent(new Event("x")), true);
  assertEquals(seen, ["still"]);
});

test("an event can be sent again", () => {
  const target = new EventTarget();
  let count = 0;
  target.addEventListener("x", () => count++);
  const event = new Event("x");
  target.dispatchEvent(event);
  target.dispatchEvent(event);
  assertEquals(count, 2);
});

test("refuses bad arguments", () => {
  const target = new EventTarget();
  assertThrows(TypeError, () => target.addEventListener("x"));
  assertThrows(TypeError, () => target.addEventListener("x", 1));
  assertThrows(TypeError, () => target.dispatchEvent({}));
  assertThrows(TypeError, () => target.dispatchEvent());
  target.addEventListener("x", null);
  target.removeEventListener("x", () => {});
});

test("can be subclassed", () => {
  class Mine extends EventTarget {
    hits = 0;
    constructor() {
      super();
      this.addEventListener("x", () => this.hits++);
    }
  }
  const mine = new Mine();
  mine.dispatchEvent(new CustomEvent("x"));
  assertEquals(mine.hits, 1);
});

test("the global object is one", () => {
  let count = 0;
  const listener = () => count++;
  addEventListener("test-event", listener);
  dispatchEvent(new Event("test-event"));
  globalThis.dispatchEvent(new Event("test-event"));
  removeEventListener("test-event", listener);
  dispatchEvent(new Event("test-event"));
  assertEquals(count, 2);
});

test("methods refuse other receivers", () => {
  assertThrows(TypeError, () => EventTarget.prototype.addEventListener.call({}, "x", () => {}), /^Illegal invocation/);
  assert(true);
});

test("a function put on a target as on + type is called before its listeners", () => {
  let fell = false;
  class Emitter extends EventTarget {
    onfell() { fell = true; }
  }
  const target = new Emitter();
  const seen = [];
  target.addEventListener("rose", () => seen.push("listener"));
  target.onrose = (event) => seen.push(["handler", event.type]);
  target.onsat = 5;
  assertEquals([target.dispatchEvent(new Event("rose")), target.dispatchEvent(new Event("sat")), target.dispatchEvent(new Event("fell"))], [true, true, true]);
  assertEquals([seen, fell], [[["handler", "rose"], "listener"], true]);
  target.onrose = (event) => event.stopImmediatePropagation();
  target.dispatchEvent(new Event("rose"));
  assertEquals(seen.length, 2);
});
