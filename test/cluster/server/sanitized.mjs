// Runs tests of this folder on a server built with SAN=address,undefined: `node sanitized.mjs FOLDER FILE ...`, as `make cluster-asan` does. FOLDER has
// the server, and gets a folder of reports.
//
// A report ends its server, but a test need not notice: one of three nodes that dies is what it may be about. So reports go to files, and any file
// is a failure, whatever the tests say. With CAIRN_TEST_SANITIZED a cluster is ended by SIGTERM when its test is over (cluster.mjs), so that what is
// still held then is told of as well.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [folder, ...files] = process.argv.slice(2);
if (files.length === 0) throw new Error("usage: sanitized.mjs FOLDER FILE ...");
const lib = fileURLToPath(new URL("../../lib", import.meta.url));
const reports = path.resolve(folder, "reports");
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });
const log = `log_path=${reports}/report`;

// JavaScriptCore handles faults of its own making, and its allocator is the system's (Malloc), so that what it frees is seen.
const settings = {
  ASAN_OPTIONS: `detect_leaks=1:allow_user_segv_handler=1:${log}`,
  LSAN_OPTIONS: `suppressions=${lib}/lsan.supp:print_suppressions=0`,
  UBSAN_OPTIONS: `halt_on_error=1:print_stacktrace=1:${log}`,
  Malloc: "1",
};

const child = spawn(process.execPath, ["--test", "--test-concurrency=1", "--test-reporter=spec", ...files], {
  stdio: "inherit",
  env: { ...process.env, ...settings, CAIRN: path.resolve(folder, "cairn"), CAIRN_TEST_SANITIZED: "1" },
});
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => child.kill(name));
let code = await new Promise((resolve) => child.on("close", (status) => resolve(status ?? 1)));
for (const name of existsSync(reports) ? readdirSync(reports) : []) {
  console.log(`== ${name}\n${readFileSync(path.join(reports, name), "utf8").slice(0, 20_000)}`);
  code = 1;
}
if (code === 0) console.log("no reports");
process.exit(code);
