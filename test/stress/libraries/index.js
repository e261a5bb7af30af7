// The worker of test/stress/libraries.mjs: objects that write inside, or after, what libraries at module level share between
// them: locks, queues, caches, batches, buses. Nobody wrote those for objects that take turns.
import { EventEmitter, once } from "node:events";
import { DurableObject } from "cloudflare:workers";
import { QueryClient } from "@tanstack/query-core";
import AsyncLock from "async-lock";
import { Mutex, Semaphore } from "async-mutex";
import { Sema } from "async-sema";
import Bluebird from "bluebird";
import Bottleneck from "bottleneck/light.js";
import co from "co";
import DataLoader from "dataloader";
import { Deferred, Effect, Queue } from "effect";
import Emittery from "emittery";
import fastq from "fastq";
import genericPool from "generic-pool";
import { LRUCache } from "lru-cache";
import mitt from "mitt";
import pLimit from "p-limit";
import pMemoize from "p-memoize";
import PQueue from "p-queue";
import pThrottle from "p-throttle";
import Q from "q";
import { Subject, concatMap, delay, filter, firstValueFrom, from, of, shareReplay, switchMap, timer } from "rxjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** Made by whoever first asks, and shared from then on: some cannot be made in global scope. */
const lazily = (make) => {
  let made;
  return () => (made ??= make());
};

const mutex = new Mutex(), semaphore = new Semaphore(2), lock = new AsyncLock(), sema = new Sema(2);
const queue = new PQueue({ concurrency: 2 }), limit = pLimit(2), bottleneck = new Bottleneck({ maxConcurrent: 1 });
const jobs = fastq.promise(async (job) => {
  await sleep(1);
  return job();
}, 2);
const loader = new DataLoader(async (keys) => {
  await sleep(3);
  return keys;
}, { cache: false });
const lru = new LRUCache({ max: 10, ttl: 20, fetchMethod: async (key) => {
  await sleep(5);
  return key;
} });
const memo = pMemoize(async (key) => {
  await sleep(5);
  return key;
});
const throttle = pThrottle({ limit: 50, interval: 100 })((write) => write());
const emittery = new Emittery(), bus = mitt(), emitter = new EventEmitter();
emitter.setMaxListeners(0);
const asked = new Subject(), answered = new Subject();
asked.pipe(concatMap((n) => of(n).pipe(delay(1)))).subscribe((n) => answered.next(n));
const late = lazily(() => timer(30).pipe(shareReplay(1)));
const queries = lazily(() => new QueryClient({ defaultOptions: { queries: { staleTime: 10, retry: false } } }));
const effects = lazily(() => Effect.runSync(Queue.unbounded()));
const pool = lazily(() => genericPool.createPool({ create: async () => ({}), destroy: async () => {} }, { max: 2 }));
let bluebird = null, q = null, last = 0;

const ways = {
  "async-mutex": (write) => mutex.runExclusive(async () => {
    await sleep(1);
    await write();
  }),
  "async-mutex, acquire()": async (write) => {
    const release = await mutex.acquire();
    try {
      await sleep(1);
      await write();
    } finally {
      release();
    }
  },
  "async-mutex, Semaphore": (write) => semaphore.runExclusive(() => sleep(1).then(write)),
  "async-lock": (write) => lock.acquire("a", async () => {
    await sleep(1);
    await write();
  }),
  "async-lock with callbacks": (write) => new Promise((resolve, reject) => {
    lock.acquire("b", (done) => {
      setTimeout(() => write().then(() => done(null, 1), done), 1);
    }, (error) => (error ? reject(error) : resolve()));
  }),
  "async-sema": async (write) => {
    await sema.acquire();
    try {
      await sleep(1);
      await write();
    } finally {
      sema.release();
    }
  },
  "p-queue": (write) => queue.add(() => sleep(1).then(write)),
  "p-limit": (write) => limit(async () => {
    await sleep(1);
    await write();
  }),
  bottleneck: (write) => bottleneck.schedule(() => sleep(1).then(write)),
  fastq: (write) => jobs.push(write),
  "p-throttle": (write) => throttle(write),
  dataloader: async (write) => {
    await loader.load(1);
    await write();
  },
  "dataloader, then()": (write) => loader.load(2).then(() => write()),
  "lru-cache": async (write) => {
    await lru.fetch("a");
    await write();
  },
  "p-memoize": async (write) => {
    await memo("a");
    await write();
  },
  "@tanstack/query-core": async (write) => {
    await queries().fetchQuery({ queryKey: ["a"], queryFn: () => sleep(3).then(() => 1) });
    await write();
  },
  rxjs: async (write) => {
    const n = ++last, answer = firstValueFrom(answered.pipe(filter((each) => each === n)));
    asked.next(n);
    await answer;
    await write();
  },
  "rxjs, inside": (write) => firstValueFrom(timer(2).pipe(switchMap(() => from(write())))),
  "rxjs, shareReplay()": async (write) => {
    await firstValueFrom(late());
    await write();
  },
  emittery: async (write) => {
    const heard = emittery.once("go");
    setTimeout(() => emittery.emit("go", 1), 2);
    await heard;
    await write();
  },
  mitt: (write) => new Promise((resolve, reject) => {
    const handler = () => {
      bus.off("go", handler);
      write().then(resolve, reject);
    };
    bus.on("go", handler);
    setTimeout(() => bus.emit("go"), 2);
  }),
  "node:events": async (write) => {
    const heard = once(emitter, "go");
    setTimeout(() => emitter.emit("go"), 2);
    await heard;
    await write();
  },
  effect: (write) => Effect.runPromise(Effect.sleep("2 millis").pipe(Effect.flatMap(() => Effect.promise(write)))),
  "effect, Queue": async (write) => {
    const deferred = Effect.runSync(Deferred.make());
    await Effect.runPromise(Queue.offer(effects(), deferred));
    setTimeout(() => Effect.runPromise(Queue.take(effects()).pipe(Effect.flatMap((each) => Deferred.succeed(each, 1)))), 2);
    await Effect.runPromise(Deferred.await(deferred));
    await write();
  },
  bluebird: async (write) => {
    bluebird ??= Bluebird.delay(5).then(() => { bluebird = null; });
    await bluebird;
    await write();
  },
  "bluebird, then()": (write) => Bluebird.delay(2).then(() => write()),
  q: async (write) => {
    q ??= Q.delay(5).then(() => { q = null; });
    await q;
    await write();
  },
  "q, then()": (write) => Q.delay(2).then(() => write()),
  co: (write) => co(function* () {
    yield sleep(1);
    yield write();
  }),
  "generic-pool": async (write) => {
    const resource = await pool().acquire();
    try {
      await sleep(1);
      await write();
    } finally {
      pool().release(resource);
    }
  },
};

export class Cell extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS ops(op TEXT PRIMARY KEY)");
  }
  async save(way, op) {
    await ways[way](async () => {
      this.ctx.storage.sql.exec("INSERT INTO ops VALUES(?)", op);
      await this.ctx.storage.put(op, this.ctx.id.name);
    });
    return { op, name: this.ctx.id.name };
  }
  dump() {
    const { storage } = this.ctx;
    return { ops: [...storage.sql.exec("SELECT op FROM ops").raw()].map(([op]) => op), pairs: [...storage.kv.list()] };
  }
}

export default {
  async fetch(request, env) {
    const [, what, name, way, op] = new URL(request.url).pathname.split("/").map(decodeURIComponent);
    if (what === "ways") return Response.json(Object.keys(ways));
    const stub = env.CELL.getByName(name);
    try {
      return Response.json(await (what === "dump" ? stub.dump() : stub.save(way, op)));
    } catch (error) {
      return new Response(error.message, { status: 500 });
    }
  },
};
