// Calls objects of test/module/probe.c in every way that JavaScript has: a scenario for each path, which
// throws if something is not as it should be.
import assert from "node:assert";
import { DurableObject } from "cloudflare:workers";

const KIND = ["undefined", "null", "bool", "number", "bigint", "text", "bytes", "date", "array", "object", "map", "set", "regexp", "fault", "other", "function", "stream", "stub"];

let serial = 0;
const fresh = (env) => env.OBJECT.getByName(`scenario ${++serial} ${crypto.randomUUID()}`);

/** @type {Record<string, (env: any) => Promise<unknown>>} */
const scenarios = {
  async values(env) {
    const object = fresh(env);
    const values = [undefined, null, true, false, 0, -1, 111, 112, -17, 2 ** 31, -(2 ** 31), 2 ** 40, 1.5, NaN, Infinity, -0, "", "abc", "x".repeat(31), "y".repeat(32), "z".repeat(70000),
      "é", "Grüße, Jürgen", "日本語", "😀 and \u0000 inside", [], [1, [2, [3, ["four"]]]], {}, { a: 1, b: { c: [true] } }, new Map([["k", 1], [{ x: 1 }, [2]]]),
      new Date(1234567890123), 5n, -5n, 2n ** 63n - 1n, -(2n ** 63n), 0n, { "ключ": 1, "k\u0000ey": 2, "": 3 }, new Uint8Array([1, 2, 255]), new Array(200).fill(7)];
    for (const value of values) assert.deepStrictEqual(stripDispose(await object.echo(value)), value);
    assert.deepStrictEqual(stripDispose(await object.echo([1, , 3])), [1, undefined, 3]);
    const shared = { s: 1 };
    assert.deepStrictEqual(stripDispose(await object.echo([shared, shared])), [{ s: 1 }, { s: 1 }]);
    assert.deepStrictEqual(stripDispose(await object.echo(Object("boxed"))), "boxed");
    assert.deepStrictEqual(stripDispose(await object.echo(new Float32Array([1.5]))), new Uint8Array(new Float32Array([1.5]).buffer));
    assert.deepStrictEqual(stripDispose(await object.echo(new Uint8Array([9, 8, 7, 6]).subarray(1, 3))), new Uint8Array([8, 7]));
    assert.strictEqual(await object.echo("\ud800"), "\ufffd");
  },
  async kinds(env) {
    const object = fresh(env);
    const kind = async (value) => KIND[(await object.kind(value)).kind];
    const kinds = { undefined, null: null, bool: true, number: 1, bigint: 1n, text: "t", bytes: new ArrayBuffer(2), date: new Date(0), array: [1], object: { a: 1 }, map: new Map(), set: new Set([1]), regexp: /a/g, fault: new Error("e"), other: new Headers(), function: () => 1, stream: new ReadableStream({ type: "bytes" }), stub: object };
    for (const [name, value] of Object.entries(kinds)) assert.strictEqual(await kind(value), name);
    const big = await object.kind(2n ** 70n + 1n);
    assert.deepStrictEqual([big.int, [...big.bytes]], [null, [1, 0, 0, 0, 0, 0, 0, 0, 64]]);
    assert.strictEqual((await object.kind(2 ** 53)).int, null);
    assert.strictEqual((await object.kind(-(2 ** 53 - 1))).int, -(2n ** 53n - 1n));
    assert.strictEqual((await object.kind(1.5)).int, null);
    const error = await object.kind(Object.assign(new TypeError("told"), { extra: 1 }));
    assert.deepStrictEqual([error.message, error.name], ["told", "TypeError"]);
    assert.strictEqual((await object.kind(new DOMException("m", "AbortError"))).name, "AbortError");
    assert.strictEqual((await object.kind(new Set([1, 2, 3]))).count, 3);
  },
  async refused(env) {
    const object = fresh(env);
    const cyclic = { a: [] };
    cyclic.a.push(cyclic);
    await assert.rejects(async () => object.echo(cyclic), /contains itself/);
    let twice = [1];
    for (let i = 0; i < 40; i++) twice = [twice, twice];
    await assert.rejects(async () => object.echo(twice), /more than 1048576 values/);
    await assert.rejects(async () => object.echo(new Array(1100000).fill(0)), /more than 1048576 values/);
    await assert.rejects(async () => object.echo(() => 1), /cannot be copied/);
    let deep = 1;
    for (let i = 0; i < 1900; i++) deep = [deep];
    assert.ok(Array.isArray(await object.echo(deep)));
    await assert.rejects(async () => object.mistake(), /not built right: a value of an object has no name/);
    await assert.rejects(async () => object.open(), /not built right: an array, object or map was not ended/);
    await assert.rejects(async () => object.property, /does not implement the property "property"/);
    await assert.rejects(async () => object.nothing(), (error) => error instanceof TypeError && /no method "nothing"/.test(error.message) && error.remote === true);
    await assert.rejects(async () => env.BARE.getByName("a").method(), /does not implement the method "method"/);
    await assert.rejects(async () => env.BARE.getByName("a").fetch("https://o/"), /has no fetch\(\) function/);
  },
  async errors(env) {
    const object = fresh(env);
    await assert.rejects(async () => object.fail("RangeError", "too far"), (error) => error instanceof RangeError && error.message === "too far" && error.remote === true && error.durableObjectId === `${object.id}`);
    await assert.rejects(async () => object.fail("OwnError", "mine"), (error) => error.name === "OwnError" && error.message === "mine");
    assert.strictEqual(await object.get("written"), "before the error");
    await assert.rejects(async () => object.silent(), /failed with -77 and no error text/);
    await assert.rejects(async () => env.OBJECT.getByName("refuses").count(), (error) => error instanceof RangeError && error.message === "no such object: refuses");
    await assert.rejects(async () => object.exec("SELECT * FROM absent"), /no such table: absent/);
    await assert.rejects(async () => object.exec("SELECT * FROM _cf_KV"), /prohibited|not authorized|access to/);
    await assert.rejects(async () => object.exec("BEGIN"), /not authorized|transaction/i);
  },
  async storage(env) {
    const object = fresh(env);
    await object.put("a", { deep: [1, "two"] });
    await object.put("b", new Map([["x", new Date(5)]]));
    assert.deepStrictEqual(stripDispose(await object.get("a")), { deep: [1, "two"] });
    assert.deepStrictEqual([...await object.list("")].map(([key]) => key), ["a", "b"]);
    assert.deepStrictEqual([...await object.list("", true)].map(([key]) => key), ["b", "a"]);
    assert.deepStrictEqual([...await object.list("", false, 1)].map(([key]) => key), ["a"]);
    assert.deepStrictEqual([...await object.list("b")].map(([key]) => key), ["b"]);
    assert.deepStrictEqual([await object.delete("a"), await object.delete("a"), await object.get("a")], [true, false, undefined]);
    await assert.rejects(async () => object.put("k".repeat(2049), 1), /2048 bytes/);
    await assert.rejects(async () => object.put("big", "v".repeat(3 << 20)), /2 MiB/);
    assert.strictEqual(await object.insert("one", 1.5, new Uint8Array([1])), 1);
    assert.strictEqual(await object.insert("zwei ü", 2), 2);
    const rows = stripDispose(await object.rows("SELECT id, text, number, bytes FROM items ORDER BY id"));
    assert.deepStrictEqual(rows, [{ id: 1, text: "one", number: 1.5, bytes: new Uint8Array([1]) }, { id: 2, text: "zwei ü", number: 2, bytes: null }]);
    assert.strictEqual((await object.rows("SELECT id FROM items", 1)).length, 1); // left half read
    await object.clear();
    assert.deepStrictEqual(stripDispose(await object.rows("SELECT * FROM items")), []);
    assert.strictEqual(await object.insert("after", 1), 1); // S1: a kept statement after delete_all()
    assert.strictEqual(await object.get("b"), undefined);
    await assert.rejects(async () => object.rows("SELECT 1; SELECT 2"), /takes one statement/);
  },
  async transactions(env) {
    const keys = async (how, fails) => {
      const object = fresh(env);
      if (fails) await assert.rejects(async () => object.transaction(how), fails);
      else await object.transaction(how);
      return [...await object.list("")].map(([key]) => key);
    };
    assert.deepStrictEqual(await keys("commit"), ["before", "inside"]);
    assert.deepStrictEqual(await keys("rollback"), ["before"]);
    assert.deepStrictEqual(await keys("nested"), ["before", "inside"]);
    const deep = fresh(env);
    assert.strictEqual(await deep.depth(), 60);
    assert.strictEqual(await deep.get("depths"), undefined);
    assert.deepStrictEqual(await keys("left open", /a transaction was left open, and has been undone/), ["before"]);
  },
  async later(env) {
    const object = fresh(env);
    const first = object.later({ kept: 1 });
    await object.now("answer");
    assert.deepStrictEqual(stripDispose(await first), { kept: 1 });
    const second = object.later("the reason");
    const failed = assert.rejects(async () => second, (error) => error instanceof TypeError && error.message === "the reason");
    await object.now("fail");
    await failed;
    const third = object.later(1);
    const reset = assert.rejects(async () => third, /enough/);
    await assert.rejects(async () => object.abort("enough"), (error) => error.message === "enough" && error.durableObjectReset === true);
    await reset;
    const again = env.OBJECT.get(object.id);
    assert.strictEqual(await again.get("undone"), undefined);
    assert.strictEqual(await again.count(), 1);
  },
  async fetches(env) {
    const object = fresh(env);
    const response = await object.fetch("https://o/path?q=1", { method: "POST", body: "hello", headers: { "x-copy-a": "1", "x-status": "201" } });
    assert.deepStrictEqual([response.status, response.headers.get("x-method"), response.headers.get("x-url"), response.headers.get("x-copy-a"), await response.text()], [201, "POST", "https://o/path?q=1", "1", "hello"]);
    const empty = await object.fetch("https://o/", { headers: { "x-status": "204" } });
    assert.deepStrictEqual([empty.status, await empty.text()], [204, ""]);
    const large = new Uint8Array(3 << 20).map((_, i) => i);
    const back = await (await object.fetch("https://o/", { method: "PUT", body: large })).bytes();
    assert.ok(back.length === large.length && back.every((byte, i) => byte === large[i]));
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    const streamed = object.fetch("https://o/", { method: "PUT", body: readable });
    for (const part of ["in ", "three ", "parts"]) await writer.write(new TextEncoder().encode(part));
    await writer.close();
    assert.strictEqual(await (await streamed).text(), "in three parts");
    await assert.rejects(async () => object.fetch("https://o/", { method: "PUT", body: new Uint8Array((16 << 20) + 1) }), /limited to 16 MiB/);
    await assert.rejects(async () => object.fetch("https://o/", { headers: { "x-status": "700" } }), /from 200 to 599/);
    await assert.rejects(async () => object.fetch("https://o/", { headers: { "x-bad": "good-name" } }), /no such header/);
    const controller = new AbortController();
    controller.abort(new Error("given up"));
    await assert.rejects(async () => object.fetch("https://o/", { signal: controller.signal }), /given up/);
  },
  /** Many at once, and a caller that is an object itself. */
  async many(env) {
    const sums = await Promise.all(Array.from({ length: 50 }, (_, i) => env.OBJECT.getByName(`many ${i % 5}`).add(1)));
    assert.strictEqual(Math.max(...sums) % 10, 0);
    const before = await env.CALLER.getByName("c").add("many from js", 3);
    assert.strictEqual(await env.CALLER.getByName("c").add("many from js", 4), before + 4);
    await assert.rejects(async () => env.CALLER.getByName("c").fail("many from js"), (error) => error instanceof RangeError && error.message === "through two");
  },
  /** C calls JavaScript, C calls C, and both ways round. */
  async relays(env) {
    const object = fresh(env);
    const other = `relayed ${crypto.randomUUID()}`;
    assert.strictEqual(await object.relay("CALLER", "js", "twice", [21]), 42);
    assert.deepStrictEqual(stripDispose(await object.relay("CALLER", "js", "echo", [{ a: [1, "zwei"] }])), { a: [1, "zwei"] });
    assert.strictEqual(await object.relay("OBJECT", other, "add", [5]), 5);
    assert.strictEqual(await object.relay("OBJECT", other, "add", [5]), 10);
    assert.strictEqual(await object.relay("CALLER", "js", "add", [other, 1]), 11); // C, JavaScript, C
    assert.strictEqual(await object.relay("OBJECT", other, "relay", ["CALLER", "js", "twice", [4]]), 8);
    assert.strictEqual(await object.relayId("OBJECT", `${env.OBJECT.idFromName(other)}`, "id"), `${env.OBJECT.idFromName(other)}`);
    await assert.rejects(async () => object.relay("CALLER", "js", "throws", ["RangeError", "thrown there"]), (error) => error instanceof RangeError && error.message === "thrown there");
    await assert.rejects(async () => object.relay("OBJECT", other, "fail", ["TypeError", "failed there"]), (error) => error instanceof TypeError && error.message === "failed there");
    await assert.rejects(async () => object.relay("CALLER", "js", "lends", []), /cannot be copied/);
    await assert.rejects(async () => object.relay("CALLER", "js", "aborts", []), /gone/);
    await assert.rejects(async () => object.relay("NOWHERE", "js", "echo", []), /there is no Durable Object binding "NOWHERE"/);
    await assert.rejects(async () => object.relay("CALLER", "js", "echo", "no array"), /the arguments of a call are an array/);
    await assert.rejects(async () => object.relayId("OBJECT", "00".repeat(32), "count"), /no id of that binding/);
    // A circle of calls comes to an end.
    await assert.rejects(async () => env.CALLER.getByName("circle").circle(other), /depth limit/);
    assert.deepStrictEqual([await object.env("GREETING"), await object.env("NOTHING")], ["hello", undefined]);
  },
  async timers(env) {
    const object = fresh(env);
    assert.strictEqual(await object.sleep(1), 1);
    assert.deepStrictEqual((await Promise.all([object.sleep(20), object.sleep(0), object.sleep(10)])).sort(), [2, 3, 4]);
    assert.strictEqual(await object.get("fired"), 4);
    assert.deepStrictEqual(stripDispose(await object.timers()), [1, 0, 0]);
    await assert.rejects(async () => object.manyTimers(), /10000 calls and timers/);
  },
  async history(env) {
    const object = fresh(env);
    await object.add(1);
    const bookmark = await object.bookmark();
    assert.match(bookmark, /^[0-9a-f-]+$/);
    await object.add(10);
    const undo = await object.restore(bookmark);
    await assert.rejects(async () => object.abort("restored"), /restored/);
    let again = env.OBJECT.get(object.id);
    assert.strictEqual(await again.get("sum"), 1);
    await again.restore(undo);
    await assert.rejects(async () => again.abort("undone"), /undone/);
    again = env.OBJECT.get(object.id);
    assert.strictEqual(await again.get("sum"), 11);
    assert.match(await again.bookmarkAt(Date.now()), /^[0-9a-f-]+$/);
    await assert.rejects(async () => again.restore("no bookmark"), /bookmark/);
    await assert.rejects(async () => again.bookmarkAt(Date.now() + 1e9), Error);
  },
  async gates(env) {
    const object = fresh(env);
    const blocked = object.block(50);
    const waiting = object.get("order");
    await blocked;
    assert.strictEqual(await waiting, "unblocked");
  },
  async names(env) {
    const object = fresh(env);
    assert.strictEqual(await object.id, object.id);
    assert.strictEqual(await env.CALLER.getByName("n").idOf(`${object.id}`), `${object.id}`);
  },
};

/** deepStrictEqual() sees the disposer that results have. */
function stripDispose(value) {
  if (value !== null && typeof value === "object") delete value[Symbol.dispose];
  return value;
}

export class Caller extends DurableObject {
  twice(number) { return 2 * number; }
  echo(value) { return value; }
  throws(type, message) { throw new { RangeError, TypeError }[type](message); }
  lends() { return () => 1; }
  aborts() { this.ctx.abort("gone"); }
  /** This one, the other in C, this one again ... */
  circle(other) { return this.env.OBJECT.getByName(other).relay("CALLER", `${other} ${Math.random()}`, "circle", [`${other}!`]); }
  add(name, by) { return this.env.OBJECT.getByName(name).add(by); }
  fail(name) { return this.env.OBJECT.getByName(name).fail("RangeError", "through two"); }
  async idOf(id) { const stub = this.env.OBJECT.get(this.env.OBJECT.idFromString(id)); return stub["id" + ""].toString(); }
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const [, kind, name, method] = url.pathname.split("/");
    try {
      if (kind === "scenarios") return Response.json(Object.keys(scenarios));
      if (kind === "scenario") return Response.json((await scenarios[name](env)) ?? "ok");
      if (kind === "call") return Response.json((await env.OBJECT.getByName(name)[method](...JSON.parse(url.searchParams.get("args") ?? "[]"))) ?? null);
      return env.OBJECT.getByName(name).fetch(request);
    } catch (error) {
      return new Response(`${error?.stack ?? error}\n${error?.message}`, { status: 500 });
    }
  },
};
