// What generators of programs draw from: texts of JavaScript expressions, plain ones and hostile ones.

/** Helpers over `random`, a function that gives numbers from 0 to 1. */
export function drawFrom(random) {
  const below = (n) => Math.floor(random() * n);
  const pick = (list) => list[below(list.length)];
  const chance = (p) => random() < p;
  const some = (n, make) => Array.from({ length: below(n + 1) }, make);
  const quoted = (text) => JSON.stringify(text).replace(/[\ud800-\udfff\x7f-\xff\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

  const letters = ["a", "B", "z", "0", "9", " ", "\t", "\n", "\r\n", "\0", "%", "%41", "%zz", "+", "&", "=", "/", "\\", "?", "#", ":", "@", "[", "]", ".", "-", "_", "~", "!", "*", "'", "\"", "(", ")", "<", ">", "{", "}", "|", "^", "`", ",", ";", "é", "ÿ", "\x7f", "漢", "😀", "\ud800", "\udc00", "\ufeff", "İ", "ß", "x".repeat(40), "xn--"];
  const letter = () => pick(letters);
  const word = () => pick(["", "a", "b", "key", "name", "text", "value", "x-header", "Content-Type", "length", "__proto__", "toString", "constructor"]);
  const text = () => quoted(chance(0.5) ? word() : Array.from({ length: below(6) }, letter).join(""));
  const number = () => pick(["0", "-0", "1", "2", "3", "10", "255", "256", "-1", "-2", "0.5", "1.9", "NaN", "Infinity", "-Infinity", "65536", "2 ** 31", "2 ** 32", "2 ** 53", "-(2 ** 31)", "1e21", "1e-7"]);
  const bytes = () => pick([
    "new Uint8Array(0)", "new Uint8Array([1, 2, 3])", "new Uint8Array([0xe6, 0xbc, 0xa2])", "new Uint8Array([0xff, 0xfe, 0x41])", "new Uint8Array(300).fill(97)",
    "new Uint8Array([1, 2, 3, 4]).subarray(1, 3)", "new Uint8Array([1, 2, 3]).buffer", "new ArrayBuffer(0)", "new DataView(new ArrayBuffer(4), 1, 2)", "new Uint16Array([1, 0xffff])",
    "new Float64Array([1.5])", "new BigInt64Array(1)", "new ArrayBuffer(4, { maxByteLength: 8 })"]);
  /** Any value: what a careless or a hostile caller could give. */
  const hostile = () => pick([
    "undefined", "null", "true", "false", "{}", "[]", "[1, 2]", "[[\"a\", \"b\"]]", "10n", "Symbol(\"s\")", "() => 1", "class {}", "Object.create(null)", "new Date(0)", "/x/g", "new Map([[1, 2]])", "new Set([1])",
    "{ toString() { return \"t\"; } }", "{ toString() { throw new RangeError(\"no\"); } }", "{ valueOf() { return 2; } }", "{ get a() { throw new EvalError(\"getter\"); } }", "{ length: 2, 0: \"a\", 1: \"b\" }",
    "new Error(\"e\")", "Promise.resolve(1)", "new String(\"s\")", "new Number(3)", "new URL(\"http://u/\")", "new Blob([\"b\"])", "new Headers({ a: \"b\" })", "new URLSearchParams(\"a=1\")", "globalThis", "JSON", "new Proxy({}, {})"]);
  const any = () => {
    const kind = random();
    return kind < 0.35 ? text() : kind < 0.55 ? number() : kind < 0.65 ? bytes() : hostile();
  };
  /** `usual` mostly, otherwise anything at all. */
  const mostly = (usual, p = 0.85) => (chance(p) ? usual() : any());
  return { random, below, pick, chance, some, quoted, text, number, bytes, hostile, any, mostly, letter };
}

/**
 * A program of `size` calls: each is the making of one of `makers` (name -> text) or a use of a value that was made before
 * (`uses`: name -> list of [kind, text(d, self)]), where `self` is what stands for that value.
 */
export function programOf(d, makers, uses, size) {
  const calls = [];
  const made = []; // [name, index]
  const names = Object.keys(makers);
  const chosen = d.pick(names); // a program is about one thing mostly
  while (calls.length < size) {
    const fresh = made.length === 0 || (d.chance(0.15) && made.length < 3);
    if (fresh) {
      const name = d.chance(0.8) ? chosen : d.pick(names);
      if (uses[name]?.length) made.push([name, calls.length]);
      calls.push({ kind: name, text: makers[name](d) });
      continue;
    }
    const [name, index] = d.pick(made);
    const [kind, text] = d.pick(uses[name]);
    calls.push({ kind: `${name}: ${kind}`, text: text(d, `$${index}`) });
  }
  return calls;
}
