// `make install` gives a cairn that needs nothing of the checkout but Node.js.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder, project, root, serve } from "../lib/cairn.mjs";

function install(stage) {
  const made = spawnSync("make", ["-C", root, "install", `DESTDIR=${stage}`, "PREFIX=/usr"], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
}

test("an installed cairn bundles and serves outside the checkout", async (t) => {
  const stage = folder(t);
  install(stage);
  // Moved, so that nothing can point back by an absolute path.
  const home = path.join(stage, "opt");
  mkdirSync(home);
  renameSync(path.join(stage, "usr"), path.join(home, "cairn"));
  // Man pages and completions are made from what the program says of itself.
  const share = path.join(home, "cairn/share");
  const commands = [...spawnSync(path.join(home, "cairn/bin/cairn"), ["help"], { encoding: "utf8" }).stdout.matchAll(/^ {2}(\w+) {2,}/gm)].map(([, name]) => name);
  assert.ok(commands.includes("serve"));
  const page = readFileSync(path.join(share, "man/man1/cairn.1"), "utf8");
  const completion = readFileSync(path.join(share, "bash-completion/completions/cairn"), "utf8");
  for (const name of commands) {
    assert.match(page, new RegExp(`^\\.B ${name}$`, "m"));
    assert.match(completion, new RegExp(`^ {4}${name}\\) words=`, "m"));
  }
  assert.match(readFileSync(path.join(share, "man/man1/cairn-serve.1"), "utf8"), /\\-\\-listen\\fR \\fIHOST:PORT/);
  const syntax = spawnSync("bash", ["-n", path.join(share, "bash-completion/completions/cairn")], { encoding: "utf8" });
  assert.equal(syntax.status, 0, syntax.stderr);
  const complete = (...words) => spawnSync("bash", ["-c", `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cairn; echo "\${COMPREPLY[@]}"`, "bash", path.join(share, "bash-completion/completions/cairn"), ...words], { encoding: "utf8" }).stdout.trim();
  assert.equal(complete("cairn", "qu"), "queues");
  assert.equal(complete("cairn", "queues", "re"), "resume-delivery redrive");
  assert.equal(complete("cairn", "kv", "key", "p"), "put");
  assert.equal(complete("cairn", "r2", "object", "get", "--pi"), "--pipe");
  const dir = project(t, { "src/index.ts": `export default { fetch: (): Response => new Response("installed") };` });
  const server = await serve(t, dir, { executable: path.join(home, "cairn/bin/cairn") });
  assert.equal(await server.text("/"), "installed");
  assert.equal((await server.stop()).code, 0);
  // Uninstalling takes what was installed, and nothing else.
  writeFileSync(path.join(share, "mine"), "");
  const gone = spawnSync("make", ["-C", root, "uninstall", `DESTDIR=${stage}`, "PREFIX=/opt/cairn"], { encoding: "utf8" });
  assert.equal(gone.status, 0, gone.stderr);
  const left = spawnSync("find", [home, "-type", "f"], { encoding: "utf8" }).stdout.trim().split("\n");
  assert.deepEqual(left, [path.join(share, "mine")]);
  assert.equal(existsSync(path.join(dir, ".cairn/bundle")), true);
});

test("what is installed for C compiles a module with pkg-config alone, and the installed cairn serves it", async (t) => {
  const stage = folder(t);
  install(stage);
  const env = { PKG_CONFIG_LIBDIR: path.join(stage, "usr/share/pkgconfig"), PKG_CONFIG_SYSROOT_DIR: stage, PKG_CONFIG_ALLOW_SYSTEM_CFLAGS: "1" };
  const ask = (...args) => spawnSync("pkg-config", args, { encoding: "utf8", env: { ...process.env, ...env } }).stdout.trim();
  const executable = path.join(stage, "usr/bin/cairn");
  assert.equal(`cairn ${ask("--modversion", "cairn")}`, spawnSync(executable, ["version"], { encoding: "utf8" }).stdout.split("\n")[0]);
  assert.equal(ask("--cflags", "cairn"), `-I${stage}/usr/include`);
  assert.match(ask("--variable=moduleflags", "cairn"), /-shared -fPIC/);
  const dir = path.join(folder(t), "in-c");
  assert.equal(spawnSync(executable, ["new", dir, "--template", "c-object"]).status, 0);
  assert.ok(readFileSync(path.join(dir, "Makefile"), "utf8").trim().split("\n").length <= 10, "its Makefile has ten lines");
  const server = await serve(t, dir, { executable, env });
  for (const expected of ["1", "2"]) assert.equal(await server.text("/visits"), expected);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test("cairn.h(3) has every function, type and constant of the header, and a header it cannot read is refused", async (t) => {
  const header = readFileSync(path.join(root, "include/cairn.h"), "utf8");
  const { page } = await import(path.join(root, "tools/package/header.mjs"));
  const text = page(header, "1.2.3").replaceAll("\\-", "-");
  const members = [...header.replace(/\/\*.*?\*\//gs, "").matchAll(/^    [a-z][\w *]*?\(\*(\w+)\)\(/gm)].map(([, name]) => name);
  assert.ok(members.length > 100 && members.includes("sql_prepare") && members.includes("socket_message"));
  for (const name of members) assert.match(text, new RegExp(`^\\.B ".*\\b${name}\\(`, "m"), name);
  for (const [name] of header.replace(/\bCAIRN_H\b/g, "").matchAll(/\bCAIRN_[A-Z]+\b/g)) assert.ok(text.includes(name), name);
  // What documents a function stands below it.
  assert.match(text, /^\.B "int cairn->kv_delete\(cairn_object \*object, const char \*key\);"\n\.fi\n\.RS 4\n1: it was there; 0: it was not\.$/m);
  assert.match(text, /^\.SS Storage\n\.PP\nSQL\.$/m);
  assert.throws(() => page(header.replace(/    \/\* ---- metrics ----[^]*?\*\/\n/, "$&    int (*odd)(void);"), "1"), /has declarations right behind it/);
});
