// The judge of a campaign: what was asked and answered, and whether it can have been so. It knows nothing of servers; judge.test.mjs shows what it finds.
//
// Times are of one clock (performance.now() of the process that has all clients). An operation has an interval, from `asked` to `answered`; one without
// an answer may have been carried out at any time after it was asked, or never. One that was `refused` was not, and that is checked as well.
//
//   lists      (objects, D1) Every write has a value of its own and answers the state right after it; a state is the length, and a hash of the list. J1 to
//              J5 hold if and only if the history is linearizable:
//   J1         every state that was answered is one that the final list had at that length; a write's own is at its place in it
//   J2         what was acknowledged is in the final list, once; what was refused is not
//   J3         an answer has all that was answered before it was asked; a write has more than that
//   J4         an answer knows of nothing that was asked for after it was answered
//   J5         one owner: no instance of an object answers before and after another, nor has entries on both sides of another's
//   registers  (KV, R2) One client writes a key, one version after the other, and leaves it for ever after the first write whose outcome it
//              does not know; anybody reads. J6: a read has at least what was acknowledged before it was asked, at most what was asked for before
//              it was answered, and no less than reads before it.
//   deliveries (queues) J7: what was acknowledged comes at least once, what was refused or never sent does not.
//   alarms     J8: each ring that was acknowledged comes, at least once; not twice unless a fault was near.
import { chain } from "./worker.mjs";

const byAsked = (a, b) => a.asked - b.asked;
const byAnswered = (a, b) => a.answered - b.answered;

export class Judge {
  lists = new Map(); // name: operations
  registers = new Map(); // name: {writes, reads}
  sent = new Map(); // message: "ok", "refused" or "unknown"
  rung = new Map(); // bell: {times, ok}

  /** Notes an operation on a list. `answer`: {status, refused, value: {length, hash, life, torn}}. */
  list(name, op, answer) {
    op.answered = Infinity;
    op.refused = Boolean(answer.refused);
    if (answer.status === 200) {
      const { length, hash, life, torn } = answer.value;
      Object.assign(op, { ok: true, answered: performance.now(), length, hash, life, torn });
    }
    if (!this.lists.has(name)) this.lists.set(name, []);
    this.lists.get(name).push(op);
    return op;
  }

  register(name) {
    if (!this.registers.has(name)) this.registers.set(name, { writes: [], reads: [] });
    return this.registers.get(name);
  }

  /** What is wrong with one list, given its entries in the end: [{at, value, life}]. */
  static checkList(name, ops, entries) {
    const wrong = [], say = (kind, text) => wrong.push({ kind, text: `${name}: ${text}` });
    const at = new Map(), hashes = [""];
    for (const { value } of entries) {
      if (at.has(value)) say("twice", `${value} is there twice`);
      else at.set(value, hashes.length);
      hashes.push(chain(hashes.at(-1), value));
    }
    for (const [i, entry] of entries.entries()) if (entry.at !== i + 1) { say("torn", `entry ${i + 1} has the number ${entry.at}`); break; }
    const good = ops.filter((op) => op.ok);
    const known = new Set();
    for (const op of ops) if (op.write !== undefined) known.add(op.write);
    for (const value of at.keys()) if (!known.has(value)) say("foreign", `${value} was never asked for`);
    for (const op of ops) if (op.write !== undefined && op.refused && at.has(op.write)) say("refused", `${op.write} was refused, and carried out`);
    for (const op of good) {
      if (op.torn) say("torn", `an answer of ${op.length} contradicts itself`);
      if (op.write !== undefined && !at.has(op.write)) say("lost", `${op.write} is lost, though it was acknowledged (as entry ${op.length})`);
      else if (op.write !== undefined && at.get(op.write) !== op.length) say("lost", `${op.write} was acknowledged as entry ${op.length} and is entry ${at.get(op.write)}`);
      else if (op.length >= hashes.length || (op.hash !== undefined && hashes[op.length] !== op.hash)) say("never", `a state of ${op.length} that never was`);
    }
    const answered = [...good].sort(byAnswered);
    let next = 0, longest = 0;
    const advance = (time) => {
      for (; next < answered.length && answered[next].answered < time; next++) longest = Math.max(longest, answered[next].length);
    };
    for (const op of [...ops].sort(byAsked)) {
      advance(op.asked);
      if (op.ok && op.length < longest + (op.write !== undefined ? 1 : 0)) say("stale", `an answer of ${op.length} is stale, after one of ${longest}${op.write ? ` (${op.write})` : ""}`);
      if (op.write !== undefined && at.has(op.write) && at.get(op.write) <= longest) say("future", `${op.write} is entry ${at.get(op.write)}, and was asked for after an answer of ${longest}`);
    }
    Judge.#checkOwners(good, entries, say);
    return wrong;
  }

  static #checkOwners(good, entries, say) {
    const over = new Set();
    let life;
    for (const entry of entries) {
      if (entry.life === life || entry.life === undefined) continue;
      if (over.has(entry.life)) say("owners", `the instance ${entry.life} has entries on both sides of ${life}'s, the second at ${entry.at}`);
      over.add(life);
      life = entry.life;
    }
    const lives = new Map(); // when each was first heard of for sure, and last asked
    for (const op of good) {
      if (!op.life) continue;
      const one = lives.get(op.life) ?? lives.set(op.life, { first: Infinity, last: -Infinity }).get(op.life);
      one.first = Math.min(one.first, op.answered);
      one.last = Math.max(one.last, op.asked);
    }
    for (const [life, { first, last }] of lives) {
      const between = good.find((op) => op.life && op.life !== life && op.asked > first && op.answered < last);
      if (between) say("owners", `the instance ${life} answered before and after ${between.life}`);
    }
  }

  static checkRegister(name, { writes, reads }) {
    const wrong = [], say = (kind, text) => wrong.push({ kind, text: `${name}: ${text}` });
    const acknowledged = writes.filter((op) => op.ok).sort(byAnswered), asked = [...writes].sort(byAsked);
    for (const op of reads) {
      const least = acknowledged.filter((write) => write.answered < op.asked).reduce((most, write) => Math.max(most, write.version), 0);
      const most = asked.filter((write) => write.asked < op.answered && !write.refused).reduce((all, write) => Math.max(all, write.version), 0);
      if (op.damaged) say("body", `version ${op.version} is not what was written: ${op.damaged}`);
      if (op.version < least) say(op.final ? "lost" : "stale", `a read of ${op.version} after ${least} was acknowledged`);
      if (op.version > most) say("future", `a read of ${op.version}, and no more than ${most} was asked for`);
    }
    const ordered = [...reads].sort(byAnswered);
    let next = 0, newest = 0;
    for (const op of [...reads].sort(byAsked)) {
      for (; next < ordered.length && ordered[next].answered < op.asked; next++) newest = Math.max(newest, ordered[next].version);
      if (op.version < newest) say("stale", `a read of ${op.version} after one of ${newest}`);
    }
    return wrong;
  }

  /** `delivered`: Map of message: how often. */
  static checkDeliveries(sent, delivered) {
    const wrong = [];
    for (const [message, outcome] of sent) {
      if (outcome === "ok" && !delivered.has(message)) wrong.push({ kind: "lost", text: `the message ${message} was acknowledged and never came` });
      if (outcome === "refused" && delivered.has(message)) wrong.push({ kind: "refused", text: `the message ${message} was refused, and came` });
    }
    for (const message of delivered.keys()) if (!sent.has(message)) wrong.push({ kind: "foreign", text: `the message ${message} was never sent` });
    return wrong;
  }

  /** `rings`: when it rang, in ms of the wall clock; `near(from, to)`: whether there was a fault. */
  static checkBell(name, { times, ok }, rings, near) {
    const wrong = [];
    if (ok && rings.length < times) wrong.push({ kind: "lost", text: `${name}: ${times} rings were acknowledged, ${rings.length} came` });
    if (rings.length > times && !near(rings[0].time - 5000, rings.at(-1).time + 5000)) wrong.push({ kind: "twice", text: `${name}: ${times} rings, and ${rings.length} came with no fault near` });
    return wrong;
  }
}
