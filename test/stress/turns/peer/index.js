// Another worker of the same server, with shared things of its own: it is called by objects of the
// first one, keeps the functions they lend, and calls those of all of them in one turn.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import { room } from "./shared.js";

export class Peer extends WorkerEntrypoint {
  /** All who ask wait for the same. */
  async wait(group) {
    await room(group).memo("peer");
    return group;
  }
  /** Calls what all have lent, in one turn. */
  async gather(group, back) {
    const { promise, resolve, reject } = Promise.withResolvers();
    const list = room(group).thing("lent", () => []);
    const kept = back.dup();
    list.push(() => kept().then(resolve, reject).finally(() => kept[Symbol.dispose]()));
    room(group).soon("lent", () => list.splice(0).forEach((call) => call()));
    return promise;
  }
  /** The same, one after the other. */
  async inTurn(group, back) {
    const kept = back.dup();
    const held = room(group).thing("chain", () => ({ chain: Promise.resolve() }));
    const mine = held.chain.then(() => kept());
    held.chain = mine.then(() => kept[Symbol.dispose](), () => kept[Symbol.dispose]());
    return mine;
  }
}

export class Keeper extends DurableObject {
  async wait(group) {
    await room(group).memo("keeper");
    await this.ctx.storage.put("seen", group);
    return group;
  }
}

export default { fetch: () => new Response("peer") };
