// kill -9 with a ledger: nothing acknowledged is lost, nothing refused is there.
//
//     node test/load/kills.mjs [--rounds 1000] [--seed N] [--lanes 2]
//
// A round is a kill: the server is started, clients write (ledger/run.mjs, L1 to L4), and it is killed in the middle. Every
// few kills, once more while it recovers, and then all places are compared with the ledger.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { cairn, tempDir } from "../integration/lib/server.mjs";
import { Run, main } from "./ledger/run.mjs";

const KILLS_PER_CHECK = 10, KILLS_PER_STORE = 50; // a ledger that is compared grows with its store
const ANSWERS = [1, 5, 20, 60, 150]; // before a kill

class Kills extends Run {
  async kill() {
    await this.start(false);
    const answers = () => this.ledger.counts.acknowledged + this.ledger.counts.refused, end = answers() + this.choose(ANSWERS);
    const stop = this.clients();
    await this.server.untilTrue(() => answers() >= end, "answers");
    await this.server.kill();
    await stop();
  }

  /** Takes something away behind the ledger: it must be missed. */
  async plantLoss() {
    const kept = () => this.ledger.of("kv").filter(({ there }) => there);
    while (!kept().length) await this.write({ writes: true }); // of any kind but a socket: a short run may have had none
    const { id } = this.choose(kept());
    await this.ask(`/kv/delete/${id}/0`, { method: "POST" });
  }

  async compareAll(plant) {
    await this.start(false);
    if (plant) await this.plantLoss();
    await this.check();
    await this.server.stop();
    await this.checkQueue();
    execFileSync(cairn, ["check", this.data], { stdio: "pipe" });
  }

  async renew() {
    rmSync(this.data, { recursive: true, force: true });
    await this.setUp();
  }
}

/** {acknowledged, refused, cut, wrong}: counts, and what was wrong, in words. */
export async function runKills({ rounds, seed, lanes = 2, plant, say = () => {} }) {
  const run = new Kills(path.join(tempDir(), "data"), { seed, lanes });
  for (let round = 0; round < rounds && !run.wrong.length; round++) {
    if (round % KILLS_PER_STORE === 0) await run.renew();
    await run.kill();
    if (round % KILLS_PER_CHECK !== KILLS_PER_CHECK - 1 && round !== rounds - 1) continue;
    await run.compareAll(plant);
    say(round + 1, run.ledger.counts);
  }
  return { ...run.ledger.counts, wrong: run.wrong };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main("kills", "kills", { rounds: 1000 }, runKills);
