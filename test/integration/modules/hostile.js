// In front of the objects of test/module/hostile.c.
import { deepStrictEqual } from "node:assert";

const nested = (depth) => {
  let value = [];
  for (let i = 0; i < depth; i++) value = [value];
  return value;
};
const sparse = [];
sparse[5000] = 1;
const cycle = { a: [1] };
cycle.a.push(cycle);
const shared = new Array(1000).fill("a shared text");

const values = {
  deep: () => nested(50),
  "too deep": () => nested(100_000),
  "long text": () => "é".repeat(1_000_000),
  "array of 100,000": () => Array.from({ length: 100_000 }, (_, i) => i),
  "too many": () => new Array(1_100_000).fill(0),
  sparse: () => sparse,
  cycle: () => cycle,
  shared: () => new Array(1000).fill(shared),
  "33 MB": () => new Uint8Array(33 << 20),
  "30 MB": () => new Uint8Array(30 << 20),
  map: () => new Map([["a", 1], [{ b: 2 }, new Map()], [NaN, null]]),
  set: () => new Set([1, 2]),
  dates: () => [new Date(0), new Date(8.64e15), new Date(NaN)],
  numbers: () => [0, -0, NaN, Infinity, -Infinity, 2 ** 53, 5e-324, Number.MAX_VALUE],
  bigints: () => [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n)],
  "large bigint": () => 2n ** 4096n,
  "typed arrays": () => new Uint8Array([0, 1, 255]),
  floats: () => new Float64Array([0.5, NaN]),
  view: () => new DataView(new ArrayBuffer(100), 10, 5),
  surrogates: () => "\u{1f600}\u0000",
  "half a surrogate": () => "\ud800",
  proto: () => JSON.parse('{"__proto__": 1, "constructor": 2, "": 3}'),
  regexp: () => /a(b)c/giu,
  error: () => new RangeError("no", { cause: cycle }),
  symbol: () => Symbol("s"),
  getter: () => ({ get a() { throw new Error("a getter"); } }),
  proxy: () => new Proxy([], {}),
};

export default {
  async fetch(request, env) {
    const [, what, name, method] = new URL(request.url).pathname.split("/");
    if (what === "object") return env.OBJECT.getByName(name).fetch(request);
    if (what === "call") {
      try {
        return Response.json({ value: (await env.OBJECT.getByName(name)[method](() => 1)) ?? null });
      } catch (error) {
        return Response.json({ error: `${error.name}: ${error.message}` });
      }
    }
    if (name === undefined) return Response.json(Object.keys(values));
    try {
      const value = values[decodeURIComponent(name)]();
      const back = await env.OBJECT.getByName("echo").echo(value);
      if (value.byteLength > 1000) deepStrictEqual(back.byteLength, value.byteLength);
      else deepStrictEqual(back, value);
      return new Response("same");
    } catch (error) {
      return new Response(error.code === "ERR_ASSERTION" ? "another" : `refused: ${error.name}: ${error.message}`);
    }
  },
};
