// The same as ways.js, in what TypeScript adds and what is lowered for the engine.
import { Room, SHARED_MS, pause } from "./shared.js";

interface Cell {
  mark(op: string): Promise<void>;
  fault(text: string): void;
}
type Way = (cell: Cell, op: string, room: Room) => Promise<unknown>;

enum Key { Using = "using", Decorated = "decorated", Accessor = "accessor" }

/** A decorator that waits before and after the method. */
function waits<This extends { room: Room }, A extends unknown[], R>(method: (this: This, ...args: A) => Promise<R>) {
  return async function (this: This, ...args: A): Promise<R> {
    await this.room.memo(Key.Decorated);
    const result = await method.call(this, ...args);
    await this.room.memo(`${Key.Decorated} after`);
    return result;
  };
}

class Typed<T extends Cell> {
  accessor waited: Promise<unknown> | null = null;
  constructor(private readonly cell: T, readonly op: string, public room: Room) {}
  @waits
  async decorated(): Promise<void> {
    await this.cell.mark(this.op);
  }
  async viaAccessor<X>(this: Typed<T>, _unused?: X): Promise<void> {
    this.waited = this.room.memo(Key.Accessor) as Promise<unknown>;
    (await this.waited!) satisfies unknown;
    await this.cell!.mark(this.op as string);
  }
}

namespace Spaces {
  export const inner = async (cell: Cell, op: string, room: Room) => {
    await room.memo("namespace");
    await cell.mark(op);
  };
}

export const typed: Record<string, Way> = {
  async "typescript: await"(cell, op, room) {
    (await room.memo("typed")) as void;
    await cell.mark(op);
  },
  "typescript: decorated async method": (cell, op, room) => new Typed(cell, op, room).decorated(),
  "typescript: accessor": (cell, op, room) => new Typed(cell, op, room).viaAccessor<number>(),
  "typescript: namespace": (cell, op, room) => Spaces.inner(cell, op, room),
  async "await using, after the block"(cell, op, room) {
    {
      await using resource = { [Symbol.asyncDispose]: () => room.memo(Key.Using) as Promise<void> };
      void resource;
    }
    await cell.mark(op);
  },
  async "await using, in the disposal"(cell, op, room) {
    await using _ = {
      async [Symbol.asyncDispose]() {
        await room.memo("dispose");
        await cell.mark(op);
      },
    };
    await room.memo("before dispose");
  },
  async "using, in the disposal"(cell, op, room) {
    let done: Promise<void> = Promise.resolve();
    await (async () => {
      using _ = { [Symbol.dispose]: () => void (done = cell.mark(op)) };
      await room.memo("using");
    })();
    await done;
  },
  async "for await with await using"(cell, op, room) {
    async function* resources() {
      yield { [Symbol.asyncDispose]: () => room.memo("for using") as Promise<void> };
      await pause(SHARED_MS / 4);
    }
    for await (await using resource of resources()) void resource;
    await cell.mark(op);
  },
};
