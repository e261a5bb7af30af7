// docs/start/objects-in-c.md, done word for word by somebody who has only what `make install` installs: the files that it
// shows are written, or are those of the template, its commands are run, and what it says they print is what they print.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { folder, root, write } from "../lib/cairn.mjs";
import { Server } from "../lib/server.mjs";

const page = readFileSync(path.join(root, "docs/start/objects-in-c.md"), "utf8");

/** [{ before, language, text }]: the blocks of code in order, each with the paragraph before it. */
function blocks(text) {
  return [...text.matchAll(/(?:^|\n\n)([^\n][^`]*(?:`[^`\n]*`[^`]*)*?)?\n*```(\w+)\n(.*?)```/gs)].map(([, before = "", language, code]) => (
    { before: before.trim().split("\n\n").at(-1), language, text: code }));
}

/** "$ command" with the lines that it prints, of a console block. */
function commands(text) {
  const found = [];
  for (const line of text.trimEnd().split("\n")) {
    if (line.startsWith("$ ")) found.push({ command: line.slice(2), output: [] });
    else found.at(-1).output.push(line);
  }
  return found;
}

/** Whether it is what was said; "..." stands for anything. */
function agrees(actual, expected) {
  const pattern = expected.map((line) => line.split("...").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^]*?")).join("\n");
  return new RegExp(`^${pattern}\n?$`).test(actual);
}

test("the tutorial does what it says", { timeout: 180_000 }, async (t) => {
  const stage = folder(t);
  const made = spawnSync("make", ["-C", root, "install", `DESTDIR=${stage}`, "PREFIX=/usr"], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  const env = {
    PATH: `${path.join(stage, "usr/bin")}:${process.env.PATH}`, HOME: folder(t), CAIRN_ADMIN: "off",
    PKG_CONFIG_LIBDIR: path.join(stage, "usr/share/pkgconfig"), PKG_CONFIG_SYSROOT_DIR: stage, PKG_CONFIG_ALLOW_SYSTEM_CFLAGS: "1",
  };
  let cwd = folder(t), server = null, changed = false, ran = 0;
  const dev = async () => {
    await server?.stop();
    server = new Server(spawn("cairn", ["dev", "--listen", "127.0.0.1:0"], { cwd, env, stdio: ["ignore", "pipe", "pipe"] }));
    t.after(() => server.kill());
    await server.ready;
  };
  const shell = (command) => new Promise((resolve) => {
    const child = spawn("bash", ["-c", command.replaceAll("http://127.0.0.1:8787", server?.url ?? "").replace(/^curl/, "curl -sS")], { cwd, env });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => { output += part; });
    child.on("close", () => resolve(output));
  });

  for (const block of blocks(page.slice(0, page.indexOf("\n## How it goes")))) {
    if (block.language !== "console") {
      const name = [...block.before.matchAll(/`([\w./]+)`/g)].at(-1)?.[1] ?? "";
      assert.ok(name, `a file's name before ${block.text.slice(0, 60)}`);
      if (/new, empty folder/.test(block.before)) cwd = folder(t);
      const file = path.join(cwd, name);
      if (existsSync(file) && !/\binto\b/.test(block.before)) {
        assert.equal(readFileSync(file, "utf8"), block.text, `${name} is what \`cairn new\` writes`);
        continue;
      }
      changed ||= existsSync(file);
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, block.text);
      continue;
    }
    if (changed) // the new worker asks for a method that only the new object has
      await server.untilTrue(async () => (await server.text("/another?history")) === "[]", "the changed project");
    changed = false;
    let waits = false;
    for (const { command, output } of commands(block.text)) {
      ran++;
      if (command.startsWith("cd ")) cwd = path.join(cwd, command.slice(3));
      else if (command === "cairn dev") await dev();
      else if (command.startsWith("sleep ")) waits = true; // for what the next one shows
      else if (waits) await server.untilTrue(async () => agrees(await shell(command), output), `${command}: ${output.join("\n")}`);
      else {
        const actual = await shell(command);
        assert.ok(agrees(actual, output), `$ ${command}\n${actual}\ninstead of\n${output.join("\n")}`);
      }
    }
  }
  assert.ok(ran >= 14, `${ran} commands were run`);
  await server.stop();
});

test("every piece of C on the page compiles without a warning", (t) => {
  const dir = folder(t);
  const pieces = blocks(page).filter(({ language }) => language === "c");
  assert.ok(pieces.length >= 4);
  pieces.forEach(({ text }, i) => {
    const whole = text.includes("#include <cairn.h>");
    write(dir, { [`${i}.c`]: whole ? text : `#include <cairn.h>\n${text}` });
    const flags = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", ...(whole ? [] : ["-Wno-unused-function"])];
    const { status, stderr } = spawnSync("cc", [...flags, "-fsyntax-only", "-I", path.join(root, "include"), `${i}.c`], { cwd: dir, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
});
