// `make stress-libraries`: popular libraries at module level, shared between objects (test/stress/libraries/index.js), under
// reloads (SIGHUP) and kill -9. Every acknowledged write must be in its own object afterwards, and nothing in another.
//
//     node test/stress/libraries.mjs [--calls 900] [--lanes 1,2]
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "../integration/lib/server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const option = (name, otherwise) => (process.argv.includes(`--${name}`) ? process.argv[process.argv.indexOf(`--${name}`) + 1] : otherwise);
const CELLS = 8, CLIENTS = 24, ROUNDS = 3;
const RELOADED = /code was updated|was reset; its storage|no longer|shutting down|never be settled/;

const agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });
const get = (server, target) => new Promise((resolve, reject) => {
  const request = http.get(server.url + target, { agent, timeout: 30_000 }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (part) => { text += part; }).on("error", reject).on("end", () => resolve({ status: response.statusCode, text }));
  });
  request.on("error", reject).on("timeout", () => request.destroy(new Error("no answer")));
});

async function run(lanes, calls) {
  const faults = [], written = []; // {cell, op, way}
  let server = await serve(path.join(here, "libraries"), { lanes });
  const ways = JSON.parse((await get(server, "/ways")).text);
  for (let round = 0, next = 0; round < ROUNDS; round++) {
    const until = Math.floor((calls * (round + 1)) / ROUNDS);
    let reloading = false;
    const client = async () => {
      while (next < until) {
        const n = next++, way = ways[n % ways.length], cell = `c${(n * 7) % CELLS}`, op = `${cell} ${n}`;
        if (n === until - Math.floor(calls / ROUNDS / 2)) {
          reloading = true;
          server.signal("SIGHUP");
        }
        const { status, text } = await get(server, `/save/${cell}/${encodeURIComponent(way)}/${encodeURIComponent(op)}`);
        if (status === 200 && JSON.parse(text).op === op && JSON.parse(text).name === cell) written.push({ cell, op, way });
        else if (!(reloading && RELOADED.test(text))) faults.push(`${op} (${way}): ${status} ${text.slice(0, 200)}`);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    server.signal("SIGKILL");
    await server.exited;
    server = await serve(path.join(here, "libraries"), { lanes, data: server.data });
    for (let i = 0; i < CELLS; i++) {
      const cell = `c${i}`, { ops, pairs } = JSON.parse((await get(server, `/dump/${cell}`)).text);
      const there = new Set(ops), values = new Map(pairs);
      for (const { op, way } of written.filter((each) => each.cell === cell)) if (!there.has(op) || values.get(op) !== cell) faults.push(`${op} (${way}) was acknowledged and is lost`);
      for (const op of ops) if (!op.startsWith(`${cell} `)) faults.push(`${cell} has ${op}`);
    }
  }
  await server.stop();
  console.log(`libraries, ${lanes} lanes: ${ways.length} ways, ${calls} calls, ${written.length} acknowledged, ${ROUNDS} kills, ${faults.length} faults`);
  for (const text of faults.slice(0, 20)) console.log(`  ${text}`);
  return faults.length === 0;
}

let good = true;
for (const lanes of option("lanes", "1,2").split(",")) good = (await run(Number(lanes), Number(option("calls", 900)))) && good;
process.exit(good ? 0 : 1);
