// `build.command` (src/project/build_command.h): its programs, and when it runs.
import assert from "node:assert/strict";
import { chmodSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { project, run, serve, write } from "../lib/cairn.mjs";

const config = (command, more = "") =>
  `name = "w"\nmain = "dist/out.js"\ncompatibility_date = "2026-01-01"\n[build]\ncommand = "${command}"\n${more}`;
const script = "#!/bin/sh\necho ran >> runs.log.d/log\nmkdir -p dist && cp src/in.js dist/out.js\n";

/** A project whose command is a program of a package; it notes each run where B2 does not look. */
function prepared(t, command = "own-build", more) {
  const dir = project(t, {
    "wrangler.toml": config(command, more), "src/in.js": "export default { fetch: () => new Response('1') }",
    "node_modules/.bin/own-build": script.replaceAll("runs.log.d", ".runs"), ".runs/log": "",
  });
  chmodSync(path.join(dir, "node_modules/.bin/own-build"), 0o755);
  return { dir, runs: () => readFileSync(path.join(dir, ".runs/log"), "utf8").split("\n").length - 1 };
}
const build = (dir) => {
  const { status, stderr } = run(["build", dir]);
  assert.equal(status, 0, stderr);
};

test("B1: programs of installed packages are on the path, those of folders above too", (t) => {
  const { dir, runs } = prepared(t);
  build(dir);
  assert.equal(runs(), 1);
  write(dir, { "packages/app/wrangler.toml": config("cd ../.. && own-build && cp -r dist packages/app"), "packages/app/src/x": "" });
  build(path.join(dir, "packages/app"));
  assert.equal(runs(), 2);
});

test("B2: the command does not run when nothing has changed, and does when an input or an output has", async (t) => {
  const { dir, runs } = prepared(t);
  build(dir);
  build(dir);
  assert.equal(runs(), 1, "nothing has changed");
  const server = await serve(t, dir);
  assert.equal(await (await server.fetch("/")).text(), "1");
  await server.kill();
  assert.equal(runs(), 1, "nor for a server");
  write(dir, { "src/in.js": "export default { fetch: () => new Response('22') }" });
  build(dir);
  assert.equal(runs(), 2, "an input");
  rmSync(path.join(dir, "dist"), { recursive: true });
  build(dir);
  assert.equal(runs(), 3, "an output");
  write(dir, { "package.json": "{}" });
  build(dir);
  assert.equal(runs(), 4, "any file of the project");
  write(dir, { "wrangler.toml": config("own-build && true") });
  build(dir);
  build(dir);
  assert.equal(runs(), 5, "the command");
});

test("B3: after a failure it runs again", (t) => {
  const { dir, runs } = prepared(t, "own-build && test -f .allowed");
  assert.match(run(["build", dir]).stderr, /the build command .* failed with exit code 1/);
  write(dir, { ".allowed": "" });
  build(dir);
  build(dir);
  assert.equal(runs(), 2);
});
