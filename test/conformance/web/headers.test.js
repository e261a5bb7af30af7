// Headers: https://fetch.spec.whatwg.org/#headers-class
import { test, assert, assertEquals, assertThrows, assertInterface } from "../harness.js";

test("the interface", () => {
  assertInterface("Headers", {
    methods: { append: 2, delete: 1, get: 1, has: 1, set: 2, getSetCookie: 0, forEach: 1, entries: 0, keys: 0, values: 0 },
  });
  assertEquals(Headers.prototype[Symbol.iterator].length, 0);
  assertEquals(String(new Headers()), "[object Headers]");
});

test("can be made from nothing, a Headers, pairs, a record", () => {
  const pairs = [["b", "1"], ["A", "2"], ["b", "3"]];
  assertEquals([...new Headers()], []);
  assertEquals([...new Headers(undefined)], []);
  assertEquals([...new Headers(pairs)], [["a", "2"], ["b", "1, 3"]]);
  assertEquals([...new Headers(new Headers(pairs))], [["a", "2"], ["b", "1, 3"]]);
  assertEquals([...new Headers(new Map([["x", "y"]]))], [["x", "y"]]);
  assertEquals([...new Headers({ X: 1, y: undefined, x: "2" })], [["x", "1, 2"], ["y", "undefined"]]);
});

test("refuses what is no HeadersInit", () => {
  for (const init of [null, 1, "x", true]) assertThrows(TypeError, () => new Headers(init));
  assertThrows(TypeError, () => new Headers([["a"]]));
  assertThrows(TypeError, () => new Headers([["a", "b", "c"]]));
});

test("names are case-insensitive and shown in lower case", () => {
  const h = new Headers({ "Content-Type": "a/b" });
  assertEquals(h.get("CONTENT-type"), "a/b");
  assert(h.has("content-TYPE"));
  assertEquals([...h.keys()], ["content-type"]);
  h.delete("Content-TYPE");
  assertEquals([...h], []);
});

test("values lose the blanks around them", () => {
  assertEquals(new Headers({ a: " \t x y \r\n" }).get("a"), "x y");
  assertEquals(new Headers({ a: "" }).get("a"), "");
  assertEquals(new Headers({ a: 12 }).get("a"), "12");
});

test("refuses bad names and values", () => {
  for (const name of ["a b", "a:", "a\n", "(", "a\0"]) {
    assertThrows(TypeError, () => new Headers({ [name]: "1" }), "Invalid header name.");
    assertThrows(TypeError, () => new Headers().append(name, "1"));
    assertThrows(TypeError, () => new Headers().get(name));
  }
  for (const value of ["a\nb", "a\rb", "a\0b"]) {
    assertThrows(TypeError, () => new Headers({ a: value }), "Invalid header value.");
    assertThrows(TypeError, () => new Headers().set("a", value));
  }
});

test("append combines, set replaces, delete removes all", () => {
  const h = new Headers();
  h.append("x", "1");
  h.append("y", "0");
  h.append("X", "2");
  assertEquals(h.get("x"), "1, 2");
  h.set("x", "3");
  assertEquals([...h], [["x", "3"], ["y", "0"]]);
  h.append("x", "4");
  h.delete("x");
  assertEquals([h.get("x"), h.has("x")], [null, false]);
});

test("set-cookie is never combined in iteration", () => {
  const h = new Headers([["set-cookie", "a=1"], ["b", "2"], ["Set-Cookie", "c=3"]]);
  assertEquals([...h], [["b", "2"], ["set-cookie", "a=1"], ["set-cookie", "c=3"]]);
  assertEquals(h.getSetCookie(), ["a=1", "c=3"]);
  assertEquals(h.getAll("Set-Cookie"), ["a=1", "c=3"]);
  assertEquals(h.get("set-cookie"), "a=1, c=3");
  assertEquals(new Headers().getSetCookie(), []);
  assertThrows(TypeError, () => h.getAll("b"));
  h.set("set-cookie", "d=4");
  assertEquals(h.getSetCookie(), ["d=4"]);
});

test("iterates sorted by name", () => {
  const h = new Headers([["c", "1"], ["a", "2"], ["b", "3"]]);
  assertEquals([...h.keys()], ["a", "b", "c"]);
  assertEquals([...h.values()], ["2", "3", "1"]);
  const seen = [];
  const self = {};
  h.forEach(function (value, name, headers) {
    assert(this === self && headers === h);
    seen.push([name, value]);
  }, self);
  assertEquals(seen, [["a", "2"], ["b", "3"], ["c", "1"]]);
  assertThrows(TypeError, () => h.forEach(1));
  const iterator = h.entries();
  assertEquals(iterator[Symbol.iterator](), iterator);
});

test("counts its arguments", () => {
  const h = new Headers();
  assertThrows(TypeError, () => h.get());
  assertThrows(TypeError, () => h.has());
  assertThrows(TypeError, () => h.set("a"));
  assertThrows(TypeError, () => h.append("a"));
  assertThrows(TypeError, () => h.delete());
});

test("methods refuse other receivers", () => {
  for (const name of ["get", "has", "delete", "getSetCookie", "forEach", "entries"]) {
    assertThrows(TypeError, () => Headers.prototype[name].call({}, "a"), /^Illegal invocation/);
  }
  assertThrows(TypeError, () => Headers.prototype.set.call(new Map(), "a", "b"), /^Illegal invocation/);
});

test("headers of Response.redirect() are immutable", () => {
  const h = Response.redirect("https://example.com/").headers;
  assertThrows(TypeError, () => h.set("a", "b"), "Can't modify immutable headers.");
  assertThrows(TypeError, () => h.append("a", "b"));
  assertThrows(TypeError, () => h.delete("a"));
  new Headers(h).set("a", "b");
});
