// Clients of a campaign: many at once, on lists (objects), keys (KV), rows (D1), messages (queues), bells (alarms) and bodies (R2). Each try at one node is
// one operation of the judge's. A client asks the node that answered last, then the one that it is referred to, then any.
import { createHash } from "node:crypto";
import { pause } from "./world.mjs";

/** Numbers below n, from a seed. */
export function randomFrom(seed) {
  let state = seed >>> 0 || 1;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) % n;
  };
}

const TRIES = 6;

/** The body of a version of a key: the same for whoever asks. */
export function body(key, version) {
  const digest = createHash("md5").update(`${key}/${version}`).digest();
  const sizes = [0, 1, 700, 9_000, 70_000, 300_000, 1_200_000];
  return Buffer.alloc(sizes[digest[0] % sizes.length] + (digest[1] % 64), digest);
}

export class Load {
  counts = {}; // by kind: {tries, ok}
  where = new Map(); // list: who ran it last
  #route = new Map();
  #number = 0;
  #bodyKeys = [];
  #keys = [];

  constructor(world, judge, { seed, objects, clients, r2, think }) {
    Object.assign(this, { world, judge, random: randomFrom(seed ^ 0x5bd1e995), r2, think });
    this.objects = Array.from({ length: objects }, (_, i) => `list-${i}`);
    this.kinds = ["add", "add", "add", "add", "state", "state", "state", "put", "get", "get", "insert", "count", "send", "ring", ...(r2 ? ["store", "fetch"] : [])];
    this.clientCount = clients;
  }

  start() {
    this.done = Promise.all(Array.from({ length: this.clientCount }, (_, i) => this.#client(i)));
  }

  async stop() {
    this.over = true;
    await this.done;
  }

  async #client(number) {
    while (!this.over) {
      await this[`_${this.kinds[this.random(this.kinds.length)]}`](number);
      await pause(this.random(2 * this.think));
    }
  }

  /** Tries nodes until `one(node)` answers 200, or `again(answer)` says no. */
  async #tries(kind, key, one, again = () => true) {
    const count = (this.counts[kind] ??= { tries: 0, ok: 0 });
    const names = this.world.names;
    let node = this.#route.get(key) ?? names[this.random(names.length)], answer;
    for (let i = 0; i < TRIES; i++) {
      count.tries++;
      answer = await one(node);
      if (answer.status === 200) {
        count.ok++;
        this.#route.set(key, node);
        return answer;
      }
      if (!again(answer)) break;
      this.#route.delete(key);
      const referred = i < 3 && this.world.nodes.has(answer.owner) && answer.owner !== node;
      node = referred ? answer.owner : names[this.random(names.length)];
      await pause(referred ? 2 : 40 + this.random(80));
    }
    return answer;
  }

  id() {
    return `v${++this.#number}`;
  }

  pick(list) {
    return list[this.random(list.length)];
  }

  /** One try to write, as an operation of the judge's. */
  async add(object, node, timeout) {
    const op = { write: this.id(), node, asked: performance.now() };
    const answer = await this.world.try(node, `/add/${object}/${op.write}`, { timeout });
    this.judge.list(object, op, answer);
    if (op.ok) this.where.set(object, answer.value.node);
    return answer;
  }

  async state(object, node, timeout) {
    const op = { node, asked: performance.now() };
    const answer = await this.world.try(node, `/state/${object}`, { timeout });
    this.judge.list(object, op, answer);
    if (op.ok) this.where.set(object, answer.value.node);
    return answer;
  }

  _add() {
    const object = this.pick(this.objects);
    return this.#tries("add", object, (node) => this.add(object, node));
  }

  _state() {
    const object = this.pick(this.objects);
    return this.#tries("state", object, (node) => this.state(object, node));
  }

  _insert() {
    return this.#tries("insert", "d1", async (node) => {
      const op = { write: this.id(), node, asked: performance.now() };
      const answer = await this.world.try(node, `/insert/${op.write}`);
      this.judge.list("d1", op, answer);
      return answer;
    });
  }

  _count() {
    return this.#tries("count", "d1", async (node) => {
      const op = { node, asked: performance.now() };
      const answer = await this.world.try(node, "/count");
      this.judge.list("d1", op, answer);
      return answer;
    });
  }

  _send() {
    return this.#tries("send", "queue", async (node) => {
      const id = this.id();
      this.judge.sent.set(id, "unknown");
      const answer = await this.world.try(node, `/send/${id}`);
      if (answer.status === 200 || answer.refused) this.judge.sent.set(id, answer.status === 200 ? "ok" : "refused");
      return answer;
    });
  }

  _ring() {
    return this.#tries("ring", "bell", async (node) => {
      const bell = `bell-${this.id()}`, times = 1 + this.random(3);
      const rung = { times, ok: false };
      this.judge.rung.set(bell, rung);
      const answer = await this.world.try(node, `/ring/${bell}/${times}/${200 + this.random(1500)}`);
      rung.ok = answer.status === 200;
      if (answer.refused) this.judge.rung.delete(bell);
      return answer;
    });
  }

  /** A write of a register by its only writer; the key is left when the outcome is not known. */
  async #write(kind, keys, number, send) {
    const slot = number * 4 + this.random(4);
    const key = (keys[slot] ??= { name: `${kind}-${slot}-${this.id()}`, version: 0 });
    const register = this.judge.register(key.name), version = ++key.version;
    await this.#tries(kind, kind, async (node) => {
      const op = { version, node, asked: performance.now(), answered: Infinity };
      register.writes.push(op);
      const answer = await send(node, key.name, version);
      op.refused = Boolean(answer.refused);
      if (answer.status === 200) Object.assign(op, { ok: true, answered: performance.now() });
      if (answer.status !== 200 && !answer.refused) keys[slot] = undefined;
      return answer;
    }, (answer) => answer.refused);
    if (!register.writes.at(-1).ok) keys[slot] = undefined;
  }

  _put(number) {
    return this.#write("put", this.#keys, number, (node, name, version) => this.world.try(node, `/put/${name}/v${version}`));
  }

  _store(number) {
    return this.#write("store", this.#bodyKeys, number, (node, name, version) => this.world.try(node, `/store/${name}/${version}`, { body: body(name, version), timeout: 10_000 }));
  }

  async #read(kind, name, send) {
    const register = this.judge.register(name);
    return this.#tries(kind, kind === "get" ? "put" : "store", async (node) => {
      const op = { node, asked: performance.now() };
      const answer = await send(node);
      if (answer.status === 200) register.reads.push(Object.assign(op, { answered: performance.now(), ...this.seen(kind, name, answer) }));
      return answer;
    });
  }

  /** What a read tells: {version}, and `damaged` if a body is not what it should be. */
  seen(kind, name, answer) {
    if (kind === "get") return { version: answer.value.value === null ? 0 : Number(answer.value.value.slice(1)) };
    const version = Number(answer.version), expected = body(name, version);
    if (version === 0 || expected.equals(answer.value)) return { version };
    return { version, damaged: `${answer.value.length} bytes for ${expected.length}` };
  }

  async _get() {
    const keys = this.#keys.filter(Boolean);
    if (keys.length) await this.get(this.pick(keys).name);
  }

  get(name) {
    return this.#read("get", name, (node) => this.world.try(node, `/get/${name}`));
  }

  async _fetch() {
    const keys = this.#bodyKeys.filter(Boolean);
    if (keys.length) await this.fetch(this.pick(keys).name);
  }

  fetch(name) {
    return this.#read("fetch", name, (node) => this.world.try(node, `/fetch/${name}`, { timeout: 10_000 }));
  }

  /** Asks any node, or whom it names, until one answers 200. */
  async ask(target, limit = 60_000) {
    let last;
    for (const deadline = Date.now() + limit; Date.now() < deadline; await pause(30))
      for (const node of this.world.names) {
        last = await this.world.try(node, target, { timeout: 10_000 });
        if (last.status !== 200 && this.world.nodes.has(last.owner)) last = await this.world.try(last.owner, target, { timeout: 10_000 });
        if (last.status === 200) return last;
      }
    throw new Error(`${target}: nobody answers: ${last?.status} ${last?.value}`);
  }
}
