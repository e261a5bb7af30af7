// The global object, and what happens to exceptions and rejections that nobody handles.
import { test, assert, assertEquals, assertThrows } from "../harness.js";

const once = (type) => new Promise((resolve) => addEventListener(type, resolve, { once: true }));

test("self, origin, the class string", () => {
  assert(self === globalThis);
  assertEquals(origin, "null");
  assertEquals(Object.prototype.toString.call(globalThis), "[object ServiceWorkerGlobalScope]");
});

test("reportError() fires an error event", async () => {
  const error = new TypeError("reported by this test");
  const event = once("error");
  reportError(error);
  const e = await event;
  assert(e instanceof ErrorEvent && e.error === error);
  assertEquals(e.message, "Uncaught TypeError: reported by this test");
  assertThrows(TypeError, () => reportError());
});

test("an unhandled rejection is announced", async () => {
  const event = once("unhandledrejection");
  const promise = Promise.reject(7);
  const e = await event;
  assert(e instanceof PromiseRejectionEvent);
  assertEquals([e.reason, e.promise === promise, e.type], [7, true, "unhandledrejection"]);
});

test("a rejection that is handled in the same turn is not", async () => {
  let count = 0;
  const listener = () => count++;
  addEventListener("unhandledrejection", listener);
  const promise = Promise.reject(1);
  await Promise.resolve();
  promise.catch(() => {});
  await new Promise((r) => setTimeout(r, 5));
  removeEventListener("unhandledrejection", listener);
  assertEquals(count, 0);
});

test("queueMicrotask() needs a function", () => {
  assertThrows(TypeError, () => queueMicrotask());
  assertThrows(TypeError, () => queueMicrotask("x"));
});

test("Cloudflare.compatibilityFlags is an object", () => {
  assertEquals(typeof Cloudflare.compatibilityFlags, "object");
});

test("interfaces are ordinary properties once they were read", () => {
  for (const name of ["URLPattern", "HTMLRewriter", "CryptoKey", "ReadableStream", "FormData", "performance"]) {
    assert(name in globalThis, name);
    const value = globalThis[name];
    const { writable, configurable, value: same } = Object.getOwnPropertyDescriptor(globalThis, name);
    assertEquals([writable, configurable, same === value], [true, true, true], name);
  }
}, { differs: { workerd: "they are on the prototype of the global object" } });

test("interfaces can be replaced and deleted", () => {
  const { EventSource } = globalThis;
  globalThis.EventSource = 1;
  assertEquals(globalThis.EventSource, 1);
  globalThis.EventSource = EventSource;
  assertEquals(typeof globalThis.EventSource, "function");
});
