// The real wrangler serves test/import/app on workerd and keeps what it stores in a folder.
import { spawn } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const BATCH = 10; // of one request: wrangler gives up on those that take long

/** A copy of the application. */
export function copyApp(dir) {
  cpSync(path.resolve(import.meta.dirname, "app"), dir, { recursive: true });
  cpSync(path.resolve(import.meta.dirname, "../../examples/moving/export.js"), path.join(dir, "src/export.js"));
}

async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Text of an answer; throws unless it is a 200. */
export async function ask(base, target, init) {
  const response = await fetch(base + target, init);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${target}: ${response.status} ${text.match(/\w*Error: [^<]*/)?.[0].slice(0, 300) ?? text.slice(0, 300)}`);
  return text;
}

/** All that the worker at `base` has. */
export async function describe(base, count) {
  const objects = [];
  for (let from = 0; from < count; from += BATCH) objects.push(...JSON.parse(await ask(base, `/objects?from=${from}&to=${Math.min(count, from + BATCH)}`)));
  return { objects, services: JSON.parse(await ask(base, "/services")) };
}

/** The objects as the worker at `base` exports them: those that have names by name, the others by id. */
export async function exportAll(base, { objects }) {
  let text = "";
  for (const className of ["Room", "Old"]) {
    const own = objects.filter((_, n) => (n % 5 === 4) === (className === "Old"));
    for (let from = 0; from < own.length; from += BATCH) {
      const some = own.slice(from, from + BATCH), names = some.flatMap(({ name }) => name ?? []), ids = some.filter(({ name }) => name === null).map(({ id }) => id);
      text += await ask(base, "/export", { method: "POST", headers: { authorization: "Bearer a key" }, body: JSON.stringify({ class: className, names, ids }) });
    }
  }
  return text;
}

/**
 * Fills a simulator in `dir` (a copy of the application) with `count` objects, and returns what it has; the file `stream` gets what it
 * exports. It is killed, so that its write-ahead logs stay.
 */
export async function simulate(wrangler, dir, count, stream) {
  copyApp(dir);
  const port = await freePort(), base = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, [wrangler, "dev", "--port", String(port), "--ip", "127.0.0.1", "--inspector-port", "0"],
    { cwd: dir, detached: true, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, WRANGLER_SEND_METRICS: "false", CLOUDFLARE_CF_FETCH_ENABLED: "false", CI: "1", HOME: dir } });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (said += piece));
  try {
    while (!/Ready on/.test(said)) {
      if (child.exitCode !== null) throw new Error(`wrangler dev: ${said}`);
      await pause(20);
    }
    for (let from = 0; from < count; from += BATCH) await ask(base, `/fill?from=${from}&to=${Math.min(count, from + BATCH)}`, { method: "POST" });
    const described = await describe(base, count);
    if (stream) writeFileSync(stream, await exportAll(base, described));
    return described;
  } finally {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    process.kill(-child.pid, "SIGKILL");
    await ended;
  }
}
