// structuredClone (https://html.spec.whatwg.org/#dom-structuredclone).
import { test, assert, assertEquals, assertThrows } from "../harness.js";

test("primitives and boxed primitives", () => {
  for (const value of [undefined, null, true, false, 0, -0, 1.5, NaN, Infinity, -1, 2 ** 31, -(2 ** 31), 2 ** 53, "", "text", "é", "€\ud800", "x".repeat(1000), 0n, -1n, 2n ** 100n, -(2n ** 64n)]) {
    assert(Object.is(structuredClone(value), value), String(value));
    assert(Object.is(structuredClone({ value }).value, value), String(value));
  }
  for (const value of [true, 1, "s", 5n]) {
    const boxed = structuredClone(Object(value));
    assertEquals([typeof boxed, boxed.valueOf()], ["object", value]);
  }
});

test("plain objects: own enumerable string keys, getters read, prototypes forgotten", () => {
  class Point {
    x = 1;
    #hidden = 2;
    get y() { return this.#hidden; }
  }
  const source = Object.defineProperty({ get a() { return 1; }, [Symbol("s")]: 2, __proto__: { inherited: 3 } }, "hidden", { value: 4 });
  assertEquals(structuredClone(source), { a: 1 });
  assertEquals(structuredClone(new Point()), { x: 1 });
  assertEquals(Object.keys(structuredClone({ b: 1, a: 2, 1: 3, 0: 4 })), ["0", "1", "b", "a"]);
  const odd = structuredClone(JSON.parse('{"__proto__": {"x": 1}, "é€": 2}'));
  assertEquals(Object.keys(odd), ["__proto__", "é€"]);
  assertEquals(Object.getPrototypeOf(odd), Object.prototype);
});

test("arrays, with holes", () => {
  assertEquals(structuredClone([1, [2, [3]], "a", null, undefined]), [1, [2, [3]], "a", null, undefined]);
  const sparse = [1, , 3];
  const copy = structuredClone(sparse);
  assertEquals([copy.length, 1 in copy], [3, false]);
  const long = structuredClone(Object.assign([], { 1000: "x" }));
  assertEquals([long.length, Object.keys(long)], [1001, ["1000"]]);
  const match = structuredClone("a-b".match(/(?<first>\w)-(\w)/));
  assertEquals([match.index, match.groups.first, match[2]], [0, "a", "b"]);
  assertEquals(structuredClone([]), []);
  assertEquals(structuredClone([,]).length, 1);
});

test("named properties of an array", () => {
  assertEquals(Object.keys(structuredClone(Object.assign([1, 2], { note: 3 }))), ["0", "1", "note"]);
}, { differs: { jsrun: "the engine lists the names of an array only with all its indexes", cairn: "as in jsrun" } });

test("cycles and shared references keep their shape", () => {
  const a = { list: [] };
  a.self = a;
  a.list.push(a, a.list, { back: a });
  const b = structuredClone(a);
  assert(b !== a && b.self === b && b.list[0] === b && b.list[1] === b.list && b.list[2].back === b);
  const shared = new Date(5);
  const map = new Map([[shared, shared]]);
  map.set("map", map);
  const copy = structuredClone(map);
  const [key] = copy.keys();
  assert(copy.get(key) === key && copy.get("map") === copy && key.getTime() === 5);
});

test("many objects of one kind", () => {
  const list = Array.from({ length: 300 }, (_, i) => ({ id: i, name: `n${i}`, [`k${i % 20}`]: i, deep: { id: -i } }));
  assertEquals(structuredClone(list), list);
});

test("Date, RegExp, Map, Set", () => {
  assertEquals(structuredClone(new Date(1e12)), new Date(1e12));
  assert(Number.isNaN(structuredClone(new Date(NaN)).getTime()));
  const pattern = /a(b)/giu;
  pattern.lastIndex = 2;
  const copy = structuredClone(pattern);
  assertEquals([copy.source, copy.flags, copy.lastIndex], ["a(b)", "giu", 0]);
  assertEquals(structuredClone(new Map([[{ a: 1 }, new Set([1, "x"])]])), new Map([[{ a: 1 }, new Set([1, "x"])]]));
});

test("buffers and views share what they shared", () => {
  const buffer = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer;
  const source = { buffer, part: new Uint8Array(buffer, 2, 3), view: new DataView(buffer, 4), wide: new Uint16Array(buffer, 2, 1), float: new Float64Array(buffer) };
  const copy = structuredClone(source);
  for (const key of ["part", "view", "wide", "float"]) assert(copy[key].buffer === copy.buffer, key);
  assertEquals([[...copy.part], copy.view.getUint8(0), copy.view.byteLength, copy.wide.length], [[3, 4, 5], 5, 4, 1]);
  assert(copy.buffer !== buffer);
  for (const type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array]) {
    assertEquals(structuredClone(new type([1, 2, 3])), new type([1, 2, 3]));
  }
  assertEquals(structuredClone(new BigInt64Array([-1n, 5n])), new BigInt64Array([-1n, 5n]));
  const large = structuredClone(new Uint8Array(10_000).fill(7));
  assert(large.length === 10_000 && large.every((b) => b === 7));
});

test("resizable buffers stay resizable, and views that follow them do", () => {
  const buffer = new ArrayBuffer(4, { maxByteLength: 16 });
  new Uint8Array(buffer).set([1, 2, 3, 4]);
  const copy = structuredClone({ buffer, tracks: new Uint8Array(buffer, 1), fixed: new Uint8Array(buffer, 0, 2) });
  assertEquals([copy.buffer.resizable, copy.buffer.maxByteLength, copy.buffer.byteLength], [true, 16, 4]);
  assertEquals([[...copy.tracks], [...copy.fixed]], [[2, 3, 4], [1, 2]]);
  copy.buffer.resize(8);
  assertEquals([copy.tracks.length, copy.fixed.length, buffer.byteLength, [...new Uint8Array(buffer)]], [7, 2, 4, [1, 2, 3, 4]]);
});

test("errors keep type, message, stack, cause and what was put on them", () => {
  class Special extends TypeError {}
  const error = Object.assign(new Special("m", { cause: new RangeError("c") }), { extra: { a: 1 } });
  const copy = structuredClone(error);
  assertEquals([copy instanceof TypeError, copy.constructor, copy.name, copy.message, copy.extra, copy.stack === error.stack], [true, TypeError, "TypeError", "m", { a: 1 }, true]);
  assert(copy.cause instanceof RangeError && copy.cause.message === "c");
  error.name = "Unheard";
  assertEquals([structuredClone(error).constructor, structuredClone(error).name], [Error, "Unheard"]);
  const many = structuredClone(new AggregateError([new Error("x")], "m"));
  assertEquals([many.constructor, many.errors[0].message], [AggregateError, "x"]);
  const exception = structuredClone(new DOMException("gone", "AbortError"));
  assertEquals([exception instanceof DOMException, exception.name, exception.message, exception.code], [true, "AbortError", "gone", 20]);
});

test("an error may be its own cause", () => {
  const error = new Error("l");
  error.cause = error;
  const copy = structuredClone(error);
  assert(copy.cause === copy);
}, { differs: { workerd: "it cannot read its own bytes of such an error" } });

test("what has no clone is a DataCloneError in V8's words", () => {
  for (const [value, message] of [
    [() => 1, "()=>1 could not be cloned."], [Symbol("a"), "Symbol(a) could not be cloned."],
    [new WeakMap(), "#<WeakMap> could not be cloned."], [Promise.resolve(), "#<Promise> could not be cloned."],
    [new WeakRef({}), "#<WeakRef> could not be cloned."], [(function* () {})(), "[object Generator] could not be cloned."],
    [new URL("http://x"), 'Could not serialize object of type "URL". This type does not support serialization.'],
  ]) {
    // Functions are shown as they are written; white space is the bundler's.
    const error = assertThrows("DataCloneError", () => structuredClone(value));
    assertEquals(error.message.replaceAll(" ", ""), message.replaceAll(" ", ""));
    assertThrows("DataCloneError", () => structuredClone([{ value }]));
    assertEquals(error.code, 25);
  }
});

test("transfer moves buffers", () => {
  const buffer = new Uint8Array([1, 2, 3]).buffer;
  const copy = structuredClone({ a: buffer, b: new Uint8Array(buffer, 1) }, { transfer: [buffer] });
  assert(buffer.detached && copy.b.buffer === copy.a);
  assertEquals([...new Uint8Array(copy.a)], [1, 2, 3]);
  assertThrows("DataCloneError", () => structuredClone(buffer));
  const kept = new ArrayBuffer(2);
  assertThrows("DataCloneError", () => structuredClone({ kept, f() {} }, { transfer: [kept] }));
  assertEquals(kept.byteLength, 2, "nothing is detached when the clone fails");
  assertThrows(TypeError, () => structuredClone(1, { transfer: [{}] }), "Object is not transferable");
  assertThrows("DataCloneError", () => structuredClone(1, { transfer: [new Uint8Array(new SharedArrayBuffer(8))] }));
  assertThrows(TypeError, () => structuredClone());
});

test("shared memory stays shared", () => {
  const shared = new SharedArrayBuffer(4);
  const clone = structuredClone({ bytes: new Uint8Array(shared, 1, 2), all: new Uint32Array(shared), shared });
  assertEquals([clone.bytes.constructor, clone.bytes.byteOffset, clone.bytes.length, clone.all.length], [Uint8Array, 1, 2, 1]);
  assert(clone.shared instanceof SharedArrayBuffer && clone.bytes.buffer === clone.shared);
  new Uint8Array(shared)[1] = 7;
  assertEquals(clone.bytes[0], 7);
});
