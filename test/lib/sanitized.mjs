// Runs a command whose servers are built with sanitizers: `node sanitized.mjs FOLDER COMMAND ...`, as `make tsan`, `make cluster-asan` and their like do.
// FOLDER is build/san-address-undefined or build/san-thread: it has the server, which the command finds in CAIRN, and gets a folder of reports.
//
// A report need not fail a test: a server that dies is what some of them are about, and one that is killed has no exit code. So reports go to files,
// and any file is a failure, whatever the command says. With CAIRN_TEST_SANITIZED tests allow for servers that are slower and larger, and a cluster
// is ended by SIGTERM when its test is over (test/cluster/server/cluster.mjs), so that what is still held then is told of as well: LEAKS=1.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const [folder, ...command] = process.argv.slice(2);
if (command.length === 0) throw new Error("usage: sanitized.mjs FOLDER COMMAND ...");
const lib = fileURLToPath(new URL(".", import.meta.url));
const reports = path.resolve(folder, "reports");
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });
chmodSync(reports, 0o1777); // servers run as other users, too
const log = `log_path=${reports}/report`;

/** libuv closes files by syscall(), which ThreadSanitizer does not see: test/lib/preload/closes.c. */
function closes() {
  const out = path.resolve(folder, "closes.so");
  const { status, stderr } = spawnSync(process.env.CC ?? "cc", ["-shared", "-fPIC", "-O1", "-o", out, path.join(lib, "preload/closes.c")], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return out;
}

// The engine itself is not checked. It handles faults of its own making, and its allocator is the system's (Malloc), so that what it frees is seen.
// Its collector stops other threads by signals, which ThreadSanitizer delays: it collects on the lane's own thread there.
const settings = path.basename(folder) === "san-thread" ? {
  TSAN_OPTIONS: `halt_on_error=0:report_signal_unsafe=0:suppressions=${lib}tsan.supp:${log}`,
  LD_PRELOAD: closes(),
  JSC_useConcurrentGC: "0",
} : {
  ASAN_OPTIONS: `detect_leaks=${process.env.LEAKS ?? 0}:allow_user_segv_handler=1:${log}`,
  LSAN_OPTIONS: `suppressions=${lib}lsan.supp:print_suppressions=0`,
  UBSAN_OPTIONS: `halt_on_error=1:print_stacktrace=1:${log}`,
};

const child = spawn(command[0], command.slice(1), {
  stdio: "inherit",
  env: { ...process.env, ...settings, Malloc: "1", CAIRN: path.resolve(folder, "cairn"), CAIRN_TEST_SANITIZED: "1" },
});
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => child.kill(name));
let code = await new Promise((resolve) => child.on("close", (status) => resolve(status ?? 1)));
for (const name of readdirSync(reports)) {
  console.log(`== ${name}\n${readFileSync(path.join(reports, name), "utf8").slice(0, 20_000)}`);
  code = 1;
}
if (code === 0) console.log("no reports");
process.exit(code);
