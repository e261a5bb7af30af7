// What happens to nodes and engine in a campaign. The plan comes from the seed alone: which kinds, in which order, to whom and how long; what it meets
// depends on times. Faults wait for their turn: at most two nodes are hurt at once (a shard has two replicas), a disk is lost only when every shard
// has two, and one thing at a time happens to the engine.
//
// After each fault one list that the hurt node had is written to, by all nodes, until one acknowledges: the time to the first durable write.
import { randomFrom } from "./load.mjs";
import { until } from "./postgres.mjs";
import { pause } from "./world.mjs";

/** kind: how often it is in a plan, by weight. `net`: needs namespaces. */
const weights = {
  kill: { weight: 17 }, // kill -9 of the server; its witness says so
  "kill all": { weight: 12 }, // and of its witness, as when a machine dies
  freeze: { weight: 16 }, // SIGSTOP for 1 to 10 s
  blink: { weight: 8 }, // the same for 0.9 to 3.4 s: around the end of a lease, and of a session
  cut: { weight: 12 }, // a node from the engine
  "cut out": { weight: 4, net: true }, // in one direction
  "cut in": { weight: 4, net: true },
  peers: { weight: 5, net: true }, // a node from all others, not from the engine
  pair: { weight: 3, net: true }, // a node from one other, one way
  halves: { weight: 4, net: true }, // two nodes from the others
  "half cut": { weight: 3, net: true }, // and from the engine
  stop: { weight: 6 }, // SIGTERM, and started again
  away: { weight: 2 }, // the same, some seconds later
  disk: { weight: 2 }, // killed, its data directory lost, a new replica
  full: { weight: 2, small: true }, // its disk: it ends by itself, and comes back when there is room
  clone: { weight: 2 }, // a copy of its directory is started beside it: it ends by itself, the copy goes on
  drain: { weight: 2 },
  guest: { weight: 1 }, // a node joins, and leaves in order
  "engine restart": { weight: 1, engine: true }, // kill -9 of the primary, started in place
  "engine wait": { weight: 2, engine: true }, // the standby stands still; waits for it are cancelled
  "engine links": { weight: 1, engine: true }, // connections to the primary are ended
  "engine stall": { weight: 1, engine: true }, // all processes of the primary stand still for 1 to 10 s
  "engine back": { weight: 2, engine: true, alone: true }, // an older backup takes its place: all nodes end by themselves; the right one comes back
};
const failOvers = ["killed", "zombie", "frozen"];
const DECIDE = 4; // a node's exit code when an operator has to decide

export function plan({ seed, faults, failovers, net, small, only }) {
  const random = randomFrom(seed);
  const kinds = Object.entries(weights).filter(([kind, needs]) => (net || !needs.net) && (small || !needs.small) && (!only || only.includes(kind)));
  const total = kinds.reduce((sum, [, { weight }]) => sum + weight, 0);
  const list = [];
  for (let i = 0; i < faults; i++) {
    let left = random(total);
    const [kind, { engine, alone }] = kinds.find(([, { weight }]) => (left -= weight) < 0);
    list.push({ kind, engine: Boolean(engine), alone: Boolean(alone) });
  }
  for (let i = 0; i < failovers; i++) list.splice(random(list.length + 1), 0, { kind: `fail-over ${failOvers[i % 3]}`, engine: true });
  // Every fault has the same numbers, whatever it makes of them.
  return list.map((fault) => ({ ...fault, victim: random(1 << 30), other: random(1 << 30), ms: random(10_000), beside: random(10) < 3 }));
}

export class Attack {
  records = []; // {kind, victim, from, to, at, healedAt, write}; bare: while shards had one replica only, since a disk was lost
  stuck = [];
  #hurt = new Map(); // node: promise for when it is well
  #engineBusy = null;
  #diskLost = null;
  #guests = 0;

  constructor(world, load, { say, limit = 90_000 }) {
    Object.assign(this, { world, load, say, limit });
  }

  get #well() {
    return this.world.names.filter((name) => !this.#hurt.has(name) && this.world.nodes.get(name).url && !this.world.nodes.get(name).exit);
  }

  /** Begins a fault when it may be; resolves when the next may begin. */
  async next(fault) {
    if (fault.engine) {
      await this.#engineBusy;
      if (fault.alone) fault.beside = false;
      if (!fault.beside) await this.#calm();
      const done = (this.#engineBusy = this.#note(fault, null, () => this.#hurtEngine(fault)).finally(() => (this.#engineBusy = null)));
      if (!fault.beside) await done;
      return;
    }
    if (!fault.beside) await this.#calm();
    const count = fault.kind.startsWith("hal") ? 2 : 1;
    while (this.#hurt.size + count > 2) await Promise.race(this.#hurt.values());
    if (fault.kind === "disk") {
      await this.#calm();
      await this.#diskLost;
      await this.world.whole();
    }
    const well = this.#well, owners = well.filter((name) => [...this.load.where.values()].includes(name));
    if (well.length <= count) return;
    const from = owners.length ? owners : well;
    const victims = [from[fault.victim % from.length]];
    if (count === 2) victims.push(well.filter((name) => name !== victims[0])[fault.other % (well.length - 1)]);
    const done = this.#note(fault, victims[0], () => this.#hurtNode(fault, victims)).finally(() => victims.forEach((name) => this.#hurt.delete(name)));
    victims.forEach((name) => this.#hurt.set(name, done));
    if (!fault.beside) await done;
  }

  async #calm() {
    while (this.#hurt.size || this.#engineBusy) await Promise.all([...this.#hurt.values(), this.#engineBusy]);
  }

  async end() {
    await this.#calm();
    await this.#diskLost;
  }

  /** Whether there was a fault between two moments of the wall clock. */
  near(from, to) {
    return this.records.some((record) => record.at <= to && (record.healedAt ?? Infinity) >= from);
  }

  async #note(fault, victim, hurt) {
    const record = { kind: fault.kind, victim, bare: Boolean(this.#diskLost), at: Date.now(), from: performance.now() };
    this.records.push(record);
    try {
      await hurt.call(this, record);
    } catch (error) {
      this.stuck.push(`${fault.kind} of ${victim ?? "the engine"}: ${error.stack}`);
    }
    record.to = performance.now();
    record.healedAt = Date.now();
    this.say(`${fault.kind}${victim ? ` ${victim}` : ""}: ${record.write === undefined ? "" : `first durable write after ${Math.round(record.write)} ms, `}over after ${Math.round(record.to - record.from)} ms`);
  }

  /** A list that a node has just answered for. */
  async #listOf(node) {
    const { load } = this;
    const lists = load.objects.filter((object) => load.where.get(object) === node);
    for (let i = 0; i < 6 && lists.length; i++) {
      const object = load.pick(lists), answer = await load.state(object, node, 1000);
      if (answer.status === 200 && answer.value.node === node) return object;
    }
    return undefined;
  }

  /** Until somebody has acknowledged a write: how long it took since `from`. */
  async #firstWrite(object, record, from = performance.now()) {
    const { world, load } = this, deadline = from + this.limit;
    let done;
    const at = async (node) => {
      while (done === undefined && performance.now() < deadline) {
        const answer = await load.add(object, node, 1500);
        if (answer.status === 200) done ??= performance.now();
        else await pause(40);
      }
    };
    await Promise.race(world.names.map(at).concat(until(() => done !== undefined || performance.now() > deadline, "", this.limit * 2)));
    if (done === undefined) this.stuck.push(`${record.kind} of ${record.victim ?? "the engine"}: no write to ${object} was acknowledged in ${this.limit} ms`);
    else record.write = done - from;
  }

  async #hurtNode(fault, victims) {
    const record = this.records.at(-1), [name] = victims, { world } = this;
    const object = await this.#listOf(name);
    const others = world.names.filter((each) => !victims.includes(each));
    record.from = performance.now();
    const probe = () => (object ? this.#firstWrite(object, record, record.from) : Promise.resolve());
    const between = async (ms, cut) => {
      cut(true);
      const written = probe();
      await pause(ms);
      cut(false);
      await written;
    };
    const restart = async (ended, wipe) => {
      const written = probe();
      await ended;
      if (wipe) world.wipe(name);
      await pause(fault.kind === "away" ? 4000 + fault.ms / 2 : fault.kind.startsWith("kill") ? fault.ms * 0.35 : fault.ms / 20); // before others take over, or after
      await Promise.all([written, world.start(name)]);
    };
    /** A server that is to end by itself, with a sentence. */
    const ends = async (ending, sentence) => {
      const { ended, output } = await ending;
      if (!ended) throw new Error(`${name} did not end:\n${output.slice(-2000)}`);
      if (ended.code === 0 || !sentence.test(output)) throw new Error(`${name} ended with ${JSON.stringify(ended)}, and does not say why:\n${output.slice(-2000)}`);
    };
    switch (fault.kind) {
      case "full": {
        const full = ends(world.fill(name, this.limit), /No space left on device|no space to write/);
        await Promise.all([probe(), full]);
        await world.start(name);
        return;
      }
      case "clone": {
        await Promise.all([probe(), ends(world.clone(name, this.limit), /another process has joined the cluster with this disk/)]);
        return;
      }
      case "kill": return restart(world.kill(name, false));
      case "kill all": return restart(world.kill(name, true));
      case "stop":
      case "away": return restart(world.stop(name));
      case "disk": {
        await restart(world.kill(name, fault.ms % 2), true);
        this.#diskLost = world.whole() // not before the next; bodies follow when stores are there, which nothing tells
          .then(() => world.r2 && pause(15_000))
          .catch((error) => this.stuck.push(`a lost disk is not replaced: ${error.message}`))
          .finally(() => (this.#diskLost = null));
        return;
      }
      case "freeze": return between(1000 + fault.ms * 0.9, (on) => world.freeze(name, on));
      case "blink": return between(900 + fault.ms * 0.25, (on) => world.freeze(name, on));
      case "cut": return between(500 + fault.ms * 0.6, (on) => world.cutEngine([name], on));
      case "cut out": return between(500 + fault.ms * 0.6, (on) => world.cutEngine([name], on, "out"));
      case "cut in": return between(500 + fault.ms * 0.6, (on) => world.cutEngine([name], on, "in"));
      case "peers": return between(500 + fault.ms * 0.6, (on) => world.cutNodes([name], others, on));
      case "pair": return between(500 + fault.ms * 0.6, (on) => world.cutNodes([name], [others[fault.other % others.length]], on, "out"));
      case "halves": return between(500 + fault.ms * 0.6, (on) => world.cutNodes(victims, others, on));
      case "half cut": return between(500 + fault.ms * 0.4, (on) => (world.cutNodes(victims, others, on), world.cutEngine(victims, on)));
      case "drain": {
        await this.#command("drain", name);
        await Promise.all([probe(), pause(1000 + fault.ms / 2)]);
        return this.#command("drain", name, "--off");
      }
      case "guest": return this.#guest(fault);
    }
    throw new Error(`${fault.kind}: no such fault`);
  }

  /** The engine may be away: again, until it works. */
  #command(...args) {
    let last;
    return until(async () => (last = await this.world.command(...args)).code === 0, `cairn cluster ${args.join(" ")}`, 60_000).catch((error) => {
      throw new Error(`${error.message}: ${last?.stderr}`);
    });
  }

  /** A node comes, has shards for a while, is emptied, stopped and forgotten. */
  async #guest(fault) {
    const name = `guest${++this.#guests}`, { world } = this;
    await world.start(name);
    const owns = async () => new RegExp(`^${name} +alive +[1-9]`, "m").test((await world.command("nodes")).stdout);
    await until(owns, name, 15_000 + fault.ms).catch(() => {}); // if others are hurt meanwhile it gets nothing
    await this.#command("drain", name);
    await until(async () => new RegExp(`^${name} +draining +0 +0 `, "m").test((await world.command("nodes")).stdout), `${name} is empty`, 200_000);
    await world.stop(name);
    world.nodes.delete(name);
    await this.#command("forget", name);
  }

  /** Nobody serves with an engine that knows less, whoever is started again refuses it too; then the right one is back. */
  async #goBack(fault) {
    const { world, load } = this, record = this.records.at(-1), names = world.names;
    const backup = await world.engine.backup();
    for (const object of load.objects.slice(0, 10)) await this.#firstWrite(object, record); // the backup does not have it
    const refused = async (name) => {
      const { ended, output } = await world.ending(name, this.limit);
      if (ended?.code !== DECIDE || !/the engine knows less than it has told this node/.test(output)) throw new Error(`${name} does not refuse an older engine: ${JSON.stringify(ended)}\n${output.slice(-2000)}`);
    };
    const refusals = names.map(refused);
    const putRight = await world.goBack(backup);
    await Promise.all(refusals);
    const again = names[fault.victim % names.length];
    await world.start(again, { ready: false });
    await refused(again);
    await putRight();
    await Promise.all(names.map((name) => world.start(name)));
  }

  async #hurtEngine(fault) {
    const record = this.records.at(-1), { world, load } = this;
    const written = () => this.#firstWrite(load.pick(load.objects), record);
    switch (fault.kind) {
      case "engine restart":
        world.engine.kill();
        await world.engine.start();
        await until(async () => (await world.engine.tryAsk("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")) === "1", "the standby follows again");
        return written();
      case "engine wait":
        world.second.freeze(true);
        for (const end = Date.now() + 300 + fault.ms / 4; Date.now() < end; await pause(60)) await world.cancel();
        world.second.freeze(false);
        return written();
      case "engine stall":
        world.engine.freeze(true);
        await pause(1000 + fault.ms * 0.9);
        world.engine.freeze(false);
        return written();
      case "engine back":
        await this.#goBack(fault);
        return written();
      case "engine links":
        await world.cancel(world.primary, "terminate");
        return written();
    }
    const { ended } = await world.failOver({ kind: fault.kind.slice("fail-over ".length), ms: 500 + fault.ms / 3 });
    await Promise.all([written(), ended]);
  }
}
