// node:url, the parser that Node.js had before the standard's; test/differential/ compares many more with the platform.
import url from "node:url";
import { assertEquals, test, thrown } from "../harness.js";

test("url.parse: hosts, ports, and what is no port", () => {
  const parts = (text) => { const { protocol, host, port, pathname, href } = url.parse(text); return [protocol, host, port, pathname, href]; };
  assertEquals([parts("HTTP://a,b:443/a b"), parts("http://h:abc/p"), parts("mailto:a@b.c"), parts("http://[::1]:80/x"), parts("javascript:a b")], [
    ["http:", "a,b:443", "443", "/a%20b", "http://a,b:443/a%20b"], ["http:", "h", null, "/:abc/p", "http://h/:abc/p"], ["mailto:", "b.c", null, null, "mailto:a@b.c"],
    ["http:", "[::1]:80", "80", "/x", "http://[::1]:80/x"], ["javascript:", null, null, "a b", "javascript:a b"],
  ]);
  assertEquals([thrown(() => url.parse("http://[1::2"))?.code, thrown(() => url.parse(1))?.code], ["ERR_INVALID_URL", "ERR_INVALID_ARG_TYPE"]);
  assertEquals(url.parse("/p?a=1&a=2", true).query.a, ["1", "2"]);
});

test("url.resolve: dots, schemes without slashes, other hosts", () => {
  const given = [["/one/two", "../three"], ["http://a/b/c", "//d/e"], ["http://a/b?c", "?d"], ["mailto:a@b", "c@d"], ["a/b", "../../../c"], ["http://a/b/..", "."], ["/a|b", "ws://z:0/a|b?"]];
  assertEquals(given.map(([from, to]) => url.resolve(from, to)), ["/three", "http://d/e", "http://a/b?d", "mailto:c@d", "../../c", "http://a/b/", "ws://z:0/a%7Cb?"]);
});

test("url.format: of parts, and of a URL", () => {
  assertEquals([
    url.format({ protocol: "http", hostname: "::1", port: 80, pathname: "a?b#c", query: { d: [1, 2] }, hash: "e" }), url.format({ pathname: "/p", search: "x#y" }), url.format({ protocol: "file", pathname: "/p" }),
    url.format(new URL("http://u:p@xn--wgv71a.jp/?q#h"), { auth: false, fragment: false, unicode: true }),
  ], ["http://[::1]:80/a%3Fb%23c?d=1&d=2#e", "/p?x%23y", "file:///p", "http://日本.jp/?q"]);
  assertEquals([url.pathToFileURL("/a[b]~%").href, thrown(() => url.format(1))?.code, thrown(() => url.fileURLToPath("http://a/"))?.code], ["file:///a%5Bb%5D%7E%25", "ERR_INVALID_ARG_TYPE", "ERR_INVALID_URL_SCHEME"]);
});
