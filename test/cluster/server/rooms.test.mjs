// The judge of the chat finds what it is there for.
import assert from "node:assert/strict";
import test from "node:test";
import { GIVEN, Judge, KEPT } from "./rooms.mjs";

const message = (id, text) => JSON.stringify({ type: "message", id, name: text.slice(0, text.lastIndexOf(".")), text, at: 0 });
const row = (id, text) => ({ id, name: text.slice(0, text.lastIndexOf(".")), text });
const init = (...messages) => JSON.stringify({ type: "init", state: { messages } });

/** A room in which r.1 has said two things, which were acknowledged, and r.2 listens. */
function begin() {
  const judge = new Judge();
  const one = judge.join("r", "r.1"), two = judge.join("r", "r.2");
  for (const ear of [one, two]) ear.hear(init());
  for (const id of [1, 2]) {
    const text = judge.say("r", "r.1");
    for (const ear of [one, two]) ear.hear(message(id, text));
    judge.acknowledge("r", text);
  }
  return { judge, one, two };
}
const rows = [row(1, "r.1.1"), row(2, "r.1.2")];

test("what is as it should be is not wrong", () => {
  const { judge, one } = begin();
  one.hear(JSON.stringify({ type: "here", names: ["r.1", "r.2"] }));
  judge.join("r", "r.3").hear(init(...rows));
  judge.say("r", "r.2"); // nobody ever heard it: it may be there or not
  assert.equal(judge.read("r", [...rows, row(3, "r.2.1")]), 1);
  assert.deepEqual([...judge.wrongs], []);
});

for (const [rule, what, act] of [
  ["R1", "an acknowledged message that is missing", ({ judge }) => judge.read("r", rows.slice(0, 1))],
  ["R1", "one that only others had heard", ({ judge, two }) => { judge.say("r", "r.1"); two.hear(message(3, "r.1.3")); judge.read("r", rows); }],
  ["R2", "another message under its number", ({ judge, two }) => { judge.say("r", "r.2"); two.hear(message(2, "r.2.1")); }],
  ["R2", "a message twice", ({ judge }) => judge.read("r", [...rows, row(3, "r.1.2")])],
  ["R3", "a message that a member was not told", ({ judge, two }) => { judge.say("r", "r.1"); judge.say("r", "r.1"); two.hear(message(4, "r.1.4")); }],
  ["R3", "a message that a member was told twice", ({ two }) => two.hear(message(2, "r.1.2"))],
  ["R4", "a history that is old", ({ judge }) => judge.join("r", "r.3").hear(init(rows[0]))],
  ["R5", "a word of another room", ({ judge, two }) => { judge.say("x", "x.1"); two.hear(message(3, "x.1.1")); }],
  ["R5", "a name of another room", ({ two }) => two.hear(JSON.stringify({ type: "here", names: ["r.1", "x.9"] }))],
  ["R6", "what nobody has said", ({ two }) => two.hear(message(3, "r.1.3"))],
])
  test(`${rule}: ${what} is found`, () => {
    const all = begin();
    act(all);
    assert.ok(all.judge.wrongs.has(rule), JSON.stringify([...all.judge.wrongs]));
  });

test("what the room itself lets go, and what is older than those given, is not wrong", () => {
  const judge = new Judge(), ear = judge.join("r", "r.1"), all = [];
  ear.hear(init());
  for (let id = 1; id <= KEPT + 50; id++) {
    const text = judge.say("r", "r.1");
    ear.hear(message(id, text));
    judge.acknowledge("r", text);
    all.push(row(id, text));
  }
  judge.join("r", "r.2").hear(init(...all.slice(-GIVEN)));
  judge.read("r", all.slice(-KEPT));
  assert.deepEqual([...judge.wrongs], []);
  judge.join("r", "r.3").hear(init(...all.slice(-GIVEN - 1, -1)));
  assert.deepEqual([...judge.wrongs], [["R4", 1]]);
});
