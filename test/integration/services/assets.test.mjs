// Static assets (AS-1..3): which file answers which path, rules, the binding, and that nothing
// outside the folder is ever served.
import assert from "node:assert/strict";
import { symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Connection, project, raw, serve, tempDir } from "../lib/server.mjs";

const files = {
  "public/index.html": "root",
  "public/about.html": "about",
  "public/blog/index.html": "blog",
  "public/both.html": "both file",
  "public/both/index.html": "both folder",
  "public/style.css": "css",
  "public/a b.txt": "blank",
  "public/ünï.txt": "unicode",
  "public/404.html": "no such page",
  "public/deep/404.html": "no such deep page",
};
const worker = `export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/files") {
      const path = url.searchParams.get("path");
      const [file, etag] = [await env.ASSETS.unstable_getByPathname(path), await env.ASSETS.unstable_exists(path)];
      if (file === null || etag === null) return Response.json([file, etag]);
      return Response.json([(await new Response(file.readableStream).text()).slice(-20), file.contentType, typeof etag === "string" && !etag.includes('"')]);
    }
    if (url.pathname.startsWith("/through")) return env.ASSETS.fetch(new URL(url.pathname.slice(8) + url.search, url), request);
    return new Response("worker " + url.pathname, { headers: { "x-worker": "yes" } });
  },
};`;

const config = (assets, { main = true, date = "2026-01-01" } = {}) => JSON.stringify({
  name: "site", compatibility_date: date, ...(main ? { main: "index.js" } : {}),
  assets: { directory: "./public", ...(main ? { binding: "ASSETS" } : {}), ...assets },
});

async function site(t, assets, { extra = {}, ...options } = {}) {
  const dir = project({ "wrangler.json": config(assets, options), "index.js": worker, ...files, ...extra });
  const server = await serve(dir);
  t.after(() => server.kill());
  server.dir = dir;
  server.see = async (target, init) => {
    const response = await server.fetch(target, { redirect: "manual", ...init });
    const text = await response.text();
    const location = response.headers.get("location");
    return `${response.status} ${location ?? text}`;
  };
  return server;
}

const cases = (server, table) => Promise.all(Object.entries(table).map(async ([target, expected]) =>
  assert.equal(await server.see(target), expected, target)));

test("AS-1 base_path", async (t) => {
  await cases(await site(t, { base_path: "/docs/" }), {
    "/docs": "307 /docs/", "/docs/": "200 root", "/docs/about.html": "307 /docs/about", "/docs/about": "200 about", "/about": "200 worker /about",
    "/docs/none": "200 worker /docs/none", "/through/docs/about": "200 about",
  });
});

test("AS-1 files by their paths through the binding", async (t) => {
  const server = await site(t, {}, { extra: { "public/large.txt": `${"x".repeat(200_000)}the end of it` } });
  const read = async (path) => (await server.fetch(`/files?path=${encodeURIComponent(path)}`)).json();
  assert.deepEqual(await read("/about.html"), ["about", "text/html; charset=utf-8", true]);
  assert.deepEqual(await read("/both/index.html"), ["both folder", "text/html; charset=utf-8", true]);
  assert.deepEqual((await read("/large.txt"))[0], "xxxxxxxthe end of it");
  for (const path of ["/about", "/", "/none", "about.html", "/../wrangler.json"]) assert.deepEqual(await read(path), [null, null], path);
});

test("AS-1 html_handling auto-trailing-slash", async (t) => {
  await cases(await site(t, {}), {
    "/": "200 root", "/index": "307 /", "/index.html": "307 /", "/about": "200 about", "/about.html": "307 /about",
    "/about/": "307 /about", "/about/index": "307 /about", "/about/index.html": "307 /about", "/blog": "307 /blog/", "/blog/": "200 blog",
    "/blog/index.html?a=1": "307 /blog/?a=1", "/blog.html": "307 /blog/", "/both": "200 both file", "/both/": "200 both folder",
    "/both.html": "307 /both", "/both/index.html": "307 /both/", "/style.css": "200 css", "/none": "200 worker /none",
    "/a%20b.txt": "200 blank", "/%61%20b.txt": "307 /a%20b.txt", "//style.css": "307 /style.css", "/%C3%BCn%C3%AF.txt": "200 unicode",
  });
});

test("AS-1 html_handling force, drop and none", async (t) => {
  await cases(await site(t, { html_handling: "force-trailing-slash" }), {
    "/": "200 root", "/about": "307 /about/", "/about/": "200 about", "/about.html": "307 /about/", "/blog": "307 /blog/",
    "/both/": "200 both folder", "/both.html": "200 both file", "/style.css": "200 css", "/index.html": "307 /",
  });
  await cases(await site(t, { html_handling: "drop-trailing-slash" }), {
    "/": "200 root", "/about": "200 about", "/about/": "307 /about", "/blog/": "307 /blog", "/blog": "200 blog",
    "/blog/index.html": "307 /blog", "/both": "200 both file", "/both/index.html": "200 both folder", "/index.html": "307 /",
  });
  await cases(await site(t, { html_handling: "none" }), {
    "/": "200 worker /", "/about": "200 worker /about", "/about.html": "200 about", "/blog/index.html": "200 blog",
  });
});

test("AS-1 not_found_handling, with and without a worker", async (t) => {
  // fetch() of Node.js sets this field itself.
  const navigate = async (server, target) => {
    const connection = new Connection(server.port);
    const { status, text } = await connection.get(target, { headers: { "sec-fetch-mode": "navigate" } });
    connection.close();
    return `${status} ${text}`;
  };
  const spa = await site(t, { not_found_handling: "single-page-application" });
  assert.equal(await spa.see("/app/page"), "200 worker /app/page");
  assert.equal(await navigate(spa, "/app/page"), "200 root");
  assert.equal(await spa.see("/through/app/page"), "200 root");
  const old = await site(t, { not_found_handling: "single-page-application" }, { date: "2025-03-01" });
  assert.equal(await navigate(old, "/app/page"), "200 worker /app/page");
  const page = await site(t, { not_found_handling: "404-page" }, { main: false });
  await cases(page, { "/x": "404 no such page", "/deep/x": "404 no such deep page", "/deep/er/x": "404 no such deep page" });
  const none = await site(t, {}, { main: false });
  assert.equal(await none.see("/x"), "404 ");
  assert.equal(await none.see("/about"), "200 about");
});

test("AS-1 run_worker_first: always, or for some paths", async (t) => {
  const all = await site(t, { run_worker_first: true });
  assert.equal(await all.see("/about"), "200 worker /about");
  assert.equal(await all.see("/through/about"), "200 about");
  const some = await site(t, { run_worker_first: ["/blog/*", "!/blog/index.html", "/about"], not_found_handling: "404-page" });
  await cases(some, {
    "/blog/": "200 worker /blog/", "/blog/index.html": "307 /blog/", "/about": "200 worker /about", "/both": "200 both file",
    "/missing": "404 no such page",
  });
  // Another spelling of a path that the worker guards must not give the file.
  for (const spelled of ["/%61bout", "//about", "/%2Fabout"]) {
    const response = await some.fetch(spelled, { redirect: "manual" });
    assert.notEqual(await response.text(), "about", spelled);
  }
});

test("AS-1 the binding answers as the server does", async (t) => {
  const server = await site(t, { run_worker_first: true, not_found_handling: "404-page" });
  await cases(server, {
    "/through/": "200 root", "/through/about": "200 about", "/through/about.html": "307 /about", "/through/none": "404 no such page",
  });
  const response = await server.fetch("/through/style.css");
  assert.equal(response.headers.get("content-type"), "text/css; charset=utf-8");
  const again = await server.fetch("/through/style.css", { headers: { "if-none-match": response.headers.get("etag") } });
  assert.equal(again.status, 304);
});

test("AS-2 ETag, 304, HEAD, methods, types, ranges", async (t) => {
  const server = await site(t, {});
  const first = await server.fetch("/style.css");
  const etag = first.headers.get("etag");
  assert.match(etag, /^"[0-9a-f]{32}"$/);
  assert.equal(first.headers.get("cache-control"), "public, max-age=0, must-revalidate");
  for (const value of [etag, `W/${etag}`, `"x", ${etag}`]) {
    const response = await server.fetch("/style.css", { headers: { "if-none-match": value } });
    assert.equal(response.status, 304, value);
    assert.equal(response.headers.get("etag"), etag);
  }
  assert.equal((await server.fetch("/style.css", { headers: { "if-none-match": '"y"' } })).status, 200);
  const head = await server.fetch("/style.css", { method: "HEAD" });
  assert.equal(head.headers.get("content-length"), "3");
  assert.equal(await head.text(), "");
  assert.equal((await server.fetch("/style.css", { method: "POST" })).status, 405);
  assert.equal(await server.text("/none", { method: "POST" }), "worker /none");
  const range = async (value) => {
    const response = await server.fetch("/blog/", { headers: { range: value } });
    return [response.status, await response.text(), response.headers.get("content-range")];
  };
  assert.deepEqual(await range("bytes=1-2"), [206, "lo", "bytes 1-2/4"]);
  assert.deepEqual(await range("bytes=-3"), [206, "log", "bytes 1-3/4"]);
  assert.deepEqual(await range("bytes=2-"), [206, "og", "bytes 2-3/4"]);
  assert.deepEqual(await range("bytes=4-"), [416, "", "bytes */4"]);
  assert.deepEqual(await range("bytes=zz"), [200, "blog", null]);
});

test("AS-2 _headers, _redirects and .assetsignore", async (t) => {
  const server = await site(t, {}, {
    extra: {
      "public/_headers": "# all\n/*\n  X-All: one\n/blog/*\n  X-All: two\n  X-Path: :splat\n  ! ETag\nnot a rule\n/u/:name\n  X-Name: hello :name\n",
      "public/_redirects": "/old /about 301\n/shop/* /store/:splat\n/u/:id/profile /profile?id=:id 308\n/rewritten /about 200\n/gone https://example.com/x 303\nbroken\n/bad /x 999\n",
      "public/.assetsignore": "*.secret\n/private/\n!keep.secret\nnode_modules\n",
      "public/a.secret": "s", "public/keep.secret": "kept", "public/private/x.txt": "p", "public/sub/node_modules/y.js": "y",
    },
  });
  await cases(server, {
    "/old": "301 /about", "/old?a=b": "301 /about?a=b", "/shop/a/b": "302 /store/a/b", "/u/7/profile?x=1": "308 /profile?id=7",
    "/rewritten": "200 about", "/gone": "303 https://example.com/x", "/a.secret": "200 worker /a.secret", "/keep.secret": "200 kept",
    "/private/x.txt": "200 worker /private/x.txt", "/sub/node_modules/y.js": "200 worker /sub/node_modules/y.js",
    "/_headers": "200 worker /_headers", "/_redirects": "200 worker /_redirects", "/.assetsignore": "200 worker /.assetsignore",
  });
  const blog = await server.fetch("/blog/");
  assert.equal(blog.headers.get("x-all"), "one, two");
  assert.equal(blog.headers.get("etag"), null);
  assert.equal((await server.fetch("/none")).headers.get("x-all"), null, "the worker's answers are its own");
  await server.until(/_redirects:6: a redirect is "from to \[status\]"/);
  await server.until(/_redirects:7: the status must be/);
  await server.until(/_headers:8: a line "Name: value" was expected/);
});

test("AS-2 nothing outside the folder is served", async (t) => {
  const outside = tempDir();
  writeFileSync(path.join(outside, "secret.txt"), "TOP SECRET");
  const dir = project({ "wrangler.json": config({}, { main: false }), ...files, "secret.txt": "TOP SECRET" });
  symlinkSync(path.join(outside, "secret.txt"), path.join(dir, "public/link.txt"));
  symlinkSync(outside, path.join(dir, "public/folder"));
  symlinkSync(path.join(dir, "public/style.css"), path.join(dir, "public/inside.css"));
  const server = await serve(dir);
  t.after(() => server.kill());
  for (const target of ["/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/blog/../../secret.txt", "/blog/..%2f..%2fsecret.txt",
    "/..\\secret.txt", "/%00/../secret.txt", "/link.txt", "/folder/secret.txt", "/./../secret.txt", "//../secret.txt"]) {
    const answer = await raw(server.port, `GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    assert.doesNotMatch(answer, /TOP SECRET/, target);
    assert.match(answer, /^HTTP\/1.1 (404|400|307)/, target);
  }
  assert.equal(await server.text("/inside.css"), "css");
  await server.until(/link\.txt is left out/);
});

test("AS-3 large files are streamed, and past 25 MiB refused", async (t) => {
  const size = 24 * 1024 * 1024 + 5;
  const body = Buffer.alloc(size, "0123456789abcdef");
  const server = await site(t, {}, { extra: { "public/big.bin": body } });
  for (const target of ["/big.bin", "/through/big.bin"]) {
    const got = Buffer.from(await (await server.fetch(target)).arrayBuffer());
    assert.ok(got.equals(body), target);
    const part = await server.fetch(target, { headers: { range: "bytes=20000000-20000003" } });
    assert.equal(part.status, 206);
    assert.equal(await part.text(), body.subarray(20000000, 20000004).toString());
  }
  const huge = project({ "wrangler.json": config({}), "index.js": worker, "public/x.bin": Buffer.alloc(25 * 1024 * 1024 + 1) });
  await assert.rejects(serve(huge), /x\.bin has 26214401 bytes; the limit is 25 MiB/);
});

test("A3: what somebody builds in the folder of a live server goes out with the next deployment, and not before", async (t) => {
  const big = Buffer.alloc(1024 * 1024 + 5, "0123456789abcdef");
  const server = await site(t, {}, { extra: { "public/first.bin": Buffer.alloc(300_000, "f"), "public/big.bin": big } });
  const file = path.join(server.dir, "public/big.bin");
  const before = (await server.fetch("/big.bin", { method: "HEAD" })).headers.get("etag");
  for (const change of [() => writeFileSync(file, ""), () => writeFileSync(file, Buffer.alloc(1024 * 1024 + 5, "x")), () => unlinkSync(file)]) {
    change();
    for (const target of ["/big.bin", "/through/big.bin"]) {
      const response = await server.fetch(target);
      assert.equal(response.headers.get("etag"), before);
      assert.ok(Buffer.from(await response.arrayBuffer()).equals(big), target);
      const part = await server.fetch(target, { headers: { range: "bytes=1000000-1000009" } });
      assert.equal(part.status, 206);
      assert.equal(await part.text(), big.subarray(1000000, 1000010).toString());
    }
  }
  writeFileSync(file, Buffer.alloc(300_001, "y"));
  server.signal("SIGHUP");
  await server.reloaded();
  for (const target of ["/big.bin", "/through/big.bin"]) assert.equal(await server.text(target), "y".repeat(300_001));
});

test("AS-1 cairn dev notices a changed asset", async (t) => {
  const dir = project({ "wrangler.json": config({}, { main: false }), ...files });
  const server = await serve(dir, { command: "dev" });
  t.after(() => server.kill());
  assert.equal(await server.text("/about"), "about");
  writeFileSync(path.join(dir, "public/about.html"), "changed");
  writeFileSync(path.join(dir, "public/new.txt"), "new");
  await server.untilTrue(async () => (await server.text("/new.txt")) === "new" && (await server.text("/about")) === "changed", "the new file");
});

test("AS-1 a missing folder is told", async () => {
  await assert.rejects(serve(project({ "wrangler.json": config({}), "index.js": worker })), /assets: cannot open the folder .*public/);
});
