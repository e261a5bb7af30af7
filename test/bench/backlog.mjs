// Queues from end to end, through a worker that sends and consumes: one that is empty, one with a backlog.
//     node test/bench/backlog.mjs [MESSAGES]        ten million without an argument
// The two take turns, and sends and deliveries are measured apart, so that neither takes time from another. Medians; the processor
// time of the server per message is what compares best on a machine that has other work.
import http from "node:http";
import path from "node:path";
import { format, get, median, root, sleep, startCairn, usage, wrk } from "./lib.mjs";

const backlog = Number(process.argv[2] ?? 10_000_000);
const repeats = Number(process.env.BENCH_REPEATS || 5);
const BATCH = 100; // of a send

const server = await startCairn(path.join(root, "test/bench/workers/wrangler.backlog.jsonc"));
const control = (method, name, body) => new Promise((resolve, reject) => {
  const request = http.request({ socketPath: path.join(server.dir, "data/control.sock"), method, path: `/api/queues/${name}`, headers: { "content-type": "application/json" } }, (response) => {
    let text = "";
    response.on("data", (part) => (text += part)).on("end", () => resolve(JSON.parse(text)));
  });
  request.on("error", reject).end(body && JSON.stringify(body));
});
const pause = (name, paused) => control("PATCH", name, { settings: { delivery_paused: paused } });
const waiting = async (name) => (await control("GET", name)).result.backlog_count;
const seen = async (name) => JSON.parse((await get(`${server.base}/seen`)).body)[name];

async function send(name, seconds) {
  const { rate, cpuPerRequest } = await wrk(server, `/${name}`, { seconds, connections: 8 });
  return { rate: rate * BATCH, cpu: cpuPerRequest / BATCH };
}
/** Deliveries, until that many are done. */
async function deliver(name, count) {
  const [from, began, before] = [await seen(name), performance.now(), usage(server.pid)];
  await pause(name, false);
  let done = 0;
  while (done < count) {
    await sleep(20);
    done = (await seen(name)) - from;
  }
  const after = usage(server.pid);
  const elapsed = (performance.now() - began) / 1000;
  await pause(name, true);
  return { rate: done / elapsed, cpu: ((after.cpu - before.cpu) * 1e6) / done };
}

try {
  for (const name of ["empty", "full"]) {
    await get(`${server.base}/${name}`); // it comes into being
    await pause(name, true);
  }
  while ((await waiting("full")) < backlog) await send("full", 4);
  console.log(`a queue with nothing and one with ${format(await waiting("full"))} messages waiting, through workers; messages/s, and us of processor for each`);
  const figures = {};
  for (let i = -1; i < repeats; i++) {
    for (const name of ["empty", "full"]) {
      const before = await waiting(name);
      const sent = await send(name, 1);
      const count = (await waiting(name)) - before;
      const delivered = await deliver(name, count);
      if (i < 0) continue; // it warms up
      for (const [what, { rate, cpu }] of Object.entries({ send: sent, deliver: delivered })) {
        const of = (figures[what] ??= { empty: { rate: [], cpu: [] }, full: { rate: [], cpu: [] } })[name];
        of.rate.push(rate);
        of.cpu.push(cpu);
      }
    }
  }
  for (const [what, { empty, full }] of Object.entries(figures)) {
    const [ra, rb, ca, cb] = [empty.rate, full.rate, empty.cpu, full.cpu].map(median);
    console.log(`  ${what.padEnd(8)} ${format(ra)} and ${format(rb)} (${(rb / ra).toFixed(2)}); ${ca.toFixed(2)} and ${cb.toFixed(2)} (${(cb / ca).toFixed(2)})`);
  }
} finally {
  await server.stop();
}
