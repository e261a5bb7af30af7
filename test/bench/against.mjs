// `make bench-against BASE=commit`: this tree's server beside the one of another commit. Both run at the same time,
// are loaded in turn, many short rounds, and what counts is the server's CPU time for a request: it hardly depends on
// what else the machine does, and what does disturb it disturbs both. The base is built below build/against.
//
// BENCH_ONLY=hello,do-sql chooses rows, BENCH_ROUNDS and BENCH_SECONDS how many rounds of which length.
import os from "node:os";
import path from "node:path";
import { build, configOf, percent, probes, rows, setups } from "./base.mjs";
import { format, get, median, root, sleep, startCairn, usage, wrk } from "./lib.mjs";

const [base = "HEAD~1"] = process.argv.slice(2);
const rounds = Number(process.env.BENCH_ROUNDS || 9);
const seconds = Number(process.env.BENCH_SECONDS || 2);

/** CPU time for a request of `row`, with all that it leaves to be done. */
async function cost(server, row, length) {
  const began = usage(server.pid).cpu;
  const { requests } = await wrk(server, row.path, { seconds: length, connections: row.connections, lua: row.lua, luaArgs: row.luaArgs });
  for (let last, now; row.until && (now = (await get(server.base + row.until)).body) !== last; last = now) await sleep(300);
  return ((usage(server.pid).cpu - began) * 1e6) / requests;
}

const before = build(base);
const binaries = [["before", before.binary], ["after", path.join(root, "build/cairn")]];
console.log(`before: ${before.id}; ${rounds} rounds of ${seconds} s; load average ${os.loadavg()[0].toFixed(2)} at the start`);
console.log(`${"us CPU per request".padEnd(20)}${"before".padStart(10)}${"after".padStart(10)}${"change".padStart(10)}${"least".padStart(10)}${"least".padStart(10)}${"change".padStart(10)}`);

for (const project of new Set(rows.map((row) => row.project))) {
  const servers = [];
  try {
    for (const [name, binary] of binaries) {
      servers.push({ name, server: await startCairn(configOf(project), { binary, probe: probes[project] }) });
    }
    for (const { server } of servers) if (setups[project]) await get(server.base + setups[project]);
    for (const { server } of servers) console.log(`${`  idle (${project})`.padEnd(20)} ${(usage(server.pid).rss / 1e6).toFixed(1)} MB, first answer after ${server.startMs.toFixed(0)} ms`);
    for (const row of rows.filter((r) => r.project === project)) {
      const costs = { before: [], after: [] };
      for (let round = -1; round < rounds; round++) {
        for (const { name, server } of round % 2 ? servers : [...servers].reverse()) {
          const luaArgs = row.fresh ? [`${row.luaArgs[0]}${round}-`, ...row.luaArgs.slice(1)] : row.luaArgs;
          const each = await cost(server, { ...row, luaArgs }, round < 0 ? 3 : seconds);
          if (round >= 0) costs[name].push(each);
          await sleep(50);
        }
      }
      const [then, now, least, leastNow] = [median(costs.before), median(costs.after), Math.min(...costs.before), Math.min(...costs.after)];
      console.log(`${row.name.padEnd(20)}${format(then).padStart(10)}${format(now).padStart(10)}${percent(now, then).padStart(10)}` +
        `${format(least).padStart(10)}${format(leastNow).padStart(10)}${percent(leastNow, least).padStart(10)}`);
    }
  } finally {
    for (const { server } of servers) await server.stop();
  }
}
