// Runs the fuzzers of the whole server: node test/fuzz/server/run.mjs SECONDS [NAME [SEED]]; CAIRN names the binary.
import { readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { runFile } from "./lib.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const [seconds = "10", wanted = "", seed] = process.argv.slice(2);
let failed = false;
for (const name of readdirSync(here).filter((each) => each.endsWith(".mjs") && !["lib.mjs", "run.mjs"].includes(each) && each.includes(wanted))) failed = runFile(path.join(here, name), Number(seconds), seed) !== 0 || failed;
process.exit(failed ? 1 : 0);
