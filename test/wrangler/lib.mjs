// Runs the real wrangler, as npm has it: `make test-wrangler` names it in WRANGLER.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { folder as empty } from "../integration/lib/cairn.mjs";

export const bin = process.env.WRANGLER;
assert.ok(bin && existsSync(bin), "WRANGLER names wrangler's program: make test-wrangler sets it");

/** A folder with these files that goes with the test. */
export function folder(t, files) {
  const dir = empty(t);
  write(dir, files);
  return dir;
}

export function write(dir, files) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), text);
  }
}

export const environment = (server, who, dir) => ({
  PATH: process.env.PATH, HOME: dir, CI: "1", NO_COLOR: "1", FORCE_COLOR: "0", WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_API_BASE_URL: server.api, CLOUDFLARE_API_TOKEN: who.token, CLOUDFLARE_ACCOUNT_ID: who.account,
});

/** Runs wrangler in the folder against the server: its output; rejects if it fails. */
export function wrangler(server, who, dir, args, { input, home = dir, timeout = 180_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [bin, ...args], { cwd: dir, timeout, maxBuffer: 1 << 24, env: environment(server, who, home) },
      (error, stdout, stderr) => (error ? reject(new Error(`wrangler ${args.join(" ")}: ${stdout}${stderr}`)) : resolve(stdout)));
    child.stdin.end(input ?? "");
  });
}
