// again.mjs FAILURES: whether the tests that failed in a run of the integration tests fail when each is run again, alone.
//
// Some two thousand tests start servers of their own on a machine that does other things too. One that fails there and
// passes twice by itself is unsteady: it is named, with what it said first, and does not stop the run. A test that
// finds a defect which shows seldom must stop it, so these are never run again (a file that came to no end in its time
// is, whole):
//   - a server that ended by a signal, or that a sanitizer reported;
//   - a write, a message or a row that is missing (the word is in what the test says);
//   - more than LIMIT tests at once: that is no accident.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

const LIMIT = 2;
const TIMES = 2;
const final = /SIG(ABRT|SEGV|BUS|ILL|FPE|TRAP)|Sanitizer|runtime error:|\blost\b|\bmissing\b|acknowledged|damaged|\bleak/i;

const lines = fs.readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
const failed = lines.filter((line) => !line.done);

/** Why it may not be run again, or null. */
const whole = (test) => test.text.startsWith("test timed out after ") && test.name.endsWith(path.basename(test.file));
function refusal(test) {
  if (test.file && fs.existsSync(test.file) && whole(test)) return null;
  if (!test.file || !fs.existsSync(test.file) || test.name.endsWith(path.basename(test.file))) return "it is no test of a file";
  return final.exec(test.text) ? `it says "${final.exec(test.text)[0]}"` : null;
}

function passes(test) {
  if (whole(test)) return spawnSync(process.execPath, ["--test", test.file], { timeout: 600_000 }).status === 0;
  const exactly = `^${test.name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")}$`;
  const { status, stdout } = spawnSync(process.execPath,
    ["--test", "--test-reporter=tap", `--test-name-pattern=${exactly}`, test.file], { encoding: "utf8", timeout: 300_000 });
  const ran = stdout.split("\n").some((line) => /^ *ok \d+ /.test(line) && !line.includes("# SKIP") && line.includes(test.name.slice(0, 20)));
  return status === 0 && ran;
}

if (lines.length === failed.length) {
  console.log("the run did not come to its end");
  process.exit(1);
}
if (failed.length === 0) process.exit(1); // what failed is not a test
if (failed.length > LIMIT) {
  console.log(`${failed.length} tests failed: none is run again`);
  process.exit(1);
}
let bad = 0;
for (const test of failed) {
  const why = refusal(test);
  const steady = !why && Array.from({ length: TIMES }).every(() => passes(test));
  if (!steady) bad++;
  console.log(steady ? `UNSTEADY: "${test.name}" (${test.file}) failed once and passed ${TIMES} times when it was run again`
    : `"${test.name}" (${test.file}) ${why ? `is not run again: ${why}` : "fails again"}`);
}
process.exit(bad ? 1 : 0);
