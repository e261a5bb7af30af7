// prelude/internal/serialize.js: bytes and back, and bytes that nobody made. Runs in jsrun only.
import { test, assert, assertEquals, fail } from "../harness.js";
import { serialize, deserialize, registerHostObject } from "../../../prelude/internal/serialize.js";

/** The exceptions are of the bundled copy of DOMException, not the global one. */
function assertThrows(name, fn, message = /./) {
  try {
    fn();
  } catch (error) {
    if (error.name !== name || !message.test(error.message)) fail(`threw ${error.name}: ${error.message}, expected ${name} ${message}`);
    return;
  }
  fail(`did not throw ${name}`);
}

const VALUES = [
  undefined, null, true, 0, -0, 111, 112, -16, -17, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 1.5, NaN, "", "short", "é", "€uro", "x".repeat(31), "x".repeat(32), "y".repeat(500), "€".repeat(5000),
  0n, 255n, -256n, 2n ** 200n, [], [1, "a", [null]], [1, , 2], Object.assign([1], { 200: 2 }), {}, { a: 1, b: { a: 2, c: [{ a: 3 }] } }, { "": 1, "€": 2, [`${"k".repeat(200)}`]: 3 },
  new Date(0), /x/gi, new Map([["a", { b: 1 }], [1, 2]]), new Set(["a", 1n]), Object("boxed"), Object(1), new Uint8Array([1, 2, 3]), new Uint8Array(70_000).fill(1), new Uint16Array([1, 2]).subarray(1), new ArrayBuffer(3), new ArrayBuffer(2, { maxByteLength: 9 }), new DataView(new ArrayBuffer(4), 1),
  new TypeError("t", { cause: { x: 1 } }), new AggregateError([new Error("a")]), Array.from({ length: 60 }, (_, i) => ({ id: i, name: `n${i}`, at: i / 3 })),
];

test("every kind of value comes back", () => {
  for (const value of VALUES) {
    const bytes = serialize(value);
    assertEquals(bytes[0], 1, "version");
    const back = deserialize(bytes);
    if (value instanceof DataView || value instanceof Error || Object(value) === value && Object(value).valueOf() !== value) assertEquals(String(back), String(value));
    else assertEquals(back, value);
    assertEquals([...serialize(back)].length, bytes.length, "the same size again");
  }
});

test("small values are small", () => {
  assertEquals([...serialize(5)], [1, 0x95]);
  assertEquals([...serialize("ab")], [1, 0x42, 97, 98]);
  assertEquals([...serialize({ a: 1 })], [1, 0x10, 5, 97, 0x91, 0]);
  assertEquals([...serialize([{ a: 1 }, { a: 2 }])], [1, 0x11, 2, 0x10, 5, 97, 0x91, 0, 0x10, 3, 0x92, 0]);
  assertEquals([...serialize(-1000)], [1, 0x04, 0xcf, 0x0f]);
});

test("a getter may serialize something else meanwhile", () => {
  const value = { get a() { return [...serialize({ inner: "x" })].length; }, b: 2 };
  assertEquals(deserialize(serialize(value)), { a: 14 - 3, b: 2 });
});

test("nesting has a limit on both sides", () => {
  let deep = [];
  for (let i = 0; i < 1990; i++) deep = [deep];
  assertEquals(typeof deserialize(serialize(deep)), "object");
  for (let i = 0; i < 20; i++) deep = [deep];
  assertThrows("DataCloneError", () => serialize(deep));
  assertThrows("DataError", () => deserialize(new Uint8Array([1, ...new Array(5000).fill([0x11, 1]).flat(), 0])));
  assertEquals(deserialize(serialize(1)), 1, "and works afterwards");
});

test("malformed bytes are a DataError that says what is wrong", () => {
  for (const [bytes, message] of [
    [[], /ends too early/], [[9, 0], /version 9/], [[1], /ends too early/], [[1, 0, 0], /bytes are left/], [[1, 0x7f], /tag 127/], [[1, 0x0f], /tag 15/],
    [[1, 0x0a, 0], /referred to before/], [[1, 0x0b, 0], /something outside/], [[1, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], /too early/],
    [[1, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], /too large/], [[1, 0x11, 0xff, 0xff, 0x7f], /too early/], [[1, 0x14, 0x41, 0x28, 0x40], /malformed/],
    [[1, 0x1a, 1, 0x18, 2, 0, 0, 1, 5], /malformed/], [[1, 0x1b, 4, 3, 1, 2, 3], /malformed/], [[1, 0x10, 7, 0], /referred to before/], [[1, 0x17, 0x01], /primitive/], [[1, 0x1c, 9, 0], /unknown type/], [[1, 0x0c], /tag 12/],
  ]) {
    assertThrows("DataError", () => deserialize(new Uint8Array(bytes)), message);
  }
});

test("host objects have tags of their own", () => {
  class Money { constructor(n) { this.n = n; } }
  registerHostObject({
    tag: 0x3f, prototype: Money.prototype,
    write: (money, writer) => { writer.uint(money.n); writer.value({ note: "x" }); },
    read: (reader) => { const n = reader.uint(); reader.value(); return new Money(n); },
  });
  const money = new Money(300);
  const back = deserialize(serialize([money, { note: "y" }, money]));
  assert(back[0] instanceof Money && back[0].n === 300 && back[2] === back[0]);
  assertThrows("Error", () => registerHostObject({ tag: 0x3f }));
});

// A small generator, so that a failure can be repeated: xorshift32.
function randomFrom(seed) {
  let x = seed | 0 || 1;
  return (n) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % n;
  };
}

const SEED = 20251;
test(`changed bytes never do worse than a DataError (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  const samples = VALUES.map((v) => serialize(v)).filter((b) => b.length < 3000);
  const start = Date.now();
  let fine = 0, refused = 0;
  for (let round = 0; round < 40_000 && Date.now() - start < 3000; round++) {
    let bytes = samples[random(samples.length)].slice();
    for (let changes = 1 + random(4); changes > 0; changes--) {
      switch (random(4)) {
        case 0: bytes[random(bytes.length)] = random(256); break;
        case 1: bytes[random(bytes.length)] ^= 1 << random(8); break;
        case 2: bytes = bytes.slice(0, 1 + random(bytes.length)); break;
        case 3: {
          const other = samples[random(samples.length)];
          const at = random(bytes.length);
          bytes = new Uint8Array([...bytes.subarray(0, at), ...other.subarray(random(other.length)), ...bytes.subarray(at)]).subarray(0, 4000);
        }
      }
      if (bytes.length === 0) bytes = new Uint8Array([1]);
    }
    try {
      serialize(deserialize(bytes));
      fine++;
    } catch (error) {
      if (error?.name !== "DataError") fail(`round ${round}: ${error?.name}: ${error?.message} for [${bytes}]`);
      refused++;
    }
  }
  assert(fine > 100 && refused > 100, `${fine} read, ${refused} refused`);
});
