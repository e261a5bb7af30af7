// The structured clone decoder: bytes that nobody wrote give a value or a DataError, never anything
// else, and a value of bounded size; what it gives can be written and read again.
import { check, deserialize, fuzz, serialize } from "./lib.js";

const SAMPLES = [
  undefined, null, true, -0, 2 ** 31, NaN, "text", "\u2603\ud800", 2n ** 70n, -1n, [1, , "x"], { a: { b: [{}] } }, new Date(0), /a(b)?/giu,
  new Map([[1, { x: 1 }], ["k", [2]]]), new Set([1, "1"]), Object("boxed"), Object(1n), new Uint8Array([1, 2, 3]), new DataView(new ArrayBuffer(8), 2),
  new Float64Array([1.5]).subarray(0), new ArrayBuffer(5), new ArrayBuffer(2, { maxByteLength: 6 }), new RangeError("r", { cause: { e: 1 } }),
  new AggregateError([new Error("x")]), Array.from({ length: 40 }, (_, i) => ({ id: i, name: `n${i}` })), "long ".repeat(100), new Blob(["b"]),
];
const shared = { again: 1 };
SAMPLES.push([shared, shared, { shared }]);
const circular = { list: [] };
circular.list.push(circular);
SAMPLES.push(circular);
const corpus = SAMPLES.map((value) => serialize(value));

function mutated(random) {
  const bytes = [...random.pick(corpus)];
  for (let n = random.below(6); n > 0; n--) {
    const at = random.below(bytes.length + 1);
    switch (random.below(5)) {
      case 0: bytes[Math.min(at, bytes.length - 1)] = random.below(256); break;
      case 1: bytes.splice(at, random.below(4)); break;
      case 2: bytes.splice(at, 0, random.below(256), random.below(256)); break;
      case 3: bytes.splice(at, 0, ...random.pick(corpus).slice(1)); break;
      case 4: bytes.splice(at, 1, 0xff, 0xff, 0xff, 0xff, 0x0f); break;
    }
    if (bytes.length === 0) bytes.push(1);
  }
  return Uint8Array.from(bytes.slice(0, 4096));
}

fuzz("structured-clone", (random) => {
  const bytes = mutated(random);
  let value;
  try {
    value = deserialize(bytes);
  } catch (error) {
    check(error.name === "DataError" || error.name === "DataCloneError", `[${bytes}] threw ${error}`);
    return;
  }
  const again = serialize(value);
  check(again.length <= 64 * 1024 * 1024, `${bytes.length} bytes became ${again.length}`);
  deserialize(again);
  if (random.below(50) === 0 && corpus.length < 2000 && bytes.length < 512) corpus.push(bytes);
});
