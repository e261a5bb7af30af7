// What `cairn dev` shows on a terminal, and does at its keys (src/server/console.h); and what it says of a port or a data directory that another
// process has (src/base/whose.h).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import test from "node:test";
import { folder, project, run, serve, write } from "../lib/cairn.mjs";
import { cairn } from "../lib/server.mjs";

const files = {
  "wrangler.toml": `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[vars]\nGREETING = "hello"\nOTHER = { a = 1 }\n[[kv_namespaces]]\nbinding = "KV"\nid = "users"\n`,
  ".dev.vars": "API_KEY=abracadabra\n",
  "index.js": `export default { fetch: () => new Response("hello") };`,
};
const table = /^w has\r?\n {2}env\.KV +KV namespace +users\r?\n {2}env\.GREETING +variable +"hello"\r?\n {2}env\.OTHER +variable +\{"a":1\}\r?\n {2}env\.API_KEY +secret +from \.dev\.vars\r?$/m;

/** `cairn dev` on a terminal of its own, by script(1). */
function onTerminal(t, dir, args, env = {}) {
  const child = spawn("script", ["-qefc", `exec ${cairn} dev ${args}`, "/dev/null"], {
    cwd: dir, stdio: ["pipe", "pipe", "inherit"], env: { PATH: process.env.PATH, HOME: dir, TERM: "xterm", CAIRN_STRICT: "1", ...env } });
  const terminal = { child, output: "", waiting: [] };
  child.stdout.setEncoding("utf8").on("data", (text) => {
    terminal.output += text;
    terminal.waiting = terminal.waiting.filter((check) => !check());
  });
  terminal.exited = new Promise((resolve) => child.on("close", resolve));
  t.after(async () => {
    child.kill("SIGKILL"); // T3
    await terminal.exited;
  });
  terminal.until = (pattern) => new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${pattern} did not come:\n${terminal.output}`)), 120_000).unref();
    const check = () => {
      const found = pattern.exec(terminal.output);
      if (found) resolve(found);
      return Boolean(found);
    };
    if (check()) return;
    terminal.waiting.push(check);
    terminal.exited.then(() => reject(new Error(`${pattern} did not come:\n${terminal.output}`)));
  });
  terminal.press = (key) => child.stdin.write(key);
  return terminal;
}

test("a terminal gets the bindings, the addresses, the keys and colours; secrets are not shown", async (t) => {
  const dir = project(t, files), opened = path.join(dir, "opened");
  write(dir, { browser: `#!/bin/sh\necho "$1" >"${opened}.new" && mv "${opened}.new" "${opened}-$(ls "${dir}" | grep -c ^opened-)"\n` });
  chmodSync(path.join(dir, "browser"), 0o755);
  const terminal = onTerminal(t, dir, "--port 0", { BROWSER: path.join(dir, "browser") });
  await terminal.until(/exit\r?\n/);
  assert.match(terminal.output, table);
  const url = (await terminal.until(/^cairn: ready on (http:\S+)/m))[1];
  assert.equal(await (await fetch(url)).text(), "hello");
  const dashboard = (await terminal.until(/dashboard +(http:\S+) \(d opens it\)/))[1];
  assert.match(terminal.output, /\x1b\[1mb\x1b\[0m browser, .*d.* dashboard, .*c.* clear, .*r.* reload, .*x.* exit/);
  await terminal.until(/\x1b\[0;32m info /); // a message, with colours
  assert.ok(!terminal.output.includes("abracadabra"));

  terminal.press("b");
  await until(() => existsSync(`${opened}-0`));
  assert.equal(readFileSync(`${opened}-0`, "utf8").trim(), url);
  terminal.press("d");
  await until(() => existsSync(`${opened}-1`));
  const [address, token] = readFileSync(`${opened}-1`, "utf8").trim().split("/#token=");
  assert.equal(address, dashboard);
  assert.equal((await fetch(`${dashboard}/api/workers`, { headers: { authorization: `Bearer ${token}` } })).status, 200);

  terminal.press("r");
  await terminal.until(/reloaded in \d+ ms/);
  terminal.press("c");
  await terminal.until(/\x1b\[2J[^]*env\.KV[^]*ready on[^]*exit\r?\n/);
  write(dir, { "wrangler.toml": files["wrangler.toml"].replace("users", "people") });
  await terminal.until(/wrangler\.toml has changed[^]*env\.KV +KV namespace +people/);
  terminal.press("x");
  assert.equal(await terminal.exited, 0);
});

test("a configuration that cannot be read waits for a change on a terminal, and ends the start elsewhere", async (t) => {
  const broken = { ...files, "wrangler.toml": files["wrangler.toml"].replace('"w"', '"w') };
  const dir = project(t, broken);
  assert.equal(run(["dev", dir]).status, 1);
  const terminal = onTerminal(t, dir, "--port 0");
  await terminal.until(/wrangler\.toml:1:8: [^\n]*\n> +1 \| name = "w\r?\n[^]*waiting for a change/);
  write(dir, { "wrangler.toml": broken["wrangler.toml"] + "\n" }); // as bad as before
  await terminal.until(/waiting for a change[^]*waiting for a change/);
  write(dir, { "wrangler.toml": files["wrangler.toml"] });
  const url = (await terminal.until(/^cairn: ready on (http:\S+)/m))[1];
  assert.equal(await (await fetch(url)).text(), "hello");
});

async function until(condition) {
  for (const deadline = Date.now() + 120_000; !condition() && Date.now() < deadline; ) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(condition(), String(condition));
}

test("no terminal: the bindings and addresses, no keys, no colours; JSON: messages alone", async (t) => {
  const dir = project(t, files);
  const server = await serve(t, dir, { command: "dev" });
  await server.until(/built in \d+ ms/);
  assert.match(server.stdout, table);
  assert.ok(!/\x1b|browser/.test(server.output), server.output);
  await server.stop();
  const json = await serve(t, dir, { command: "dev", args: ["--log", "json"] });
  await json.stop();
  assert.match(json.stdout, /^cairn: ready on \S+\n$/);
  for (const line of json.stderr.trim().split("\n")) JSON.parse(line);
});

test("a port that somebody has: which process, and the next free one", async (t) => {
  const dir = project(t, files);
  const holder = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => holder.on("listening", resolve));
  t.after(() => holder.close());
  const { port } = holder.address();
  const named = run(["dev", dir, "--port", String(port)]);
  assert.equal(named.status, 1);
  const [, process_, other] = named.stderr.match(new RegExp(`^cairn: port ${port} is taken by \\S+ \\(process (\\d+)\\); the next free one is (\\d+): --listen 127\\.0\\.0\\.1:\\2$`, "m"));
  assert.equal(Number(process_), process.pid);
  assert.ok(Number(other) > port);
});

test("a second instance on a data directory says which process has it, commands too", async (t) => {
  const dir = project(t, files);
  const server = await serve(t, dir, { command: "dev" });
  const second = run(["dev", dir, "--listen", "127.0.0.1:0"]);
  assert.equal(second.status, 1);
  assert.match(second.stderr, new RegExp(`/\\.cairn: the data directory is in use by cairn \\(process ${server.pid}\\): end it, or [^\\n]*--data DIR`));
  assert.match(run(["check", path.join(dir, ".cairn")]).stderr, new RegExp(`in use by cairn \\(process ${server.pid}\\)`));
});
