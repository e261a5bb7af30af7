// A disk that does not answer, a machine without threads or descriptors: for a server that runs (test/lib/preload/scarce.c).
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { root } from "./server.mjs";

let library;
function build() {
  if (library) return library;
  library = path.join(mkdtempSync(path.join(tmpdir(), "cairn-scarce-")), "scarce.so");
  process.on("exit", () => rmSync(path.dirname(library), { recursive: true, force: true }));
  const made = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, path.join(root, "test/lib/preload/scarce.c"), "-ldl"], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(made.stderr);
  return library;
}

/**
 * For `serve(t, dir, { env: scarce.env })`.
 * `without("sync")` takes that from the server, or "threads", until `plenty()`.
 */
export function scarcity(t) {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "cairn-scarce-")), "now");
  const plenty = () => rmSync(file, { force: true });
  t.after(() => rmSync(path.dirname(file), { recursive: true, force: true }));
  return { env: { LD_PRELOAD: build(), CAIRN_TEST_SCARCE: file }, without: (...what) => writeFileSync(file, what.join(" ")), plenty };
}

/** The server gets no descriptor more than it has; gives back what ends that. */
export function withoutDescriptors(server, spare = 0) {
  const limit = (soft) => {
    const done = spawnSync("prlimit", ["--pid", String(server.pid), `--nofile=${soft}:`], { encoding: "utf8" });
    if (done.status !== 0) throw new Error(done.stderr);
  };
  const open = readdirSync(`/proc/${server.pid}/fd`).map(Number);
  limit(Math.max(...open) + 1 + spare);
  return () => limit(65536);
}
