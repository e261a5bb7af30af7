// What `make run` runs: everything on one server, with the address of every page printed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { cairn, root, Server, tempDir } from "../lib/server.mjs";

test("make run prints the address of every page, and says that the market is a stand-in", async () => {
  const child = spawn(path.join(root, "tools/run-gallery"), [cairn, "--listen", "127.0.0.1:0", "--admin", "off"], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_DATA: tempDir() } });
  const server = new Server(child);
  try {
    await server.ready;
    await server.until(/^administration: .+$/m);
    const folders = ["examples", "apps"].flatMap((folder) => readdirSync(path.join(root, folder)).filter((name) => existsSync(path.join(root, folder, name, "wrangler.toml"))));
    const pages = folders.filter((name) => name !== "hello" && name !== "gallery");
    for (const name of pages) assert.ok(server.stdout.includes(`http://${name}.localhost:${server.port}/\n`), `${name} is not among\n${server.stdout}`);
    assert.match(server.stdout, /stand-in for the market: its prices are made up/);
    const gallery = await server.text("/");
    assert.match(gallery, /prices are made up here: a stand-in answers for the market/);
  } finally {
    await server.stop();
  }
});
