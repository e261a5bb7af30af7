// The command line itself: help, refusals, the starter, settings from flags and variables.
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import https from "node:https";
import net from "node:net";
import path from "node:path";
import test from "node:test";
import { folder, project, root, run, serve } from "../lib/cairn.mjs";

const hello = { "index.js": `export default { fetch: (r, env) => new Response("hello " + (env.A ?? "")) }` };

test("version and help", () => {
  assert.match(run(["version"]).stdout, /^cairn \d+\.\d+\.\d+\n$/);
  assert.match(run(["help"]).stdout, /new[\s\S]*dev[\s\S]*serve[\s\S]*build/);
  for (const name of ["serve", "dev", "build", "new"]) {
    const help = run(["help", name]);
    assert.equal(help.status, 0);
    assert.ok(help.stdout.startsWith(`usage: cairn ${name} `), help.stdout);
    assert.equal(run([name, "--help"]).stdout, help.stdout);
  }
  assert.equal(run([]).status, 2);
});

test("what is unknown is refused with a suggestion", () => {
  for (const [args, text] of [
    [["srve"], 'cairn: unknown command "srve" (did you mean "serve"?)'],
    [["serve", "--lisen", "x"], "cairn: unknown option --lisen (did you mean --listen?)"],
    [["serve", "--outdir=x"], "cairn: unknown option --outdir"],
    [["serve", "--listen"], "cairn: --listen needs a value: HOST:PORT"],
    [["build", "a", "b"], 'cairn: unexpected "b"'],
  ]) {
    const result = run(args);
    assert.equal(result.status, 2);
    assert.ok(result.stderr.startsWith(text), result.stderr);
  }
});

test("bad settings are refused with a sentence", (t) => {
  const dir = project(t, { ...hello });
  for (const [args, text] of [
    [["--listen", "nonsense"], '"nonsense" is not an address HOST:PORT'],
    [["--listen", "127.0.0.1:99999"], "is not an address HOST:PORT"],
    [["--lanes", "0"], '--lanes must be a number from 1 to 256, not "0"'],
    [["--log", "xml"], '--log must be json or pretty, not "xml"'],
    [["--tls-cert", "x"], "--tls-cert and --tls-key belong together"],
    [["--env", "prod"], "there is no [env.prod]"],
    [["--var", "novalue"], "--var novalue: must have the form NAME=VALUE"],
  ]) {
    const result = run(["serve", dir, ...args]);
    assert.equal(result.status, 1, args.join(" "));
    assert.ok(result.stderr.includes(text), result.stderr);
  }
});

test("a flag wins over its variable, the variable over the configuration", async (t) => {
  const dir = project(t, {
    "wrangler.toml": `name = "w"\nmain = "index.js"\n[vars]\nA = "file"\n[cairn]\nlisten = "127.0.0.1:1"\n`,
    ...hello,
  });
  const env = { CAIRN_LISTEN: "127.0.0.1:0", CAIRN_VAR: "A=variable", CAIRN_LANES: "1" };
  const first = await serve(t, dir, { env });
  assert.equal(await first.text("/"), "hello variable");
  await first.stop();
  const second = await serve(t, dir, { env, args: ["--var", "A=flag", "--listen=localhost:0"] });
  assert.equal(await second.text("/"), "hello flag");
  assert.match(second.url, /^http:\/\/localhost:\d+$/);
});

test("nothing but the data directory is left behind", async (t) => {
  const dir = project(t, { ...hello });
  const data = path.join(folder(t), "d");
  const server = await serve(t, dir, { args: ["--data", data] });
  assert.equal((await server.stop("SIGINT")).code, 0);
  assert.deepEqual(readdirSync(dir).sort(), ["index.js", "wrangler.toml"]);
  assert.ok(existsSync(data));
});

test("--log json makes every message one JSON object", async (t) => {
  const dir = project(t, { "index.js": `export default { fetch() { console.warn("w\\n2"); return new Response(); } }` });
  const server = await serve(t, dir, { args: ["--log", "json"] });
  await server.fetch("/");
  await server.stop();
  const lines = server.stderr.trim().split("\n").map((line) => JSON.parse(line));
  const broken = project(t, { "index.js": "export default {" });
  const failed = run(["build", broken, "--log=json"]);
  assert.match(JSON.parse(failed.stderr.split("\n")[0]).message, /\[ERROR\] Expected identifier/);
  assert.ok(lines.some((line) => JSON.stringify(line).includes("w\\\\n2") || Object.values(line).includes("w\n2")), server.stderr);
});

test("TLS from two PEM files", async (t) => {
  const dir = project(t, { ...hello });
  const keys = folder(t);
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"], { cwd: keys, encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  const server = await serve(t, dir, { args: ["--tls-cert", `${keys}/cert.pem`, "--tls-key", `${keys}/key.pem`] });
  assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  const text = await new Promise((resolve, reject) =>
    https.get(server.url, { rejectUnauthorized: false }, (response) => response.setEncoding("utf8").on("data", resolve)).on("error", reject),
  );
  assert.equal(text, "hello ");
  const bad = run(["serve", dir, "--tls-cert", `${keys}/nope.pem`, "--tls-key", `${keys}/key.pem`]);
  assert.equal(bad.status, 1);
  assert.match(bad.stderr, /nope\.pem/);
});

test("an address in use, and one of IPv6", async (t) => {
  const dir = project(t, { ...hello });
  const taken = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.on("listening", resolve));
  t.after(() => taken.close());
  const { port } = taken.address();
  const result = run(["serve", dir, "--listen", `127.0.0.1:${port}`]);
  assert.equal(result.status, 1);
  assert.match(result.stderr, new RegExp(`cairn: port ${port} is taken by \\S+ \\(process ${process.pid}\\); the next free one is`));
  const server = await serve(t, dir, { args: ["--listen", "[::1]:0"] });
  assert.match(server.url, /^http:\/\/\[::1\]:\d+$/);
  assert.equal(await server.text("/"), "hello ");
});

test("health says by its exit code whether the server of a data directory answers", async (t) => {
  const data = folder(t);
  const without = run(["health", "--data", data]);
  assert.equal(without.status, 1);
  assert.equal(without.stderr, `cairn: no server runs on the data directory ${data}\n`);
  const server = await serve(t, project(t, hello), { args: ["--data", data, "--admin", "off"] });
  for (const [args, text] of [[[], "ok\n"], [["--ready"], "ready\n"]]) {
    const { status, stdout } = run(["health", "--data", data, ...args]);
    assert.deepEqual([status, stdout], [0, text]);
  }
  await server.stop();
  assert.equal(run(["health", "--data", data, "--ready"]).status, 1);
});
