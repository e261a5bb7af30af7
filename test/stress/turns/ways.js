// Ways in which the code of an object comes to run when something is settled in a turn that is not
// the object's own. Each waits for a thing that objects share (shared.js) and then marks: the object
// writes, logs and looks at its AsyncLocalStorage value, and all three must be its own.
//
//     async (cell, op, room) => ...    `op` names the operation; `cell.mark(op)` is to be awaited
//
// `ways` end in code that is the object's own by every rule; `foreign` use the object from code that
// is another's: there only the writes must be the object's.
import { Batch, ChainLock, Channel, Deferred, Emitter, SHARED_MS, Semaphore, WorkQueue, early, late, pause } from "./shared.js";
import { extra } from "./hooks.js";
import { typed } from "./ways-typed.ts";

/** A promise of its own kind. */
class Later extends Promise {}

class Thenable {
  constructor(promise) {
    this.promise = promise;
  }
  then(resolve, reject) {
    this.promise.then(resolve, reject);
  }
}

async function* numbers(room, key, count) {
  for (let i = 0; i < count; i++) {
    await room.memo(`${key} ${i}`);
    yield i;
  }
}

async function recursive(room, depth) {
  if (depth === 0) return 0;
  await room.memo(`depth ${depth}`);
  return 1 + (await recursive(room, depth - 1));
}

/** Runs a generator that yields promises, as was done before there was `await`. */
function coroutine(generator) {
  return new Promise((resolve, reject) => {
    const step = (method, value) => {
      try {
        const { value: next, done } = generator[method](value);
        if (done) resolve(next);
        else Promise.resolve(next).then((v) => step("next", v), (e) => step("throw", e));
      } catch (error) {
        reject(error);
      }
    };
    step("next");
  });
}

/** A body that comes after some time. */
const slowly = (text) => new ReadableStream({
  async start(controller) {
    await pause(SHARED_MS);
    controller.enqueue(new TextEncoder().encode(text));
    controller.close();
  },
});

class Fields {
  constructor(cell, op, room) {
    Object.assign(this, { cell, op, room });
  }
  arrow = async () => {
    await this.room.memo("field");
    await this.cell.mark(this.op);
  };
  get promise() {
    return this.room.memo("getter");
  }
  async #private() {
    await this.promise;
    await this.cell.mark(this.op);
  }
  viaPrivate() {
    return this.#private();
  }
  async defaults(waited = this.room.memo("default"), { then: unused = waited } = {}) {
    await unused;
    await this.cell.mark(this.op);
  }
  static async of(fields) {
    await fields.room.memo("static");
    await fields.cell.mark(fields.op);
  }
  async base() {
    await this.room.memo("super");
  }
}
class Derived extends Fields {
  async base() {
    await super.base();
    await (async () => {
      await super.base();
      await this.cell.mark(this.op);
    })();
  }
}

/** A call that another's event has made: a line of its own, and a call carries no AsyncLocalStorage value. */
const LENT = { log: "lent", als: false };

export const ways = {
  // --- await
  async "await a shared promise"(cell, op, room) {
    await room.memo();
    await cell.mark(op);
  },
  "async arrow function": async (cell, op, room) => cell.mark(op, await room.memo("arrow")),
  async "await in an argument"(cell, op, room) {
    await cell.mark(...(await room.memo("args", () => pause(SHARED_MS).then(() => [])) ?? []), op);
  },
  async "await twenty times"(cell, op, room) {
    for (let i = 0; i < 20; i++) await room.memo(`loop ${i % 3}`, () => (i % 2 ? pause(1) : Promise.resolve()));
    await cell.mark(op);
  },
  async "await recursively"(cell, op, room) {
    await recursive(room, 5);
    await cell.mark(op);
  },
  async "await a settled promise of another"(cell, op, room) {
    const kept = room.thing("settled", () => Promise.resolve(1));
    await room.memo("before");
    await kept;
    await cell.mark(op);
  },
  async "await what is not a promise"(cell, op, room) {
    await room.memo("plain");
    await 0;
    await null;
    await cell.mark(op);
  },
  async "catch block"(cell, op, room) {
    try {
      await room.failure();
    } catch {
      await cell.mark(op);
    }
  },
  async "code after a catch block"(cell, op, room) {
    try {
      await room.failure();
    } catch {}
    await cell.mark(op);
  },
  async "finally block"(cell, op, room) {
    try {
      await room.memo("finally");
    } finally {
      await cell.mark(op);
    }
  },
  async "finally block after a failure"(cell, op, room) {
    await (async () => {
      try {
        await room.failure("in finally");
      } finally {
        await cell.mark(op);
      }
    })().catch(() => {});
  },
  async "return through finally blocks"(cell, op, room) {
    return await (async () => {
      try {
        return await room.memo("return");
      } finally {
        try {
          await room.failure("return fails");
        } catch {
          await cell.mark(op);
        }
      }
    })();
  },
  async "failure through an async function that does not wait"(cell, op, room) {
    const fails = async () => room.failure("passed on");
    try {
      await fails();
    } catch {
      await cell.mark(op);
    }
  },
  async "await import()"(cell, op, room) {
    await room.memo("import", async () => {
      await import("./hooks.js");
      await pause(SHARED_MS);
    });
    await cell.mark(op);
  },
  async "promises made outside of every event"(cell, op, room) {
    await early;
    room.soon("late", () => late.resolve());
    await late.promise;
    await cell.mark(op);
  },
  // --- classes
  "async arrow function in a field": (cell, op, room) => new Fields(cell, op, room).arrow(),
  "private async method, getter": (cell, op, room) => new Fields(cell, op, room).viaPrivate(),
  "async method, promise as a default": (cell, op, room) => new Fields(cell, op, room).defaults(),
  "static async method": (cell, op, room) => Fields.of(new Fields(cell, op, room)),
  "super in async methods": (cell, op, room) => new Derived(cell, op, room).base(),
  // --- generators and iterators
  async "for await over shared promises"(cell, op, room) {
    for await (const _ of [room.memo("f1"), room.memo("f2"), 3]) void _;
    await cell.mark(op);
  },
  async "in the body of for await"(cell, op, room) {
    for await (const value of [room.memo("b1"), room.memo("b2", () => pause(SHARED_MS).then(() => 2))])
      if (value === 2) await cell.mark(op);
  },
  async "break out of for await"(cell, op, room) {
    for await (const _ of numbers(room, "break", 5)) if (_ === 2) break;
    await cell.mark(op);
  },
  async "async generator, after await"(cell, op, room) {
    async function* generate() {
      await room.memo("generator");
      yield await cell.mark(op);
    }
    for await (const _ of generate()) void _;
  },
  async "async generator, after yield"(cell, op, room) {
    async function* generate() {
      yield room.memo("yielded");
      yield await cell.mark(op);
    }
    for await (const _ of generate()) void _;
  },
  async "async generator, finally at return()"(cell, op, room) {
    async function* generate() {
      try {
        for (;;) yield await room.memo("endless");
      } finally {
        await room.memo("return()");
        await cell.mark(op);
      }
    }
    for await (const _ of generate()) break;
  },
  async "async generator, throw()"(cell, op, room) {
    async function* generate() {
      try {
        yield room.memo("before throw()");
      } catch {
        await room.memo("throw()");
        yield await cell.mark(op);
      }
    }
    const iterator = generate();
    await iterator.next();
    await iterator.throw(new Error("meant"));
    await iterator.return();
  },
  async "yield*"(cell, op, room) {
    async function* generate() {
      yield* numbers(room, "delegated", 2);
      await cell.mark(op);
    }
    for await (const _ of generate()) void _;
  },
  async "a generator that objects share"(cell, op, room) {
    const shared = room.thing("generator", () => (async function* () {
      for (;;) yield pause(SHARED_MS / 4);
    })());
    await shared.next();
    await cell.mark(op);
  },
  async "a channel that objects share"(cell, op, room) {
    const channel = room.thing("channel", () => new Channel());
    room.soon("channel", () => {
      while (channel.readers > 0) channel.put(1);
    });
    for await (const _ of channel) break;
    await cell.mark(op);
  },
  async "Array.fromAsync"(cell, op, room) {
    await Array.fromAsync([room.memo("fromAsync"), room.memo("fromAsync 2")]);
    await cell.mark(op);
  },
  "coroutine of a plain generator": (cell, op, room) => coroutine((function* () {
    yield room.memo("coroutine");
    try {
      yield room.failure("coroutine fails");
    } catch {
      yield cell.mark(op);
    }
  })()),
  // --- callbacks of promises
  "then()": (cell, op, room) => room.memo("then").then(() => cell.mark(op)),
  "then() of a failure": (cell, op, room) => room.failure("then").then(() => {}, () => cell.mark(op)),
  "catch()": (cell, op, room) => room.failure("catch").catch(() => cell.mark(op)),
  "finally()": (cell, op, room) => room.memo("finally()").finally(() => cell.mark(op)),
  "a chain of then()": (cell, op, room) => room.memo("chain").then(() => room.memo("chain 2")).then(() => {}).then(() => cell.mark(op)),
  async "Promise.all"(cell, op, room) {
    await Promise.all([room.memo("all 1"), room.memo("all 2"), pause(1)]);
    await cell.mark(op);
  },
  async "Promise.all fails"(cell, op, room) {
    await Promise.all([room.memo("all 3"), room.failure("all")]).catch(() => cell.mark(op));
  },
  async "Promise.race"(cell, op, room) {
    await Promise.race([room.memo("race"), room.memo("race 2"), new Promise(() => {})]);
    await cell.mark(op);
  },
  async "Promise.any"(cell, op, room) {
    await Promise.any([room.failure("any"), room.memo("any 2")]);
    await cell.mark(op);
  },
  async "Promise.allSettled"(cell, op, room) {
    await Promise.allSettled([room.failure("settled"), room.memo("settled 2")]);
    await cell.mark(op);
  },
  async "Promise.withResolvers, settled with a shared promise"(cell, op, room) {
    const { promise, resolve } = Promise.withResolvers();
    resolve(room.memo("withResolvers"));
    await promise;
    await cell.mark(op);
  },
  async "a class that extends Promise"(cell, op, room) {
    await room.memo("later", () => new Later((resolve) => setTimeout(resolve, SHARED_MS)));
    await cell.mark(op);
  },
  "then() of a class that extends Promise": (cell, op, room) =>
    room.memo("later then", () => new Later((resolve) => setTimeout(resolve, SHARED_MS))).then(() => cell.mark(op)),
  async "a thenable"(cell, op, room) {
    await new Thenable(room.memo("thenable"));
    await cell.mark(op);
  },
  async "a thenable that calls back at once"(cell, op, room) {
    await room.memo("before thenable");
    await { then: (resolve) => resolve() };
    await cell.mark(op);
  },
  async "a shared thenable with a list of its own"(cell, op, room) {
    const list = room.thing("thenable list", () => []);
    room.soon("thenable list", () => list.splice(0).forEach((each) => each()));
    await { then: (resolve) => void list.push(resolve) };
    await cell.mark(op);
  },
  async "a promise resolved with a thenable of another"(cell, op, room) {
    await room.memo("resolved thenable", () => Promise.resolve(new Thenable(pause(SHARED_MS))));
    await cell.mark(op);
  },
  // --- locks, queues, loaders
  async "a lock made of a chain of promises"(cell, op, room) {
    await room.thing("chain lock", () => new ChainLock()).run(async () => {
      await pause(1);
      await cell.mark(op);
    });
  },
  async "a lock made of a list of resolvers"(cell, op, room) {
    const lock = room.thing("semaphore", () => new Semaphore(1));
    await lock.enter();
    try {
      await pause(1);
      await cell.mark(op);
    } finally {
      lock.leave();
    }
  },
  async "a semaphore of two, left in finally"(cell, op, room) {
    const lock = room.thing("semaphore 2", () => new Semaphore(2));
    await lock.enter();
    try {
      await cell.mark(op);
      await pause(1);
    } finally {
      lock.leave();
    }
  },
  async "a baton: each wakes the one before"(cell, op, room) {
    const batons = room.thing("batons", () => []);
    const own = new Deferred();
    const last = batons.at(-1);
    batons.push(own);
    if (last === undefined) room.soon("baton", () => batons.splice(0).at(-1)?.resolve());
    await own.promise;
    last?.resolve();
    await cell.mark(op);
  },
  async "a queue that one of them works off"(cell, op, room) {
    await room.thing("work queue", () => new WorkQueue()).push(() => pause(1));
    await cell.mark(op);
  },
  async "a loader that gathers keys for a microtask"(cell, op, room) {
    const loader = room.thing("microtask loader", () => new Batch((flush) => queueMicrotask(flush)));
    await room.memo("gather");
    if ((await loader.load(op)) !== op) cell.fault(`${op}: the loader gave another's value`);
    await cell.mark(op);
  },
  async "a loader that gathers keys for some time"(cell, op, room) {
    const loader = room.thing("timer loader", () => new Batch((flush) => setTimeout(flush, SHARED_MS)));
    if ((await loader.load(op)) !== op) cell.fault(`${op}: the loader gave another's value`);
    await cell.mark(op);
  },
  // --- events
  async "an emitter"(cell, op, room) {
    const emitter = room.thing("emitter", () => new Emitter());
    room.soon("emit", () => emitter.emit("go"));
    await new Promise((resolve) => emitter.once("go", resolve));
    await cell.mark(op);
  },
  async "an EventTarget"(cell, op, room) {
    const target = room.thing("target", () => new EventTarget());
    room.soon("dispatch", () => target.dispatchEvent(new Event("go")));
    await new Promise((resolve) => target.addEventListener("go", resolve, { once: true }));
    await cell.mark(op);
  },
  async "an AbortSignal"(cell, op, room) {
    const held = room.thing("controller", () => ({ controller: null }));
    if (held.controller === null || held.controller.signal.aborted) held.controller = new AbortController();
    const { controller } = held;
    room.soon("abort", () => controller.abort());
    await new Promise((resolve) => controller.signal.addEventListener("abort", resolve));
    await cell.mark(op);
  },
  async "scheduler.wait that is aborted"(cell, op, room) {
    const controllers = room.thing("wait controllers", () => []);
    const controller = new AbortController();
    controllers.push(controller);
    room.soon("abort waits", () => controllers.splice(0).forEach((each) => each.abort()));
    await scheduler.wait(60_000, { signal: controller.signal }).catch(() => {});
    await cell.mark(op);
  },
  async "a MessageChannel"(cell, op, room) {
    await room.memo("ports", () => new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port2.onmessage = () => {
        port1.close();
        resolve();
      };
      setTimeout(() => port1.postMessage(1), SHARED_MS);
    }));
    await cell.mark(op);
  },
  // --- timers and microtasks
  async "setTimeout of another"(cell, op, room) {
    const list = room.thing("timeouts", () => []);
    if (list.length === 0) setTimeout(() => list.splice(0).forEach((resolve) => resolve()), SHARED_MS);
    await new Promise((resolve) => list.push(resolve));
    await cell.mark(op);
  },
  async "setInterval of another"(cell, op, room) {
    const list = room.thing("intervals", () => []);
    if (list.length === 0) {
      const id = setInterval(() => {
        clearInterval(id);
        list.splice(0).forEach((resolve) => resolve());
      }, SHARED_MS);
    }
    await new Promise((resolve) => list.push(resolve));
    await cell.mark(op);
  },
  async "setTimeout callback"(cell, op, room) {
    await room.memo("before timeout");
    await new Promise((resolve, reject) => setTimeout(() => cell.mark(op).then(resolve, reject), 1));
  },
  async "queueMicrotask callback"(cell, op, room) {
    await room.memo("before microtask");
    await new Promise((resolve, reject) => queueMicrotask(() => cell.mark(op).then(resolve, reject)));
  },
  async "scheduler.wait, shared"(cell, op, room) {
    await room.memo("wait", () => scheduler.wait(SHARED_MS));
    await cell.mark(op);
  },
  // --- streams
  async "read() of a shared stream"(cell, op, room) {
    const reader = room.thing("reader", () => new ReadableStream({
      async pull(controller) {
        await pause(SHARED_MS / 4);
        controller.enqueue(1);
      },
    }).getReader());
    await reader.read();
    await cell.mark(op);
  },
  async "for await over a branch of a shared stream"(cell, op, room) {
    const shared = room.thing("streams", () => ({ stream: null }));
    if (shared.stream === null) {
      shared.stream = new ReadableStream({
        async start(controller) {
          await pause(SHARED_MS);
          shared.stream = null;
          controller.enqueue("x");
          await pause(1);
          controller.close();
        },
      });
    }
    const [mine, rest] = shared.stream.tee();
    shared.stream = rest;
    for await (const _ of mine) void _;
    await cell.mark(op);
  },
  async "a TransformStream between objects"(cell, op, room) {
    const ends = room.thing("pipes", () => []);
    const { readable, writable } = new TransformStream();
    ends.push(writable);
    room.soon("pipes", () => ends.splice(0).forEach((end) => {
      const writer = end.getWriter();
      void writer.write("x");
      void writer.close();
    }));
    const reader = readable.getReader();
    await reader.read();
    await reader.read();
    await cell.mark(op);
  },
  async "pipeTo() of a stream that another fills"(cell, op, room) {
    const sources = room.thing("sources", () => []);
    const source = new ReadableStream({ start: (controller) => void sources.push(controller) });
    room.soon("sources", () => sources.splice(0).forEach((controller) => {
      controller.enqueue("x");
      controller.close();
    }));
    let taken = "";
    await source.pipeTo(new WritableStream({ write: (chunk) => void (taken += chunk) }));
    if (taken !== "x") cell.fault(`${op}: the stream gave ${taken}`);
    await cell.mark(op);
  },
  async "a writer that waits for another to read"(cell, op, room) {
    const readers = room.thing("readers", () => []);
    const { readable, writable } = new TransformStream(undefined, { highWaterMark: 1 });
    readers.push(readable.getReader());
    room.soon("readers", () => readers.splice(0).forEach((reader) => void reader.read()));
    const writer = writable.getWriter();
    await writer.write("x");
    await cell.mark(op);
  },
  async "the body of a shared Response"(cell, op, room) {
    const response = await room.memo("response", async () => {
      await pause(SHARED_MS);
      return new Response(JSON.stringify({ a: 1 }));
    });
    await response.clone().json();
    await cell.mark(op);
  },
  async "CompressionStream, shared"(cell, op, room) {
    await room.memo("compression", () => new Response(new Response(slowly("x".repeat(100_000))).body.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
    await cell.mark(op);
  },
  async "HTMLRewriter with an async handler, shared"(cell, op, room) {
    await room.memo("rewriter", () => new HTMLRewriter().on("p", { element: async () => pause(SHARED_MS) }).transform(new Response("<p>x</p>")).text());
    await cell.mark(op);
  },
  // --- what the platform promises
  async "crypto.subtle, shared"(cell, op, room) {
    await room.memo("digest", () => crypto.subtle.digest("SHA-256", new Uint8Array(20_000_000)));
    await cell.mark(op);
  },
  async "WebAssembly.compile, shared"(cell, op, room) {
    await room.memo("wasm", async () => {
      await pause(SHARED_MS);
      await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
    });
    await cell.mark(op);
  },
  async "fetch, shared"(cell, op, room) {
    const response = await room.memo("fetch", () => cell.env.SELF.fetch("https://self/slow"));
    await response.clone().text();
    await cell.mark(op);
  },
  async "KV, shared"(cell, op, room) {
    await room.memo("kv", async () => {
      await cell.env.KV.put("x", "y");
      return cell.env.KV.get("x");
    });
    await cell.mark(op);
  },
  async "D1, shared"(cell, op, room) {
    await room.memo("d1", () => cell.env.DB.prepare("SELECT 1 AS one").first());
    await cell.mark(op);
  },
  async "R2, shared"(cell, op, room) {
    const object = await room.memo("r2", async () => {
      await cell.env.BUCKET.put("x", "y");
      return cell.env.BUCKET.get("x");
    });
    void object;
    await cell.mark(op);
  },
  async "caches, shared"(cell, op, room) {
    await room.memo("cache", async () => {
      await caches.default.put("https://cache.test/x", new Response(slowly("x"), { headers: { "cache-control": "max-age=60" } }));
      return (await caches.default.match("https://cache.test/x")).text();
    });
    await cell.mark(op);
  },
  async "a call of another object, shared"(cell, op, room) {
    await room.memo("call", () => cell.env.HELPER.getByName("h").slow());
    await cell.mark(op);
  },
  async "stub.fetch of another object, shared"(cell, op, room) {
    const response = await room.memo("stub.fetch", () => cell.env.HELPER.getByName("h").fetch("https://h/"));
    void response;
    await cell.mark(op);
  },
  async "a method of a promised stub, shared"(cell, op, room) {
    await room.memo("pipelined", () => cell.env.HELPER.getByName("h").counter().slow());
    await cell.mark(op);
  },
  async "another object's storage promise"(cell, op, room) {
    await room.memo("storage", () => cell.ctx.storage.get("nothing"));
    await room.memo("storage 2", () => pause(SHARED_MS).then(() => cell.ctx.storage.list({ limit: 1 })));
    await cell.mark(op);
  },
  async "another object's storage.sync()"(cell, op, room) {
    await room.memo("sync", async () => {
      await pause(SHARED_MS);
      await cell.ctx.storage.put("sync", op);
      await cell.ctx.storage.sync();
    });
    await cell.mark(op);
  },
  // --- what belongs to an object
  async "waitUntil"(cell, op, room) {
    const done = (async () => {
      await room.memo("waitUntil");
      await cell.mark(op);
    })();
    cell.ctx.waitUntil(done);
    await done;
  },
  async "blockConcurrencyWhile that waits for another"(cell, op, room) {
    await cell.ctx.blockConcurrencyWhile(async () => {
      await room.memo("section");
      await cell.mark(op);
    });
  },
  async "blockConcurrencyWhile after a wait for another"(cell, op, room) {
    await room.memo("before section");
    await cell.ctx.blockConcurrencyWhile(async () => {
      await pause(1);
      await cell.mark(op);
    });
  },
  async "transaction that waits for another"(cell, op, room) {
    await cell.ctx.storage.transaction(async (txn) => {
      await room.memo("transaction");
      await txn.put(`txn ${op}`, 1);
      await cell.mark(op);
    });
  },
  async "transaction after a wait for another"(cell, op, room) {
    await room.memo("before transaction");
    await cell.ctx.storage.transaction(async (txn) => {
      await txn.put(`txn ${op}`, 1);
      await pause(1);
      await cell.mark(op);
    });
  },
  async "transactionSync after a wait for another"(cell, op, room) {
    await room.memo("before transactionSync");
    cell.ctx.storage.transactionSync(() => cell.markSync(op));
  },
  async "SQL after a wait for another"(cell, op, room) {
    await room.memo("sql");
    cell.markSync(op);
  },
  async "a cursor that is read after a wait for another"(cell, op, room) {
    const cursor = cell.ctx.storage.sql.exec("SELECT ? AS op UNION ALL SELECT ?", op, op);
    cursor.next();
    await room.memo("cursor");
    if (cursor.next().value?.op !== op) cell.fault(`${op}: its cursor gave another's row`);
    await cell.mark(op);
  },
  async "a write that nobody awaits"(cell, op, room) {
    await room.memo("not awaited");
    void cell.mark(op);
  },
  async "a write long after"(cell, op, room) {
    await room.memo("long 1");
    await pause(2);
    await room.memo("long 2");
    await cell.mark(op);
  },
  async "a function lent to another object"(cell, op, room) {
    await room.memo("before lending");
    await cell.env.HELPER.getByName("h").callback(async (x) => {
      await room.memo("lent");
      await cell.mark(op, { als: false }); // a call carries no AsyncLocalStorage value
      return x;
    });
  },
  // --- another worker of the server
  async "a call of another worker, shared"(cell, op, room) {
    await room.memo("peer", () => cell.env.PEER.wait("shared"));
    await cell.mark(op);
  },
  async "a shared promise of another worker"(cell, op) {
    await cell.env.PEER.wait("own");
    await cell.mark(op);
  },
  async "an object of another worker, shared"(cell, op, room) {
    await room.memo("keeper", () => cell.env.KEEPER.getByName("k").wait("shared"));
    await cell.mark(op);
  },
  async "functions that another worker calls in one turn"(cell, op, room) {
    await cell.env.PEER.gather("gather", async () => {
      await room.memo("gathered");
      await cell.mark(op, LENT);
    });
  },
  async "functions that another worker calls one after the other"(cell, op, room) {
    await cell.env.PEER.inTurn("turn", async () => {
      await room.memo("in turn", () => pause(1));
      await cell.mark(op, LENT);
    });
  },
  ...typed,
  ...extra,
};

/** Code of another: the line of the log and the AsyncLocalStorage value may be the other's. */
const FOREIGN = { log: false, als: false };

export const foreign = {
  async "a task in a queue that one of them works off"(cell, op, room) {
    await room.thing("foreign queue", () => new WorkQueue()).push(() => cell.mark(op, FOREIGN));
  },
  async "a listener that another calls"(cell, op, room) {
    const emitter = room.thing("foreign emitter", () => new Emitter());
    room.soon("foreign emit", () => emitter.emit("go"));
    await new Promise((resolve, reject) => emitter.once("go", () => cell.mark(op, FOREIGN).then(resolve, reject)));
  },
  async "a listener that another calls, sync"(cell, op, room) {
    const emitter = room.thing("foreign emitter 2", () => new Emitter());
    room.soon("foreign emit 2", () => emitter.emit("go"));
    await new Promise((resolve) => emitter.once("go", () => resolve(cell.markSync(op, FOREIGN))));
  },
  async "a then() that the thenable calls in another's turn"(cell, op, room) {
    const list = room.thing("foreign thenables", () => []);
    room.soon("foreign thenables", () => list.splice(0).forEach((each) => each()));
    const thenable = { then: (resolve) => void list.push(() => cell.mark(op, FOREIGN).then(resolve)) };
    await thenable;
  },
  async "all write to all"(cell, op, room) {
    const all = room.thing("all cells", () => new Map());
    all.set(op, cell);
    await room.memo("all", async () => {
      await pause(SHARED_MS);
      const list = [...all];
      all.clear();
      await Promise.all(list.map(([each, owner]) => owner.mark(each, FOREIGN)));
    });
  },
  async "a transaction of another"(cell, op, room) {
    await room.thing("foreign transactions", () => new WorkQueue()).push(() =>
      cell.ctx.storage.transaction(async () => {
        await pause(1);
        await cell.mark(op, FOREIGN);
      }));
  },
  async "transactionSync of another"(cell, op, room) {
    await room.thing("foreign transactionSync", () => new WorkQueue()).push(async () =>
      cell.ctx.storage.transactionSync(() => cell.markSync(op, FOREIGN)));
  },
  async "blockConcurrencyWhile of another"(cell, op, room) {
    await room.thing("foreign sections", () => new WorkQueue()).push(() =>
      cell.ctx.blockConcurrencyWhile(async () => {
        await pause(1);
        await cell.mark(op, FOREIGN);
      }));
  },
  async "waitUntil of another"(cell, op, room) {
    await room.thing("foreign waitUntil", () => new WorkQueue()).push(async () => {
      const done = pause(1).then(() => cell.mark(op, FOREIGN));
      cell.ctx.waitUntil(done);
      await done;
    });
  },
};

/**
 * Those in which code of one works for others when its own event has ended. An object that leaves memory takes
 * its timers along, and one that was reset its code too (prelude/internal/turn.js, T2), so they are for objects
 * that stay.
 */
export const loops = [
  "a queue that one of them works off", "read() of a shared stream", "a generator that objects share",
  "a task in a queue that one of them works off", "a transaction of another", "transactionSync of another", "blockConcurrencyWhile of another", "waitUntil of another",
];
