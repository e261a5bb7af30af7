// WK-10: error.stack begins with "Name: message" and has lines "    at function (file:line:column)" with
// the places of the project, whoever made the error and however it is looked at (src/js/engine/stacks.h, T1, T2).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { without } from "../lib/engine.mjs";
import { objects } from "../lib/toml.mjs";

const off = without("stacks");
let server;
before(async () => {
  server = await serve(project({
    "wrangler.toml": `name = "stacks"
main = "src/index.ts"
compatibility_date = "2026-05-01"
compatibility_flags = ["nodejs_compat"]
${objects({ THROWER: "Thrower" })}`,
    "src/index.ts": `import { DurableObject } from "cloudflare:workers";
import { inspect } from "node:util";
import { cases } from "./cases";
export class Thrower extends DurableObject {
  throws() { const error = new RangeError("there"); error.code = 7; throw error; }
  engine() { return (undefined as any).member; }
}
export default {
  async fetch(request: Request, env: any): Promise<Response> {
    const name = new URL(request.url).pathname.slice(1);
    try {
      return Response.json(await cases[name](env, inspect) ?? null);
    } catch (error) {
      return new Response((error as Error).stack, { status: 500 });
    }
  },
};
`,
    "src/cases.ts": `type Any = any;
class Special extends TypeError { constructor(message: string) { super(message); this.name = "Special"; } }
class Captured extends Error { constructor(message: string) { super(message); Error.captureStackTrace(this, Captured); } }
function engineError() { try { (null as Any).x; } catch (error) { return error as Error; } }
const names = (error: Any) => Object.getOwnPropertyNames(error).sort();
function thrower() { throw new Error("from a function"); }
const ways: [string, (e: Any) => unknown][] = [
  ["read", (e) => e.stack],
  ["twice", (e) => e.stack && e.stack],
  ["names", (e) => Object.getOwnPropertyNames(e) && e.stack],
  ["keys", (e) => Reflect.ownKeys(e) && e.stack],
  ["own", (e) => Object.hasOwn(e, "stack") && e.stack],
  ["descriptor", (e) => { const d = Object.getOwnPropertyDescriptor(e, "stack")!; return d.get ? d.get() : d.value; }],
  ["line written", (e) => { e.line = 3; return e.line === 3 && Object.keys(e).includes("line") && e.stack; }],
  ["column written", (e) => { e.column = 3; return e.column === 3 && e.stack; }],
  ["sourceURL deleted", (e) => delete e.sourceURL && e.stack],
  ["defined", (e) => Object.defineProperty(e, "stack", { enumerable: true }).stack],
  ["frozen", (e) => Object.freeze(e).stack],
  ["inherited", (e) => Object.create(e).stack],
  ["computed", (e) => e[["st", "ack"].join("")]],
  ["destructured", ({ stack }) => stack],
  ["reflected", (e) => Reflect.get(e, "stack")],
  ["after other members", (e) => { e.more = 1; e.message += ""; return e.more === 1 && e.stack; }],
];
const makers: (() => Any)[] = [
  () => new Error("m"), () => new RangeError("m", { cause: 1 }), () => new Special("m"), () => new Captured("m"),
  () => { const error = engineError() as Any; error.message = "m"; return error; },
  () => new DOMException("m", "AbortError"), () => new AggregateError([], "m"),
];
export const cases: Record<string, (env: Any, inspect: Any) => unknown> = {
  thrown: () => thrower(),
  engine: () => engineError()!.stack,
  subclass: () => new Special("it").stack,
  captured: () => (function outer() { return new Captured("here").stack; })(),
  exception: () => [new DOMException("gone", "AbortError").stack, names(new DOMException("x"))],
  shape: () => {
    const error = new Error("x") as Any;
    const { value, ...rest } = Object.getOwnPropertyDescriptor(error, "stack")!;
    return [typeof value, rest, names(new Error("y")), Object.keys(error), JSON.parse(JSON.stringify(error, Object.getOwnPropertyNames(error)))];
  },
  headers: () => [new Error("").stack, new Error("two\\nlines").stack, Object.assign(new Error("m"), { name: "" }).stack].map((text) => text!.split("\\n    at ")[0]),
  hostile: () => {
    const a = new Error("m"); Object.defineProperty(a, "name", { get() { throw 1; } });
    const b = new Error("m"); Object.defineProperty(b, "message", { get() { return this.stack ?? "none"; } });
    const c = new Error("m"); Object.setPrototypeOf(c, null);
    const d = new Error("m"); Object.defineProperty(d, "name", { value: Symbol("s") });
    return [a, b, c, d].map((error) => typeof error.stack);
  },
  written: () => {
    const a = new Error("a"); a.stack = "mine";
    const b = new Error("b"); delete b.stack;
    return [a.stack, names(a), b.stack ?? null, names(b)];
  },
  object: () => {
    const o = { name: "N", message: "M" } as Any;
    Error.captureStackTrace(o);
    const plain = {} as Any;
    (function inner() { Error.captureStackTrace(plain, inner); })();
    let refused;
    try { Error.captureStackTrace(Object.freeze({})); } catch (error) { refused = (error as Error).name; }
    return [o.stack, Object.keys(o), plain.stack, refused];
  },
  again: () => {
    const error = new Error("m") as Any;
    const first = error.stack;
    error.message = "changed";
    (function later() { Error.captureStackTrace(error); })();
    return [first, error.stack];
  },
  limit: () => {
    const before = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    const none = new Error("none");
    Error.stackTraceLimit = 1;
    const deep = (n: number): Error => (n > 0 ? deep(n - 1) : new Error("one"));
    const one = deep(5);
    Error.stackTraceLimit = before;
    return [none.stack, one.stack!.split("\\n").length];
  },
  prepared: function prepared() {
    const before = (Error as Any).prepareStackTrace;
    (Error as Any).prepareStackTrace = (error: Error, sites: Any[]) => ({ message: error.message, sites });
    const { message, sites } = new Error("given").stack as Any;
    const holder = {} as Any;
    Error.captureStackTrace(holder);
    const count = holder.stack.sites.length;
    (Error as Any).prepareStackTrace = () => { throw new Error("in it: " + new Error("x").stack); };
    const thrown = typeof new Error("falls back").stack;
    (Error as Any).prepareStackTrace = before;
    return { message, file: sites[0].getFileName(), line: sites[0].getLineNumber(), column: sites[0].getColumnNumber(), name: sites[0].getFunctionName(), text: String(sites[0]), count, thrown };
  },
  cloned: () => structuredClone(new RangeError("copied")).stack,
  remote: async (env) => {
    const stub = env.THROWER.getByName("a");
    const error = await stub.throws().catch((error: Any) => error);
    const engine = await stub.engine().catch((error: Any) => error);
    return [error.stack, error.code, engine.stack.split("\\n")[0]];
  },
  inspected: (env, inspect) => inspect(new Error("shown")),
  compiled: () => {
    const wrong = [];
    for (let i = 0; i < 400 && wrong.length === 0; i++) {
      for (const [name, way] of ways) {
        for (const make of makers) {
          const stack = way(make());
          if (typeof stack !== "string" || !/^\\w+: m\\n    at /.test(stack)) wrong.push([i, name, stack]);
        }
      }
    }
    return wrong;
  },
};
`,
  }));
});
after(() => server.stop());

const get = async (name) => (await server.fetch(`/${name}`)).json();
const lineOf = (stack, number = 1) => stack.split("\n")[number];

test("WK-10 the stack that a handler answers with has name, message and places of the project", { skip: off }, async () => {
  const response = await server.fetch("/thrown");
  assert.equal(response.status, 500);
  assert.match(await response.text(), /^Error: from a function\n {4}at thrower \(src\/cases\.ts:6:\d+\)\n {4}at .*src\/cases\.ts:\d+:\d+/);
});
test("WK-10 errors of the engine, of subclasses and DOMExceptions have it too", { skip: off }, async () => {
  assert.match(await get("engine"), /^TypeError: .+\n {4}at engineError \(src\/cases\.ts:4:\d+\)\n/);
  assert.match(await get("subclass"), /^Special: it\n {4}at /);
  assert.match(lineOf(await get("captured")), /^ {4}at outer \(src\/cases\.ts:\d+:\d+\)$/);
  const [stack, names] = await get("exception");
  assert.match(stack, /^AbortError: gone\n {4}at /);
  assert.deepEqual(names, ["code", "message", "name", "stack"]);
});
test("the engine's own line, column and sourceURL are not there, and stack is not enumerable", { skip: off }, async () => {
  const [type, attributes, names, keys, copy] = await get("shape");
  assert.deepEqual([type, attributes, names, keys], ["string", { writable: true, enumerable: false, configurable: true }, ["message", "stack"], []]);
  assert.deepEqual(Object.keys(copy).sort(), ["message", "stack"]);
});
test("empty names and messages, and several lines of one", { skip: off }, async () => {
  assert.deepEqual(await get("headers"), ["Error", "Error: two\nlines", "m"]);
});
test("names and messages that throw or ask for the stack do no harm", { skip: off }, async () => {
  assert.deepEqual(await get("hostile"), ["string", "string", "string", "string"]);
});
test("a stack that was written or deleted first stays so", { skip: off }, async () => {
  assert.deepEqual(await get("written"), ["mine", ["message", "stack"], null, ["message"]]);
});
test("Error.captureStackTrace() on objects, and again on an error", { skip: off }, async () => {
  const [stack, keys, plain, refused] = await get("object");
  assert.match(stack, /^N: M\n {4}at src\/cases\.ts:/);
  assert.deepEqual(keys, ["name", "message"]);
  assert.match(plain, /^Error\n {4}at src\/cases\.ts:/);
  assert.equal(refused, "TypeError");
  const [first, second] = await get("again");
  assert.match(first, /^Error: m\n {4}at src\/cases/);
  assert.match(second, /^Error: changed\n {4}at later /);
});
test("Error.stackTraceLimit", { skip: off }, async () => {
  assert.deepEqual(await get("limit"), ["Error: none", 2]);
});
test("Error.prepareStackTrace gets call sites; one that throws is left out", { skip: off }, async () => {
  const { line, column, text, count, ...rest } = await get("prepared");
  assert.deepEqual(rest, { message: "given", file: "src/cases.ts", name: "prepared", thrown: "string" });
  assert.ok(line > 1 && column > 1 && count > 0);
  assert.equal(text, `prepared (src/cases.ts:${line}:${column})`);
});
test("DO-ERR-2 clones and errors of other objects bring their stacks", { skip: off }, async () => {
  assert.match(await get("cloned"), /^RangeError: copied\n {4}at src\/cases\.ts:/);
  const [stack, code, engine] = await get("remote");
  assert.match(stack, /^RangeError: there\n {4}at throws \(src\/index\.ts:5:/);
  assert.equal(code, 7);
  assert.match(engine, /^TypeError: undefined is not an object/);
  assert.match(await get("inspected"), /^Error: shown\n {4}at src\/cases\.ts:\d+:\d+/);
});
test("every way to a stack gives it its form, in compiled code too (T1, T2)", { skip: off }, async () => {
  assert.deepEqual(await get("compiled"), []);
});
test("T3: code that never ends while a stack is made ends with its CPU limit; the next event is as usual", async () => {
  const limited = await serve(project({
    "wrangler.toml": 'name = "limited"\nmain = "index.js"\ncompatibility_date = "2026-05-01"\nlimits = { cpu_ms = 100 }\n',
    "index.js": `
      let length = 0;
      export default {
        fetch(request) {
          const { pathname } = new URL(request.url);
          if (pathname === "/reads") for (;;) length += new Error("x").stack.length;
          if (pathname === "/getter") {
            const error = new Error("x");
            Object.defineProperty(error, "message", { get() { for (;;) ; } });
            for (;;) length += error.stack.length;
          }
          return new Response(new Error("fine").message);
        },
      };`,
  }));
  try {
    for (const path of ["/reads", "/getter"]) {
      assert.equal((await limited.fetch(path)).status, 503, path);
      assert.equal(await (await limited.fetch("/")).text(), "fine");
    }
  } finally {
    await limited.stop();
  }
});
