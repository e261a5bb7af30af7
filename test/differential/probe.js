// Runs inside both peers, in front of the programs: gives what a value is as a text, and runs the calls of a program.
// It is text in front of a script, so nothing here is imported.
const kObjectTag = Object.prototype.toString;

/** Accessors of the platform's objects that say nothing about a call. */
const SILENT = new Set(["timeStamp", "cf", "lastModified", "signal", "webSocket", "stack", "caller", "callee", "arguments"]);

function describeError(error) {
  if (error instanceof DOMException) return `DOMException ${error.name} ${error.code}`;
  const code = typeof error.code === "string" ? ` ${error.code}` : "";
  return `${error.name}${code}`;
}

function describe(value, depth = 0, seen = []) {
  if (typeof value === "string") return value.length > 300 ? `${JSON.stringify(value.slice(0, 300))}... of ${value.length}` : JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol") return "a symbol";
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : String(value);
  if (seen.includes(value)) return "circular";
  if (depth > 3) return "...";
  const inside = (v) => describe(v, depth + 1, [...seen, value]);
  if (value instanceof Error || value instanceof DOMException) return describeError(value);
  if (value instanceof ArrayBuffer) return `ArrayBuffer ${inside(new Uint8Array(value))}`;
  if (ArrayBuffer.isView(value)) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return `${kObjectTag.call(value).slice(8, -1)} of ${bytes.length}: ${[...bytes.subarray(0, 64)].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
  }
  if (Array.isArray(value)) return `[${value.slice(0, 50).map(inside).join(", ")}${value.length > 50 ? `... of ${value.length}` : ""}]`;
  if (value instanceof Date) return `Date ${value.getTime()}`;
  if (value instanceof RegExp) return `RegExp ${value}`;
  if (value instanceof Map || value instanceof Set) return `${kObjectTag.call(value).slice(8, -1)} ${inside([...value])}`;
  if (value instanceof Promise) return "a promise";
  const tag = kObjectTag.call(value).slice(8, -1);
  if (/Iterator|Generator/.test(tag)) return "an iterator"; // the names of their classes are not the interface's
  const parts = [];
  for (const key of Object.keys(value).sort()) {
    if (SILENT.has(key)) continue;
    try {
      parts.push(`${key}: ${inside(value[key])}`);
    } catch (error) {
      parts.push(`${key}: throws ${describeError(error)}`);
    }
  }
  if (tag !== "Object") {
    // What an interface's accessors give, by their names: peers keep them on different objects.
    const names = new Set();
    for (let p = Object.getPrototypeOf(value); p !== null && p !== Object.prototype; p = Object.getPrototypeOf(p)) {
      for (const [name, d] of Object.entries(Object.getOwnPropertyDescriptors(p))) if (d.get && !SILENT.has(name) && !name.startsWith("__")) names.add(name);
    }
    for (const name of [...names].sort()) {
      if (Object.hasOwn(value, name)) continue;
      try {
        parts.push(`${name}: ${inside(value[name])}`);
      } catch (error) {
        parts.push(`${name}: throws ${error?.name}`);
      }
    }
    if (/^(Headers|FormData|URLSearchParams)$/.test(tag)) parts.push(inside([...value]));
    parts.sort();
  }
  return `${tag === "Object" ? "" : `${tag} `}{${parts.join(", ")}}`;
}

const PENDING = Symbol();
// What both do at once is done after some turns of the loop; what waits for the outside is not part of a program.
const later = (turns) => new Promise((resolve) => {
  const next = () => (turns-- > 0 ? setTimeout(next, 10) : resolve(PENDING));
  next();
});

/** Runs one program with what it may reach; resolves to a text for each call. */
async function runProgram(program, reach = {}) {
  const results = [];
  const call = async (body) => {
    let value;
    try {
      value = body();
    } catch (error) {
      results.push(`throws ${typeof error === "object" && error !== null ? describeError(error) : describe(error)}`);
      return undefined;
    }
    let promised = false;
    try {
      promised = value instanceof Promise;
    } catch {
      // A proxy that throws.
    }
    if (!promised) {
      results.push(describe(value));
      return value;
    }
    const outcome = await Promise.race([value.then((v) => ({ v }), (error) => ({ error })), later(15)]);
    if (outcome === PENDING) results.push("pending");
    else if ("error" in outcome) results.push(`rejects ${typeof outcome.error === "object" && outcome.error !== null ? describeError(outcome.error) : describe(outcome.error)}`);
    else results.push(`resolves ${describe(outcome.v)}`);
    return outcome === PENDING ? undefined : outcome.v;
  };
  try {
    await program(call, reach);
  } catch (error) {
    results.push(`the program threw ${error?.name}`);
  }
  return results;
}

const programs = [];
addEventListener("unhandledrejection", (event) => event.preventDefault());
export default {
  async fetch(request, env) {
    // ?from=&to=: those programs, at once; they share nothing but the global scope.
    const url = new URL(request.url);
    const from = +url.searchParams.get("from");
    const some = programs.slice(from, +url.searchParams.get("to"));
    const run = typeof runProgramIn === "function" ? runProgramIn : runProgram;
    return Response.json(await Promise.all(some.map((program, i) => run(program, typeof runProgramIn === "function" ? from + i : {}, env))));
  },
};
