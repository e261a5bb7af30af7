// A project with node:async_hooks, and other modules of Node.js that promise something.
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { EventEmitter, once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { PassThrough } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { SHARED_MS } from "./shared.js";

const storage = new AsyncLocalStorage();
export const started = true; // lowering leaves no await at the top level
export const hooks = true;
export const within = (op, run) => storage.run(op, run);
export const store = () => storage.getStore();

const later = promisify((value, done) => setTimeout(done, SHARED_MS, null, value));

/** Ways (ways.js) that only such a project has. */
export const extra = {
  async "node: events.once on a shared emitter"(cell, op, room) {
    const emitter = room.thing("node emitter", () => new EventEmitter().setMaxListeners(0));
    room.soon("node emit", () => emitter.emit("go"));
    await once(emitter, "go");
    await cell.mark(op);
  },
  async "node: timers/promises, shared"(cell, op, room) {
    await room.memo("node wait", () => wait(SHARED_MS));
    await cell.mark(op);
  },
  async "node: promisify, shared"(cell, op, room) {
    await room.memo("node promisify", () => later(1));
    await cell.mark(op);
  },
  async "node: pipeline, shared"(cell, op, room) {
    await room.memo("node pipeline", async () => {
      const through = new PassThrough();
      setTimeout(() => through.end("x"), SHARED_MS);
      await pipeline(through, new PassThrough().resume());
    });
    await cell.mark(op);
  },
  async "node: a bound function called in another's turn"(cell, op, room) {
    const done = Promise.withResolvers();
    const bound = AsyncLocalStorage.bind(() => cell.mark(op, { log: false }).then(done.resolve, done.reject));
    const list = room.thing("bound", () => []);
    list.push(bound);
    room.soon("bound", () => list.splice(0).forEach((each) => each()));
    await done.promise;
  },
  async "node: AsyncResource, run in another's turn"(cell, op, room) {
    const resource = new AsyncResource("CELL");
    const done = Promise.withResolvers();
    const list = room.thing("resources", () => []);
    list.push(() => resource.runInAsyncScope(() => cell.mark(op, { log: false }).then(done.resolve, done.reject)));
    room.soon("resources", () => list.splice(0).forEach((each) => each()));
    await done.promise;
  },
  async "node: snapshot"(cell, op, room) {
    const restore = AsyncLocalStorage.snapshot();
    await room.memo("snapshot");
    await restore(() => cell.mark(op));
  },
  async "node: exit and nested run"(cell, op, room) {
    await storage.run("inner", async () => {
      await room.memo("nested");
      if (storage.getStore() !== "inner") cell.fault(`${op}: the inner value is ${storage.getStore()}`);
    });
    await storage.exit(() => room.memo("exit"));
    await cell.mark(op);
  },
};
