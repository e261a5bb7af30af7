// The judge finds what is wrong, each kind of it, and nothing in a history that is right.
import assert from "node:assert/strict";
import test from "node:test";
import { Judge } from "./judge.mjs";
import { chain } from "./worker.mjs";

/** A list of values with a right history: each written in turn by `life`, and read after it. */
function right(values, lifeOf = () => "one") {
  let hash = "", time = 0;
  const ops = [], entries = [];
  values.forEach((value, i) => {
    hash = chain(hash, value);
    const state = { ok: true, length: i + 1, hash, life: lifeOf(i), torn: false };
    ops.push({ write: value, asked: ++time, answered: ++time, ...state });
    ops.push({ asked: ++time, answered: ++time, ...state });
    entries.push({ at: i + 1, value, life: lifeOf(i) });
  });
  return { ops, entries };
}
const kinds = ({ ops, entries }) => [...new Set(Judge.checkList("x", ops, entries).map((each) => each.kind))].sort();
const values = ["a", "b", "c", "d", "e"];

test("a right history of a list is right, with operations without an answer too", () => {
  assert.deepEqual(kinds(right(values)), []);
  assert.deepEqual(kinds(right(values, (i) => (i < 2 ? "one" : "two"))), []);
  const history = right(values);
  Object.assign(history.ops[8], { ok: false, answered: Infinity }); // carried out, not answered
  history.ops.push({ write: "never", asked: 3, answered: Infinity }, { write: "refused", asked: 3, answered: Infinity, refused: true });
  assert.deepEqual(kinds(history), []);
});

test("each kind of wrong history of a list is found", () => {
  const change = (what, lifeOf) => {
    const history = right(values, lifeOf);
    what(history.ops, history.entries);
    return kinds(history);
  };
  assert.ok(change((ops, entries) => entries.pop()).includes("lost"));
  assert.ok(change((ops, entries) => entries.splice(2, 1)).includes("lost"));
  assert.ok(change((ops, entries) => ([entries[1].value, entries[2].value] = ["c", "b"])).includes("lost"));
  assert.ok(change((ops, entries) => entries.push({ at: 6, value: "a", life: "one" })).includes("twice"));
  assert.ok(change((ops, entries) => entries.push({ at: 6, value: "z", life: "one" })).includes("foreign"));
  assert.deepEqual(change((ops) => Object.assign(ops[9], { length: 4, hash: ops[7].hash })), ["stale"]);
  assert.deepEqual(change((ops) => (ops[9].hash = "0")), ["never"]);
  assert.deepEqual(change((ops) => (ops[9].torn = true)), ["torn"]);
  assert.deepEqual(change((ops) => Object.assign(ops[8], { refused: true })), ["refused"]);
  assert.deepEqual(change((ops) => Object.assign(ops[4], { ok: false, answered: Infinity, asked: 100 })), ["future"]);
  assert.deepEqual(change((ops) => (ops[5].life = "two")), ["owners"]); // a read of another, between those of the first
  assert.deepEqual(change(() => {}, (i) => (i === 2 ? "two" : "one")), ["owners"]);
  assert.deepEqual(change((ops, entries) => (entries[3].at = 9)), ["torn"]);
});

test("registers", () => {
  const check = (writes, reads) => Judge.checkRegister("x", { writes, reads }).map((each) => each.kind);
  const writes = [{ version: 1, asked: 1, answered: 2, ok: true }, { version: 2, asked: 5, answered: 8, ok: true }, { version: 3, asked: 9, answered: Infinity }];
  const read = (version, asked, answered, more) => ({ version, asked, answered, ...more });
  assert.deepEqual(check(writes, [read(0, 0, 1.5), read(1, 3, 4), read(2, 6, 7), read(2, 10, 11), read(3, 12, 13)]), []);
  assert.deepEqual(check(writes, [read(1, 10, 11)]), ["stale"]);
  assert.deepEqual(check(writes, [read(1, 10, 11, { final: true })]), ["lost"]);
  assert.deepEqual(check(writes, [read(2, 3, 4)]), ["future"]);
  assert.deepEqual(check(writes, [read(2, 6, 6.5), read(1, 7, 7.5)]), ["stale"]);
  assert.deepEqual(check(writes, [read(2, 10, 11, { damaged: "byte 7" })]), ["body"]);
});

test("messages and alarms", () => {
  const sent = new Map([["a", "ok"], ["b", "unknown"], ["c", "refused"]]);
  const check = (delivered) => Judge.checkDeliveries(sent, new Map(delivered)).map((each) => each.kind);
  assert.deepEqual(check([["a", 2]]), []);
  assert.deepEqual(check([["a", 1], ["b", 1]]), []);
  assert.deepEqual(check([]), ["lost"]);
  assert.deepEqual(check([["a", 1], ["c", 1]]), ["refused"]);
  assert.deepEqual(check([["a", 1], ["z", 1]]), ["foreign"]);
  const bell = (times, ok, rings, fault) => Judge.checkBell("x", { times, ok }, rings.map((time) => ({ time })), () => fault).map((each) => each.kind);
  assert.deepEqual(bell(2, true, [1, 2], false), []);
  assert.deepEqual(bell(2, true, [1], false), ["lost"]);
  assert.deepEqual(bell(2, false, [], false), []);
  assert.deepEqual(bell(2, true, [1, 2, 3], true), []);
  assert.deepEqual(bell(2, true, [1, 2, 3], false), ["twice"]);
});
