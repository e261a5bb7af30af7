// Rounds on a full disk with a ledger: no answer is wrong, neither way.
//
//     node test/load/full.mjs [--rounds 200] [--seed N] [--lanes 2]
//
// In each round clients write (ledger/run.mjs, L1 to L4) while the disk becomes full to the byte, or nearly so, and free
// again; then the server is killed, stopped or left running, and all places are compared with the ledger. No full disk
// makes a log fail, and with space again everything is written without a restart. The disk is a tmpfs: that needs root.
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, statfsSync, writeSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { cairn, tempDir } from "../integration/lib/server.mjs";
import { Run, main } from "./ledger/run.mjs";

const ROOM_MB = [0, 4, 20, 20, 40, 60]; // of the disk at the start of a round: for no other segment of the log, for one, two, or all that it wants
const LARGE_MB = 400; // of the disk while it is compared
const LEFT_BYTES = [0, 0, 4096, 20_000, 200_000, 2_000_000]; // when it is full

/** A tmpfs of its own, or null where there is no right to one. */
export function mountDisk() {
  const mount = path.join(tempDir(), "disk");
  mkdirSync(mount);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", mount], { stdio: "pipe" });
  } catch {
    return null;
  }
  process.prependListener("exit", () => execFileSync("umount", ["-l", mount]));
  return mount;
}

class Full extends Run {
  constructor(mount, options) {
    super(path.join(mount, "data"), options);
    this.mount = mount;
    this.filler = path.join(mount, "filler");
  }

  fill(left) {
    const { bavail, bsize } = statfsSync(this.mount);
    const fd = openSync(this.filler, "a");
    try {
      for (let rest = bavail * bsize - left; rest > 0; rest -= 1 << 20) writeSync(fd, Buffer.alloc(Math.min(rest, 1 << 20)));
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
    } finally {
      closeSync(fd);
    }
  }

  resize(megabytes) {
    execFileSync("mount", ["-o", `remount,size=${megabytes}m`, this.mount]);
  }

  free() {
    rmSync(this.filler, { force: true });
    this.resize(LARGE_MB);
  }

  /** What is there stays, without files that the log has made ahead: a start would remove them. */
  shrink() {
    const log = path.join(this.data, "log");
    for (const name of readdirSync(log)) if (name.startsWith("spare-")) rmSync(path.join(log, name));
    const { blocks, bfree, bsize } = statfsSync(this.mount);
    this.resize(Math.ceil(((blocks - bfree) * bsize) / 2 ** 20) + this.choose(ROOM_MB));
  }

  /** Begins with nothing to look at. */
  async renew() {
    rmSync(this.data, { recursive: true, force: true });
    this.free();
    await this.setUp();
  }

  async round() {
    this.shrink();
    await this.start(false);
    await this.writes(10);
    const stop = this.clients();
    this.fill(this.choose(LEFT_BYTES));
    const answers = () => this.ledger.counts.acknowledged + this.ledger.counts.refused, before = answers();
    await this.server.untilTrue(() => answers() >= before + 60, "answers on a full disk");
    const end = this.choose(["kill", "kill", "stop", "free"]);
    if (end === "kill") await this.server.kill(); // in the middle of writes
    if (end === "free") this.free();
    await stop();
    if (end === "stop") await this.server.stop();
    this.free();
    if (end !== "free") await this.start(false);
    await this.check();
    await this.server.stop();
  }
}

const ROUNDS_PER_DISK = 5;

/** {acknowledged, refused, cut, wrong}: counts, and what was wrong, in words. */
export async function runFull(mount, { rounds, seed, lanes = 2, say = () => {} }) {
  const run = new Full(mount, { seed, lanes });
  for (let round = 0; round < rounds && !run.wrong.length; round++) {
    if (round % ROUNDS_PER_DISK === 0) await run.renew();
    await run.round();
    if (round % ROUNDS_PER_DISK === ROUNDS_PER_DISK - 1 || round === rounds - 1) {
      await run.checkQueue();
      execFileSync(cairn, ["check", run.data], { stdio: "pipe" });
      say(round + 1, run.ledger.counts);
    }
  }
  return { ...run.ledger.counts, wrong: run.wrong };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mount = mountDisk();
  if (mount === null) throw new Error("a tmpfs cannot be mounted: this needs root");
  await main("full", "rounds on a full disk", { rounds: 200 }, (options) => runFull(mount, options));
}
