// The URLSearchParams interface (https://url.spec.whatwg.org/#interface-urlsearchparams).
import { test, assertEquals, assertThrows } from "../harness.js";

test("it is made from text, pairs, records, iterables and its own kind", () => {
  const of = (init) => [...new URLSearchParams(init)];
  assertEquals(of("?a=1&b=2&a=3"), [["a", "1"], ["b", "2"], ["a", "3"]]);
  assertEquals(of("a&b=&=c&&=&d=e=f"), [["a", ""], ["b", ""], ["", "c"], ["", ""], ["d", "e=f"]]);
  assertEquals(of([["a", 1], ["b", null]]), [["a", "1"], ["b", "null"]]);
  assertEquals(of({ a: 1, b: "x y" }), [["a", "1"], ["b", "x y"]]);
  assertEquals(of(new Map([["m", "1"]])), [["m", "1"]]);
  assertEquals(of(new URLSearchParams("q=%20")), [["q", " "]]);
  assertEquals(of(undefined), []);
  assertThrows(TypeError, () => new URLSearchParams([["a"]]), "Invalid URL search params sequence.");
  assertThrows(TypeError, () => new URLSearchParams([1]));
});

test("escapes are decoded, and wrong ones kept", () => {
  const params = new URLSearchParams("a=%41%zz+%C3%BC&b=%ff%E4%BD&%63=%&d=%00");
  assertEquals([...params], [["a", "A%zz ü"], ["b", "\ufffd\ufffd"], ["c", "%"], ["d", "\0"]]);
  assertEquals(new URLSearchParams("a=\ufeffx&b=%EF%BB%BFx").get("b"), "\ufeffx");
});

test("toString() encodes all but letters, digits and *-._", () => {
  assertEquals(new URLSearchParams({ "a b": "~!'()*-._/\u{1f600}&=+%" }).toString(), "a+b=%7E%21%27%28%29*-._%2F%F0%9F%98%80%26%3D%2B%25");
});

test("get, getAll, has, set, delete, size", () => {
  const params = new URLSearchParams("a=1&b=2&a=3&c=4");
  assertEquals([params.get("a"), params.get("z"), params.getAll("a"), params.getAll("z")], ["1", null, ["1", "3"], []]);
  assertEquals([params.has("a"), params.has("a", "3"), params.has("a", "4"), params.has("a", undefined)], [true, true, false, true]);
  params.set("a", "x");
  assertEquals(params.toString(), "a=x&b=2&c=4");
  params.append("b", "5");
  params.delete("b", "2");
  assertEquals([params.toString(), params.size], ["a=x&c=4&b=5", 3]);
  params.delete("b");
  assertEquals(params.size, 2);
});

test("sort() is stable and by UTF-16 units", () => {
  const params = new URLSearchParams("z=1&\ufffd=2&\u{1f600}=3&a=4&z=0");
  params.sort();
  assertEquals([...params.keys()], ["a", "z", "z", "\u{1f600}", "\ufffd"]);
  assertEquals(params.getAll("z"), ["1", "0"]);
});

test("iteration is live", () => {
  const params = new URLSearchParams("a=1&b=2&c=3");
  const seen = [];
  for (const [name] of params) {
    seen.push(name);
    if (name === "a") params.delete("b");
  }
  assertEquals(seen, ["a", "c"]);
  const pairs = [];
  params.forEach(function (value, name, self) {
    pairs.push([this.x, value, name, self === params]);
  }, { x: 1 });
  assertEquals(pairs, [[1, "1", "a", true], [1, "3", "c", true]]);
  assertEquals([[...params.keys()], [...params.values()]], [["a", "c"], ["1", "3"]]);
  assertEquals(params.entries()[Symbol.iterator]().next(), { value: ["a", "1"], done: false });
});

test("missing arguments are errors", () => {
  const params = new URLSearchParams();
  assertThrows(TypeError, () => params.append("a"), "Failed to execute 'append' on 'URLSearchParams': parameter 2 is not of type 'USVString'.");
  for (const method of ["get", "getAll", "has", "delete", "set"]) assertThrows(TypeError, () => params[method]());
});
