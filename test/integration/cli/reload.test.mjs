// The life of a serving process: reload, drain, dev, and stacks that name the user's files.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve, write } from "../lib/cairn.mjs";

const answer = (text) => `export default { fetch: () => new Response("${text}") };`;

test("SIGHUP reloads; a version that does not build leaves the last good one", async (t) => {
  const dir = project(t, { "index.js": answer("one") });
  const server = await serve(t, dir);
  assert.equal(await server.text("/"), "one");
  write(dir, { "index.js": answer("second") });
  server.signal("SIGHUP");
  await server.untilTrue(async () => (await server.text("/")) === "second", "the new version");
  write(dir, { "index.js": "export default {" });
  server.signal("SIGHUP");
  await server.untilTrue(() => /the last good version keeps serving/.test(server.stderr), "the complaint");
  assert.match(server.stderr, /\[ERROR\] Expected identifier but found end of file\n\n {4}index\.js:1:16:/);
  assert.equal(await server.text("/"), "second");
  write(dir, { "index.js": `throw new Error("at start");` });
  server.signal("SIGHUP");
  await server.untilTrue(() => /failed to start: Error: at start/.test(server.stderr), "the failed start");
  await server.untilTrue(() => /failed to start: Error: at start[^]*at index\.js:1:/.test(server.stderr), "its place");
  assert.equal(await server.text("/"), "second");
  write(dir, { "index.js": answer("third") });
  server.signal("SIGHUP");
  await server.untilTrue(async () => (await server.text("/")) === "third", "the third version");
});

const slow = (text) => `export default { async fetch(request) {
  if (request.url.endsWith("/slow")) { console.log("begun"); await new Promise((r) => setTimeout(r, 400)); }
  return new Response("${text}");
} };`;

test("a request under way finishes on the code it began with, across reload and drain", async (t) => {
  const dir = project(t, { "index.js": slow("old") });
  const server = await serve(t, dir, { args: ["--lanes", "1"] });
  const first = server.text("/slow");
  await server.untilTrue(() => /begun/.test(server.stderr), "the slow request");
  write(dir, { "index.js": slow("new") });
  server.signal("SIGHUP");
  await server.untilTrue(() => /reloaded/.test(server.stderr), "the reload");
  assert.equal(await server.text("/"), "new");
  assert.equal(await first, "old");
  server.stderr = "";
  const second = server.text("/slow");
  await server.untilTrue(() => /begun/.test(server.stderr), "the slow request");
  const ended = server.stop();
  assert.equal(await second, "new");
  assert.deepEqual(await ended, { code: 0, signal: null });
});

test("dev reloads when a file changes, shows errors, and recovers", async (t) => {
  const dir = project(t, {
    "src/index.ts": `import { text } from "./part";\nexport default { fetch: () => new Response(text()) };`,
    "src/part.ts": `export const text = () => "one";`,
  });
  const server = await serve(t, dir, { command: "dev" });
  assert.equal(await server.text("/"), "one");
  write(dir, { "src/part.ts": `export const text = () => "two " + process.env.NODE_ENV;` });
  assert.equal(await server.text("/"), "two development");
  write(dir, { "src/part.ts": `export const text = () => {` });
  await server.untilTrue(() => /does not build; waiting for a change/.test(server.stderr), "the complaint");
  write(dir, { "src/part.ts": `export function text(): string {\n  throw new RangeError("<oh>");\n}` });
  const plain = await server.fetch("/");
  assert.deepEqual([plain.status, plain.headers.get("content-type")], [500, "text/plain;charset=UTF-8"]);
  assert.match(await plain.text(), /^RangeError: <oh>\n    at text \(src\/part\.ts:2:\d+\)/);
  const page = await server.fetch("/", { headers: { accept: "text/html" } });
  assert.match(page.headers.get("content-type"), /^text\/html/);
  const html = await page.text();
  assert.match(html, /RangeError: &lt;oh&gt;/);
  assert.match(html, /at text \(src\/part\.ts:2:\d+\)/);
  assert.match(html, /&gt;\s+2 \|   throw new RangeError/);
  write(dir, { ".dev.vars": "X=1\n", "src/index.ts": `export default { fetch: (r, env) => new Response(env.X) };` });
  assert.equal(await server.text("/"), "1");
  write(dir, { ".dev.vars": "X=22\n" });
  assert.equal(await server.text("/"), "22");
  assert.equal((await server.stop("SIGINT")).code, 0);
});

test("dev starts even when the project does not build yet", async (t) => {
  const dir = project(t, {
    "src/index.js": `import { text } from "./lib/deep/text.js";\nexport default { fetch: () => new Response(text) };`,
    "src/lib/deep/text.js": "export const text = {",
  });
  const server = await serve(t, dir, { command: "dev" });
  const page = await server.fetch("/");
  assert.equal(page.status, 500);
  assert.match(await page.text(), /Expected identifier but found end of file[\s\S]*src\/lib\/deep\/text\.js:1:21/);
  write(dir, { "src/lib/deep/text.js": `export const text = "good";` });
  assert.equal(await server.text("/"), "good");
});

test("in serve an exception is a short reference; its stack in the log is source-mapped", async (t) => {
  const dir = project(t, {
    "src/index.ts": `import { deep } from "./deep";

export default {
  async fetch(): Promise<Response> {
    await null;
    return deep(1);
  },
};`,
    "src/deep.ts": `interface Unused { a: string }\n\nexport function deep(n: number): Response {\n  throw new TypeError("no " + n);\n}\n`,
  });
  const server = await serve(t, dir);
  const response = await server.fetch("/");
  assert.equal(response.status, 500);
  const reference = /^The worker threw an exception \(reference ([0-9a-f]{16})\)\n$/.exec(await response.text())[1];
  await server.untilTrue(() => server.stderr.includes(reference), "the log line");
  await server.untilTrue(() => /TypeError: no 1\n    at deep \(src\/deep\.ts:4:\d+\)\n    at fetch \(src\/index\.ts:6:\d+\)/.test(server.stderr), "its stack");
});

test("a build command that does not end does not hold up the end of the server", async (t) => {
  const config = (command) => `name = "w"\nmain = "index.js"\n[build]\ncommand = "${command}"\n`;
  const dir = project(t, { "index.js": answer("x"), "wrangler.toml": config("true") });
  const server = await serve(t, dir);
  write(dir, { "wrangler.toml": config("echo hanging; sleep 60 & wait") });
  server.signal("SIGHUP");
  await server.untilTrue(() => /hanging/.test(server.stderr), "the build command");
  const began = Date.now();
  assert.equal((await server.stop()).code, 0);
  assert.ok(Date.now() - began < 30_000);
});

test("dev says what was asked and answered", async (t) => {
  const dir = project(t, { "index.js": `export default { fetch: () => new Response("", { status: 418 }) };` });
  const server = await serve(t, dir, { command: "dev" });
  await server.fetch("/tea?x=1");
  await server.untilTrue(() => /GET \/tea\?x=1 418 \d+\.\d ms/.test(server.stderr), "the request line");
});
