// K1 and K2 of src/worker/hold.h: in `cairn dev` a request that comes after a file was saved is answered by code that was built from that save
// or a later one, or by what is wrong with it; never by older code.
import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { project, serve, write } from "../lib/cairn.mjs";

const answer = (text) => `export default { fetch: () => new Response("${text}") };\n`;

/** Saves as editors do: over the file, or beside it and then in its place. */
function save(file, text, beside) {
  if (!beside) return writeFileSync(file, text);
  writeFileSync(file + "~", text);
  renameSync(file + "~", file);
}

test("a request that follows a save at once is never answered by older code", async (t) => {
  const dir = project(t, { "src/index.js": `import { n } from "./part.js";\nexport default { fetch: () => new Response(n) };`, "src/part.js": `export const n = "0000";` });
  const server = await serve(t, dir, { command: "dev", args: ["--lanes", "2"] });
  for (let i = 1; i <= 40; i++) {
    const text = String(i).padStart(4, "0"); // of one length: size says nothing
    save(path.join(dir, "src/part.js"), `export const n = "${text}";`, i % 2);
    const answers = await Promise.all([1, 2, 3].map(() => server.text("/")));
    assert.deepEqual(answers, [text, text, text]);
  }
});

test("while files are saved without a pause, what answers is as new as the last save before the request", async (t) => {
  const dir = project(t, { "index.js": answer("0") });
  const server = await serve(t, dir, { command: "dev" });
  let saved = 0, ends = false, asked = 0;
  const saving = (async () => {
    while (!ends) {
      save(path.join(dir, "index.js"), answer(saved + 1), true);
      saved++;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  for (; asked < 20; asked++) {
    const before = saved;
    const got = Number(await server.text("/"));
    assert.ok(got >= before, `${got} is older than ${before}`);
  }
  ends = true;
  await saving;
  assert.ok(saved > asked);
  assert.equal(await server.text("/"), String(saved));
});

test("configuration, secrets and assets are held for as well", async (t) => {
  const config = (text) => `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[vars]\nA = "${text}"\n[assets]\ndirectory = "public"\n`;
  const dir = project(t, {
    "wrangler.toml": config("a0"), ".dev.vars": "B=b0\n", "public/c.txt": "c0",
    "index.js": `export default { fetch: (request, env) => new Response(env.A + env.B) };`,
  });
  const server = await serve(t, dir, { command: "dev" });
  for (let i = 1; i <= 5; i++) {
    write(dir, { "wrangler.toml": config(`a${i}`) });
    assert.equal(await server.text("/"), `a${i}b${i - 1}`);
    write(dir, { ".dev.vars": `B=b${i}\n` });
    assert.equal(await server.text("/"), `a${i}b${i}`);
    write(dir, { "public/c.txt": `c${i}` });
    assert.equal(await server.text("/c.txt"), `c${i}`);
    write(dir, { [`public/${i}.txt`]: "new" });
    assert.equal(await server.text(`/${i}.txt`), "new");
  }
});

test("what a build command makes is held for", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\nmain = "out/index.js"\ncompatibility_date = "2026-01-01"\n[build]\ncommand = "mkdir -p out && cp src/index.js out/"\n`,
    "src/index.js": answer("0"),
  });
  const server = await serve(t, dir, { command: "dev" });
  for (let i = 1; i <= 5; i++) {
    write(dir, { "src/index.js": answer(i) });
    assert.equal(await server.text("/"), String(i));
  }
});

test("a build or a start that fails is the answer at once, in each client's form, and what mends it too", async (t) => {
  const dir = project(t, { "index.js": answer("good") });
  const server = await serve(t, dir, { command: "dev" });
  for (let i = 0; i < 5; i++) {
    write(dir, { "index.js": "export default {" });
    const plain = await server.fetch("/");
    assert.deepEqual([plain.status, plain.headers.get("content-type")], [500, "text/plain;charset=UTF-8"]);
    assert.match(await plain.text(), /^w: the project does not build\n\n[^\x1b]*Expected identifier[^\x1b]*index\.js:1:16/);
    const page = await server.fetch("/", { headers: { accept: "text/html,*/*;q=0.8" } });
    assert.match(page.headers.get("content-type"), /^text\/html/);
    assert.match(await page.text(), /<h1>w: the project does not build<\/h1><pre>/);
    write(dir, { "index.js": `throw new Error("at start");` });
    assert.match(await server.text("/"), /failed to start: Error: at start\n    at index\.js:1/);
    write(dir, { "index.js": answer(`good${i}`) });
    assert.equal(await server.text("/"), `good${i}`);
  }
  // A file that is missing is one that the build looks for.
  write(dir, { "index.js": `import { text } from "./lib/text.js";\n` + answer("x").replace('"x"', "text") });
  assert.match(await server.text("/"), /Could not resolve ".\/lib\/text.js"/);
  write(dir, { "lib/text.js": `export const text = "found";` });
  assert.equal(await server.text("/"), "found");
});

test("a start that fails waits for a change as a build does", async (t) => {
  const dir = project(t, { "index.js": `throw new Error("at start");` });
  const server = await serve(t, dir, { command: "dev" });
  assert.match(server.stderr, /failed to start: Error: at start[^]*waiting for a change/);
  assert.equal((await server.fetch("/")).status, 500);
  write(dir, { "index.js": answer("good") });
  assert.equal(await server.text("/"), "good");
});

test("requests that wait for a build are answered when the server stops, and one whose client leaves is forgotten", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[build]\ncommand = "true"\n`,
    "index.js": answer("x"), "src/x": "",
  });
  const server = await serve(t, dir, { command: "dev" });
  assert.equal(await server.text("/"), "x");
  write(dir, { "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[build]\ncommand = "echo hanging; sleep 60 & wait"\n` });
  const leaving = new AbortController();
  const left = server.fetch("/", { signal: leaving.signal }).catch((error) => error.name);
  const waiting = server.fetch("/");
  await server.until(/hanging/);
  leaving.abort();
  assert.equal(await left, "AbortError");
  const ended = server.stop();
  const last = await waiting;
  assert.deepEqual([last.status, await last.text()], [503, "The server is stopping\n"]);
  assert.equal((await ended).code, 0);
});
