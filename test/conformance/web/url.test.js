// The URL interface (https://url.spec.whatwg.org/#api); parsing itself is in url-vectors.test.js.
import { test, assert, assertEquals, assertThrows } from "../harness.js";

const NORMAL = [
  "http://a/", "https://example.com/", "https://example.com:8443/p", "http://127.0.0.1:8787/x?y#z",
  "https://a.b-c.d/.well-known/x", "https://a/b.c/d..e", "https://a/?", "https://a/#", "https://a/?#", "https://xn--a/",
  "https://a/%41?%zz#%", "https://a/x;y=1,2@3:4!$&'()*+|~[]", "https://a/?x=[]{}|^`\\/?", "https://a/#x#y?\\^{}|[]'",
];
test("a URL in normal form keeps its text", () => {
  for (const text of NORMAL) assertEquals(new URL(text).href, text);
});

// One character after another in every place: the fast path and the state machine must agree.
test("a URL with a character anywhere equals the same URL parsed with a scheme in upper case", () => {
  const places = ["https://a@b/", "https://@/", "https://a.@.b/", "https://a/@", "https://a/@/b", "https://a/b@c?d", "https://a/.@", "https://a/?@", "https://a/?b@&c", "https://a/#@", "https://a:8@/", "https://a:@", "https://a@", "http://1.@/", "http://0@"];
  for (const place of places) {
    for (let code = 0; code < 0x180; code++) {
      for (const insert of [String.fromCharCode(code), String.fromCharCode(code).repeat(2), `${String.fromCharCode(code)}/`, `x${String.fromCharCode(code)}1`]) {
        const text = place.replace("@", () => insert);
        const fast = URL.parse(text);
        const slow = URL.parse(text.replace("http", "HTTP"));
        assertEquals(fast?.href, slow?.href, JSON.stringify(text));
        if (fast === null) continue;
        for (const key of ["origin", "host", "hostname", "port", "pathname", "search", "hash"]) {
          assertEquals(fast[key], slow[key], `${key} of ${JSON.stringify(text)}`);
        }
      }
    }
  }
});

test("an IPv4 address keeps its text only in the form in which it is serialized", () => {
  const parts = ["0", "9", "10", "99", "100", "199", "249", "255", "256", "300", "1000", "00", "01", "0x1", "", "a", "1a", "-1", "+1", " 1", "\u0661"];
  for (const part of parts) {
    for (const host of [part, `${part}.2.3.4`, `1.${part}.3.4`, `1.2.3.${part}`, `1.2.3.4.${part}`, `1.2.${part}`, `${part}.1`]) {
      const [fast, slow] = [URL.parse(`http://${host}/`), URL.parse(`HTTP://${host}/`)];
      assertEquals(fast?.href, slow?.href, JSON.stringify(host));
    }
  }
  assertEquals(new URL("http://255.10.0.99/").hostname, "255.10.0.99");
  assertEquals(new URL("http://1.2.3.010/").hostname, "1.2.3.8");
  assertEquals(URL.parse("http://1.2.3.256/"), null);
});

test("parse() hides no error of the caller's own, whatever its text", () => {
  const own = new TypeError("Invalid URL string.");
  const thrower = { toString() { throw own; } };
  for (const parse of [() => URL.parse(thrower), () => URL.parse("/", thrower)]) {
    let thrown;
    try { parse(); } catch (error) { thrown = error; }
    assertEquals(thrown === own, true);
  }
});

test("a base is resolved against", () => {
  assertEquals(new URL("/x?y", "https://example.com/a/b").href, "https://example.com/x?y");
  assertEquals(new URL("../x", new URL("https://example.com/a/b/c")).href, "https://example.com/a/x");
  assertEquals(new URL("https://a/", "https://b").href, "https://a/");
  assertThrows(TypeError, () => new URL("https://a/", "nothing"), "Invalid URL string.");
});

test("errors say what is wrong", () => {
  assertThrows(TypeError, () => new URL("x"), "Invalid URL string.");
  assertThrows(TypeError, () => new URL(), /parameter 1/);
  assertThrows(TypeError, () => URL("http://x"));
  assertThrows(TypeError, () => (new URL("http://x").href = "zz"), /'href' property on 'URL'/);
  assertThrows(TypeError, () => Object.getOwnPropertyDescriptor(URL.prototype, "href").get.call({}));
});

test("parse() and canParse()", () => {
  assertEquals(URL.parse("x"), null);
  assertEquals(URL.parse("/x", "http://a")?.href, "http://a/x");
  assertEquals([URL.canParse("x"), URL.canParse("x", "http://a"), URL.canParse("http://a")], [false, true, true]);
  assertThrows(TypeError, () => URL.canParse(), /canParse/);
});

test("members are enumerable, and toString, toJSON and href agree", () => {
  const url = new URL("https://u:p@example.com:81/a?b#c");
  assertEquals([String(url), url.toJSON(), JSON.stringify({ url })], [url.href, url.href, `{"url":"${url.href}"}`]);
  const names = [];
  for (const key in url) names.push(key);
  for (const key of ["href", "origin", "searchParams", "toJSON", "hash"]) assert(names.includes(key), key);
  assertEquals(Object.prototype.toString.call(url), "[object URL]");
});

test("searchParams is one live object", () => {
  const url = new URL("https://a/?x=1&y=2#h");
  const params = url.searchParams;
  assert(url.searchParams === params);
  params.append("z", "a b");
  assertEquals(url.href, "https://a/?x=1&y=2&z=a+b#h");
  params.delete("x");
  params.set("y", "ü");
  assertEquals(url.search, "?y=%C3%BC&z=a+b");
  url.search = "?k=v";
  assertEquals([...params], [["k", "v"]]);
  url.href = "https://b/?q=1";
  assertEquals(params.get("q"), "1");
  params.delete("q");
  assertEquals(url.href, "https://b/");
  assertEquals(params.size, 0);
});

test("a lone surrogate becomes U+FFFD", () => {
  assertEquals(new URL("https://a/\ud800x").pathname, "/%EF%BF%BDx");
});
