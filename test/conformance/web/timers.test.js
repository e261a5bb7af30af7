// setTimeout, setInterval, clearTimeout, clearInterval (HTML, section 8.6), queueMicrotask.
import { test, assert, assertEquals, assertThrows } from "../harness.js";

test("setTimeout passes its further arguments", async () => {
  assertEquals(await new Promise((r) => setTimeout((...a) => r(a), 1, "a", 2)), ["a", 2]);
});

test("timers fire in the order of their delays", async () => {
  const seen = [];
  await new Promise((done) => {
    setTimeout(() => (seen.push("late"), done()), 20);
    setTimeout(() => seen.push("early"), 1);
  });
  assertEquals(seen, ["early", "late"]);
});

test("clearTimeout stops a timer, and takes anything", async () => {
  let fired = false;
  clearTimeout(setTimeout(() => (fired = true), 1));
  clearTimeout(undefined);
  clearTimeout(null);
  clearTimeout(123456);
  await new Promise((r) => setTimeout(r, 10));
  assert(!fired);
});

test("setInterval repeats until it is cleared", async () => {
  let count = 0;
  await new Promise((done) => {
    const id = setInterval(() => {
      if (++count === 3) {
        clearInterval(id);
        done();
      }
    }, 1);
  });
  await new Promise((r) => setTimeout(r, 10));
  assertEquals(count, 3);
});

test("microtasks run before timers", async () => {
  const seen = [];
  const timer = new Promise((r) => setTimeout(() => (seen.push("timer"), r()), 0));
  queueMicrotask(() => seen.push("microtask"));
  await timer;
  assertEquals(seen, ["microtask", "timer"]);
});

// With a search for each timer that is stopped this would take minutes.
test("a worker has at most 100,000 timers, and stopping them makes room", () => {
  const ids = [];
  const start = () => ids.push(setTimeout(() => {}, 100_000));
  assertThrows(RangeError, () => {
    for (;;) start();
  }, /More than 100000 timers/);
  assertEquals(new Set(ids).size, ids.length);
  for (const id of ids.toReversed()) clearTimeout(id);
  clearTimeout(setTimeout(() => {}, 1));
}, { differs: { workerd: "it allows 10,000 and words it differently" } });
