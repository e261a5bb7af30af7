// Places where `await`, `yield` and `for await` can stand. Each case answers with what happened and in
// which order; a bundle must do what Node.js does with the file as it is.
const tick = (value) => new Promise((resolve) => setTimeout(resolve, 1, value));
const fails = (value) => new Promise((_, reject) => setTimeout(reject, 1, value));
const soon = (value) => Promise.resolve(value);

export const cases = {
  async operands() {
    const a = (await tick(1)) + (await tick(2)) * -(await tick(3));
    return [a, typeof (await tick(1)), void (await tick(1)), !(await tick(0)), await (await tick(soon(5))), -await tick(2), (await tick(2)) ** (await tick(3))];
  },
  async "left side is read before the wait"() {
    let n = 1;
    const o = { n: 1 };
    const both = [(async () => { n += await tick(1); })(), (async () => { o.n += await tick(1); })()];
    n = 10;
    o.n = 10;
    await Promise.all(both);
    return [n, o.n];
  },
  async "order of targets and values"() {
    const log = [];
    const note = (name, value) => (log.push(name), value);
    const o = {};
    note("o", o)[note("key", await tick("k"))] = note("value", await tick(1));
    const { [note("a", await tick("k"))]: a = note("unused"), [note("b", "missing")]: b = note("default", await tick(2)) } = o;
    const [x = await tick(7), , ...rest] = [undefined, 1, await tick(3)];
    return [log, o, a, b, x, rest];
  },
  async calls() {
    const o = { n: 5, get() { return this.n; }, tag(strings, ...values) { return [this.n, strings.raw.join("|"), values]; } };
    class Made { constructor(...args) { this.args = args; this.target = new.target.name; } }
    const made = new (await tick(Made))(await tick(1), ...(await tick([2, 3])));
    return [(await tick(o)).get(), (await tick(o))["get"](), (await tick(o.get)).call(await tick({ n: 6 })), (await tick(o)).tag`a${await tick(1)}b${await tick(2)}`, made, made.args.length];
  },
  async "optional chains and logic"() {
    const log = [];
    const note = async (value) => (log.push(value), tick(value));
    const none = null;
    return [none?.[await note(1)], (await note(null))?.x.y.z, (await note({ f() { return 1; } }))?.f?.(), (await note(0)) || (await note(2)), (await note(0)) && (await note(3)),
      (await note(null)) ?? (await note(4)), (await note(true)) ? await note(5) : await note(6), log];
  },
  async assignments() {
    let a = null, b = 1, c = 0;
    a ??= await tick(1);
    b &&= await tick(2);
    c ||= await tick(3);
    a ??= await tick(9);
    const o = { list: [1] };
    o.list[await tick(0)]++;
    delete (await tick(o)).gone;
    return [a, b, c, o, "list" in (await tick(o)), (await tick([])) instanceof (await tick(Array))];
  },
  async literals() {
    return [{ [await tick("k")]: await tick(1), ...(await tick({ s: 2 })), async m() { return tick(3); } }.k, `${await tick(1)}-${await tick(2)}`, [await tick(1), ...(await tick([2]))], /x/[await tick("source")]];
  },
  async "switch and loops"() {
    const out = [];
    switch (await tick(2)) {
      case await tick(1): out.push("one");
      case await tick(2): out.push("two");
      case 3: out.push("three"); break;
      default: out.push("none");
    }
    let i = 0;
    while (await tick(i < 3)) { if ((await tick(i++)) === 1) continue; out.push(i); }
    do { out.push("do"); } while (await tick(false));
    for (let j = await tick(0); j < (await tick(3)); j += await tick(1)) out.push(`j${j}`);
    for (const k of await tick(["x", "y"])) out.push(await tick(k));
    for (const k in await tick({ p: 1 })) out.push(await tick(k));
    outer: for (const x of [1, 2]) for await (const y of [tick(1), 2]) { if (y === 2) continue outer; out.push([x, y]); }
    named: { await tick(1); if (i) break named; out.push("never"); }
    return out;
  },
  async "closures in loops"() {
    const list = [];
    for (let i = 0; i < 3; i++) { await tick(1); list.push(() => i); }
    for (const i of [3, 4]) { await tick(1); list.push(() => i); }
    return list.map((f) => f());
  },
  async "try, catch, finally"() {
    const out = [];
    const run = async (how) => {
      try {
        out.push(`try ${how}`);
        if (how === "throw") throw await tick("thrown");
        if (how === "reject") await fails("rejected");
        if (how === "return") return await tick("returned");
        return "end";
      } catch (error) {
        out.push(`catch ${await tick(error)}`);
        if (how === "reject") throw await tick("again");
      } finally {
        out.push(`finally ${await tick(how)}`);
      }
      return "after";
    };
    for (const how of ["plain", "throw", "reject", "return"]) out.push(await run(how).catch((error) => `failed ${error}`));
    out.push(await (async () => { try { return await tick(1); } finally { return await tick(2); } })());
    out.push(await (async () => { for (;;) { try { await tick(1); break; } finally { await tick(2); } } return "broke"; })());
    out.push(await (async () => { try { await fails({ code: 7, list: [1] }); } catch ({ code, list: [first], other = await tick("d") }) { return [code, first, other]; } })());
    out.push(await (async () => { try { await fails(1); } catch { try { await fails(2); } catch (inner) { return await tick(inner); } } })());
    return out;
  },
  async "return of a promise is not awaited in try"() {
    const inner = async () => { try { return fails("late"); } catch { return "caught"; } };
    return inner().catch((error) => `outside: ${error}`);
  },
  async "arguments, this, new.target, super"() {
    class Base { async m(x) { return [this.n, await tick(x)]; } static async s() { return [this.name, await tick(1)]; } }
    class Sub extends Base {
      n = 4;
      async m(x) { return [await super.m(await tick(x)), await (async () => super.m(await tick(9)))()]; }
      static async s() { return super.s(); }
      async args() { await tick(1); return [arguments.length, arguments[0], await (async () => arguments[1])()]; }
      arrow = async () => (await tick(1), this.n);
      async #hidden() { return this.n + (await tick(1)); }
      hidden() { return this.#hidden(); }
      async has(o) { await tick(1); return #hidden in o; }
      async *generate() { yield this.n; yield* super.m ? [await tick(1)] : []; }
      get [Symbol.toStringTag]() { return "Sub"; }
    }
    const sub = new Sub();
    const all = [];
    for await (const x of sub.generate()) all.push(x);
    async function fn() { await tick(1); return [this === undefined, new.target === undefined, arguments.length]; }
    return [await sub.m(1), await Sub.s(), await sub.args("a", "b"), await sub.arrow(), await sub.hidden(), await sub.has(sub), await sub.has({}), all, await fn(1, 2)];
  },
  async "parameters"() {
    const f = async (a, b = a + 1, { c, d = b } = {}, [e = d] = [], ...rest) => [a, b, c, d, e, rest, await tick(1)];
    const late = async ({ x }) => x;
    const bad = await late(null).then(() => "no", (error) => error instanceof TypeError);
    const g = async (x = (() => { throw new Error("in default"); })()) => x;
    return [await f(1), await f(1, 2, { c: 3 }, [4], 5, 6), bad, await g().catch((error) => error.message), f.length, f.name, (async function named() {}).name];
  },
  async "functions are what they were"() {
    const af = async () => {}, ag = async function* () {};
    return [Object.prototype.toString.call(af), Object.prototype.toString.call(ag), "prototype" in af, af() instanceof Promise, typeof ag().next,
      Object.getPrototypeOf(af) === Object.getPrototypeOf(async function () {}), ({ async m() {} }).m.name, ({ async ["c" + 1]() {} }).c1.name];
  },
  async "async generators"() {
    const log = [];
    async function* generate(x) {
      try {
        const got = yield x;
        log.push(`got ${got}`);
        const other = yield tick("promised");
        log.push(`other ${other}`);
        yield* inner();
        return await tick("result");
      } catch (error) {
        log.push(`caught ${error}`);
        yield "after catch";
      } finally {
        log.push(`finally ${await tick("f")}`);
      }
    }
    async function* inner() {
      try { const v = yield "i1"; log.push(`inner ${v}`); yield* ["i2", "i3"]; return "i"; } finally { log.push("inner finally"); await tick(1); }
    }
    const out = [];
    const a = generate(1);
    for (const value of [undefined, "a", "b", "c", "d", "e", "f", "g"]) out.push(await a.next(value));
    const b = generate(2);
    await b.next();
    out.push(await b.throw("e"), await b.next());
    const c = generate(3);
    await c.next();
    await c.next();
    await c.next();
    out.push(await c.return("r"), await c.next());
    const d = generate(4);
    out.push(...(await Promise.all([d.next(), d.next(1), d.next(2), d.return("x")])));
    const e = generate(5);
    out.push(await e.return(tick("early")), await generate(6).throw("first").catch((error) => `failed ${error}`));
    return [out, log];
  },
  async "for await"() {
    const out = [];
    const source = (n, log) => ({
      [Symbol.asyncIterator]() {
        let i = 0;
        return { next: async () => (await tick(1), { value: i, done: i++ >= n }), return: async () => (log.push("return"), {}) };
      },
    });
    const log = [];
    for await (const x of source(3, log)) out.push(x);
    for await (const x of source(3, log)) if (x === 1) break;
    await (async () => { for await (const x of source(3, log)) return x; })();
    await (async () => { for await (const _ of source(3, log)) throw new Error("body"); })().catch((error) => out.push(error.message));
    for await (const { a = await tick(1), b: [c] = [await tick(2)] } of [{}, tick({ a: 3, b: [4] })]) out.push([a, c]);
    let target = {};
    for await (target.x of [tick(1), tick(2)]) out.push(target.x);
    for await (const x of (function* () { yield tick(1); yield 2; })()) out.push(x);
    for await (let x of [1, 2]) { x += await tick(1); out.push(x); }
    for await (const x of [1]) out.push(await tick(x)); // a body without braces
    if (await tick(true)) for await (const x of [9]) out.push(x); else out.push("never");
    return [out, log];
  },
  async "statements without braces"() {
    const out = [];
    if (await tick(false)) out.push(1); else out.push(await tick(2));
    for (const x of [1, 2]) await tick(out.push(x));
    while (out.length < 5) await tick(out.push("w"));
    do await tick(out.push("d")); while (out.length < 6)
    label: for (;;) if (await tick(true)) break label;
    return out
  },
  async "no semicolons"() {
    const a = await tick(1)
    ;[1].forEach(() => {})
    const b = await tick
    (2)
    const c = async () => await tick(3)
    let d
    await tick(4).then((x) => { d = x })
    return [a, b, await c(), d]
  },
  async "comments and strings"() {
    const text = "await tick(1)"; // await nothing
    /* await */ const a = /* before */ await /* between */ tick(1) /* after */;
    const re = /await (x)/.test("await x");
    return [text, a, re, `await ${/* in */ await tick(2)} yield`];
  },
  async "names that look like keywords"() {
    const await_ = 1, o = { await: 2, async: 3, yield: 4, of: 5 };
    const async = (x) => x, of = [1];
    const r = [];
    for (const x of of) r.push(x);
    return [await_, o.await, o.async, o.yield, async(6), await async(await tick(7)), r];
  },
  async "arrow bodies"() {
    const f = async (x) => await tick(x), g = async (x) => ({ x: await tick(x) }), h = async (x) => [await tick(x)], i = async (x) => async (y) => (await tick(x)) + (await tick(y));
    const j = async (x) => (await tick(x), await tick(x + 1)), k = async x => await tick(x) ? await tick("t") : await tick("f");
    return [await f(1), await g(2), await h(3), await (await i(4))(5), await j(6), await k(0), await (async () => {})(), await (async _ => 1)()];
  },
  async "eval and Function constructors"() {
    const AsyncFunction = (async () => {}).constructor;
    try {
      return [await new AsyncFunction("f", "return 1 + await f(1)")(tick)];
    } catch (error) {
      return [2];
    }
  },
  async "number of microtasks"() {
    // Waiting takes no more turns of the microtask queue than it should.
    const log = [];
    const count = async (name, n) => { for (let i = 0; i < n; i++) { await null; log.push(name + i); } };
    await Promise.all([count("a", 4), count("b", 4), (async () => { await soon(1); log.push("c"); await soon(2); log.push("d"); })()]);
    const order = [];
    await Promise.all([
      (async () => { try { await Promise.reject(1); } catch { order.push("catch"); } finally { order.push("finally"); } await null; order.push("after"); })(),
      (async () => { await null; order.push(1); await null; order.push(2); await null; order.push(3); })(),
      (async () => { for await (const x of [1, 2]) order.push(`f${x}`); order.push("end"); })(),
    ]);
    return [log, order];
  },
  async "uncaught in one of many"() {
    const results = await Promise.allSettled([fails(1), tick(2), (async () => { await tick(1); throw new RangeError("x"); })()]);
    return results.map(({ status, value, reason }) => [status, value ?? null, reason?.message ?? reason ?? null]);
  },
  async "deep recursion of waits"() {
    const down = async (n) => (n === 0 ? 0 : 1 + (await down(n - 1)));
    return down(500);
  },
  async "for await over an array with a rejected promise"() {
    const out = [];
    await (async () => { for await (const _ of [tick(1), fails("element")]) out.push(_); })().catch((error) => out.push(error));
    return out;
  },
  async "yield* of an array with a rejected promise"() {
    async function* generate() { yield* [fails("element")]; }
    return generate().next().catch((error) => error);
  },
  async "Array.fromAsync with a rejected promise"() {
    if (Array.fromAsync === undefined) return "element"; // an old Node.js
    return Array.fromAsync([fails("element")]).catch((error) => error);
  },
};

export async function run(name) {
  return JSON.stringify(await cases[name](), (_, value) => (value === undefined ? "undefined" : typeof value === "function" ? "function" : value));
}
