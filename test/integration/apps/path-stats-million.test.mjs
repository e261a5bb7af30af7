// A day of events through two kill -9, then to the archive and back, twice: the counts are exact each time. CAIRN_TEST_FULL=1
// (`make path-stats-million`) does it with a million and says what it took; otherwise with some thousand. EVENTS=… and STRATEGY=single are for figures.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test, { after, before, describe } from "node:test";
import { DAY, dateOf, daysAgo, event, PathStats, PATIENCE } from "./path-stats-lib.mjs";

const full = Boolean(process.env.CAIRN_TEST_FULL);
const total = Number(process.env.EVENTS ?? (full ? 1_000_000 : 6_000));
const patience = full ? 3_600_000 : Math.max(90_000, PATIENCE);
const strategy = process.env.STRATEGY ?? "objects";

/** Processor seconds of a process so far, and the most memory it had. */
function used(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
  return { seconds: (Number(fields[11]) + Number(fields[12])) / 100, peak: Math.round(peak) };
}

describe(`${total} events of path-stats`, () => {
  const stats = new PathStats({ STRATEGY: strategy });
  before(() => stats.start());
  after(() => stats.stop());
  const day = daysAgo(4);
  const say = (text) => full && console.log(text);
  const exactly = async (kept, counted) => assert.deepEqual(await stats.json(`/admin/counts?date=${dateOf(day)}&marks`).then((now) => [now.events, now.counted, now.marks]), [kept, counted, counted]);
  let processor = 0;
  const measured = async (what, work) => {
    const began = Date.now(), before = used(stats.server.pid);
    const result = await work();
    const now = used(stats.server.pid);
    say(`${what}: ${((Date.now() - began) / 1000).toFixed(1)} s, ${(now.seconds - before.seconds).toFixed(1)} s of processor time, at most ${now.peak} MB`);
    return result;
  };

  test(`${total} events, two kill -9: every one counts once`, async () => {
    const kills = new Set([Math.floor(total / 300), Math.floor((2 * total) / 300)]);
    const began = Date.now();
    let next = 0, acknowledged = 0, restarting = null;
    const sender = async () => {
      for (let b; (b = next++) < total / 100; ) {
        const events = Array.from({ length: 100 }, (_, i) => event(b * 100 + i, day, { every: DAY / total }));
        await stats.sendThroughKills(events, () => restarting);
        if (kills.delete(acknowledged++)) {
          processor += used(stats.server.pid).seconds;
          restarting = stats.server.kill().then(() => stats.start());
        }
        await restarting;
      }
    };
    await Promise.all(Array.from({ length: 6 }, sender));
    await stats.server.untilTrue(async () => {
      if (full) await new Promise((resolve) => setTimeout(resolve, 2000)); // counting a million rows is work too
      const now = await stats.counts(day);
      return now.events >= total && now.counted >= total;
    }, `${total} counted events`, patience);
    await exactly(total, total);
    processor += used(stats.server.pid).seconds;
    say(`${total} events sent and counted in ${Math.round((Date.now() - began) / 1000)} s; ${((1e6 * processor) / total).toFixed(0)} µs of processor time each`);
  });

  for (const round of [1, 2])
    test(`archived, deleted and replayed: the counts are the same, round ${round}`, async () => {
      const job = await measured("archive", () => stats.archive(dateOf(day), patience));
      assert.deepEqual([job.recordCount, job.deleted], [total, total]);
      await exactly(0, total);
      say(`archive: ${(job.size / total).toFixed(1)} bytes an event`);
      const replayed = await measured("replay", () => stats.tool("replay.mjs", "--date", dateOf(day), "--rate", "100000", "--verify"));
      assert.equal(replayed.status, 0, replayed.output);
      assert.match(replayed.output, new RegExp(`${total} in the file, ${total} kept, ${total} counted \\(0 of them new\\)`));
      await exactly(total, total);
    });

  test("and as Parquet, which is smaller", async () => {
    const before = (await stats.json("/paths/archives")).archives[0];
    await stats.restart({ vars: { ARCHIVE_FORMAT: "parquet" } });
    const job = await measured("archive as Parquet", () => stats.archive(dateOf(day), patience));
    assert.equal(job.recordCount, total);
    assert.ok(job.size < before.size);
    await exactly(0, total);
    say(`Parquet: ${(job.size / total).toFixed(1)} bytes an event; JSON lines: ${(before.size / total).toFixed(1)}`);
  });
});
