// Makes the fixture of test/integration/cli/import.test.mjs anew: `make record-import`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { simulate } from "./simulator.mjs";

const COUNT = 12;
const dir = mkdtempSync(path.join(os.tmpdir(), "cairn-record-"));
const fixture = path.resolve(import.meta.dirname, "fixture");
const expected = await simulate(path.resolve(process.env.WRANGLER), dir, COUNT);
writeFileSync(path.join(fixture, "expected.json"), JSON.stringify(expected) + "\n");
execFileSync("tar", ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=2026-01-01", "--exclude=*-shm", "--exclude=cache", "--use-compress-program=xz -9",
  "-cf", path.join(fixture, "state.tar.xz"), "-C", path.join(dir, ".wrangler/state"), "v3"]);
rmSync(dir, { recursive: true });
console.log(`recorded ${expected.objects.length} objects`);
