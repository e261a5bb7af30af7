// Runs the fuzzers in JavaScript: node test/fuzz/js/run.mjs SECONDS [NAME [SEED]]
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { plainParts } from "../../lib/plain-parts.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const [seconds = "2", wanted = "", seed] = process.argv.slice(2);
const dir = mkdtempSync(path.join(os.tmpdir(), "cairn-fuzz-"));
let failed = false;
for (const name of readdirSync(here).filter((n) => n.endsWith(".js") && n !== "lib.js" && n.includes(wanted))) {
  const outfile = path.join(dir, name);
  await build({
    entryPoints: [path.join(here, name)], outfile, bundle: true, format: "iife", target: "esnext", plugins: [plainParts], logLevel: "error",
    banner: { js: `globalThis.__options ??= {}; globalThis.__seconds = ${Number(seconds)};${seed === undefined ? "" : `globalThis.__seed = ${Number(seed)};`}` },
  });
  // An endless loop ends here too.
  const result = spawnSync(path.join(here, "../../../build/jsrun"), [outfile], { stdio: "inherit", timeout: Number(seconds) * 1000 + 30_000 });
  failed ||= result.status !== 0;
  if (result.signal) console.log(`${name}: ended by ${result.signal}`);
}
rmSync(dir, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
