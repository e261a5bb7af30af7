// node:async_hooks: AsyncLocalStorage and AsyncResource.
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { test, assert, assertEquals, assertRejects, assertThrows } from "../harness.js";

const storage = new AsyncLocalStorage();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

test("run() sets the store for its callback, and nesting restores", () => {
  assertEquals(storage.getStore(), undefined);
  const result = storage.run(1, (a, b) => {
    assertEquals(storage.getStore(), 1);
    storage.run(2, () => assertEquals(storage.getStore(), 2));
    assertEquals(storage.getStore(), 1);
    return a + b;
  }, 3, 4);
  assertEquals([result, storage.getStore()], [7, undefined]);
  assertThrows(RangeError, () => storage.run(1, () => { throw new RangeError("x"); }));
  assertEquals(storage.getStore(), undefined);
});

test("the store survives await, however deep", async () => {
  async function inner() {
    await null;
    await sleep(1);
    return storage.getStore();
  }
  async function outer() {
    const before = await inner();
    await Promise.resolve();
    return [before, storage.getStore()];
  }
  const results = await Promise.all([storage.run("a", outer), storage.run("b", outer), outer()]);
  assertEquals(results, [["a", "a"], ["b", "b"], [undefined, undefined]]);
  assertEquals(storage.getStore(), undefined);
});

test("Promise.all, race, allSettled and thenables keep it", async () => {
  await storage.run("x", async () => {
    await Promise.all([sleep(1), null, Promise.resolve(2)]);
    assertEquals(storage.getStore(), "x");
    await Promise.race([sleep(1), sleep(5)]);
    assertEquals(storage.getStore(), "x");
    await Promise.allSettled([Promise.reject(new Error("n"))]);
    assertEquals(storage.getStore(), "x");
    assertEquals(await { then: (resolve) => resolve(5) }, 5);
    assertEquals(storage.getStore(), "x");
  });
});

test("rejections, finally and try/catch keep it", async () => {
  await storage.run("r", async () => {
    try {
      await sleep(1).then(() => { throw new Error("e"); });
    } catch {
      assertEquals(storage.getStore(), "r");
    } finally {
      await null;
      assertEquals(storage.getStore(), "r");
    }
    await Promise.reject(new Error("f")).catch(() => assertEquals(storage.getStore(), "r"));
    await Promise.resolve().finally(() => assertEquals(storage.getStore(), "r"));
  });
  await assertRejects(TypeError, storage.run(1, async () => { await null; throw new TypeError("t"); }));
});

test("a promise made elsewhere does not bring its own store", async () => {
  let release;
  const gate = new Promise((resolve) => (release = resolve));
  const waiting = storage.run("waiter", async () => {
    await gate;
    return storage.getStore();
  });
  storage.run("releaser", () => release());
  assertEquals(await waiting, "waiter");
});

test("async generators and for await keep it", async () => {
  async function* numbers() {
    for (let i = 0; i < 3; i++) {
      await sleep(1);
      yield [i, storage.getStore()];
    }
  }
  const seen = await storage.run("g", async () => {
    const list = [];
    for await (const item of numbers()) list.push([...item, storage.getStore()]);
    return list;
  });
  assertEquals(seen, [[0, "g", "g"], [1, "g", "g"], [2, "g", "g"]]);
});

test("timers and microtasks keep it", async () => {
  const seen = await storage.run("t", () => Promise.all([
    new Promise((r) => setTimeout(() => r(storage.getStore()), 1)),
    new Promise((r) => queueMicrotask(() => r(storage.getStore()))),
    new Promise((r) => { const id = setInterval(() => { clearInterval(id); r(storage.getStore()); }, 1); }),
    new Promise((r) => setTimeout((v) => r([v, storage.getStore()]), 1, "arg")),
  ]));
  assertEquals(seen, ["t", "t", "t", ["arg", "t"]]);
});

test("exit() leaves the store", async () => {
  await storage.run(1, async () => {
    storage.exit(() => assertEquals(storage.getStore(), undefined));
    assertEquals(storage.getStore(), 1);
    assertEquals(await storage.exit(async () => { await null; return storage.getStore(); }), undefined);
    assertEquals(storage.getStore(), 1);
  });
});

test("storages do not see each other", async () => {
  const other = new AsyncLocalStorage();
  await storage.run("a", () => other.run("b", async () => {
    await null;
    assertEquals([storage.getStore(), other.getStore()], ["a", "b"]);
    other.exit(() => assertEquals([storage.getStore(), other.getStore()], ["a", undefined]));
  }));
});

test("bind() and snapshot() capture", () => {
  const bound = storage.run("bound", () => AsyncLocalStorage.bind((x) => [x, storage.getStore()]));
  assertEquals(bound(1), [1, "bound"]);
  const snapshot = storage.run("snap", () => AsyncLocalStorage.snapshot());
  assertEquals(storage.run("other", () => snapshot((x) => [x, storage.getStore()], 2)), [2, "snap"]);
  assertEquals(storage.getStore(), undefined);
});

test("AsyncResource runs in the frame where it was made", () => {
  const resource = storage.run("res", () => new AsyncResource("TEST"));
  assertEquals(resource.runInAsyncScope(function (a) { return [this.x, a, storage.getStore()]; }, { x: 1 }, 2), [1, 2, "res"]);
  assertEquals(resource.bind(() => storage.getStore())(), "res");
  const bound = storage.run("static", () => AsyncResource.bind(() => storage.getStore()));
  assertEquals(bound(), "static");
  assert(typeof resource.asyncId() === "number");
});

test("enterWith() is refused", () => {
  assertThrows(Error, () => storage.enterWith(1));
});
