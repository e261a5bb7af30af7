#!/usr/bin/env node
// Sends recorded events to the queue again, from JSON lines, plain or gzipped (an archive is one).
//
//     node tools/replay.mjs FILE --url http://127.0.0.1:8787 --token TOKEN [--rate 5000] [--verify]
//
// An event that was counted is not counted again within the hour: its id is the same. --verify waits until the counts of
// each day in the file are what the file says, and fails if they do not become so.
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import readline from "node:readline";
import { parseArgs } from "node:util";
import { createGunzip } from "node:zlib";

const BATCH = 100;
const IN_FLIGHT = 4;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: "string", default: "http://127.0.0.1:8787" }, token: { type: "string" }, rate: { type: "string", default: "5000" }, verify: { type: "boolean", default: false } },
});
const rate = Number(values.rate);
if (positionals.length !== 1 || !values.token || !(rate > 0)) {
  console.error("usage: replay.mjs FILE --token TOKEN [--url URL] [--rate EVENTS_PER_SECOND] [--verify]");
  process.exit(2);
}
const headers = { authorization: `Bearer ${values.token}`, "content-type": "application/json" };

async function isGzip(file) {
  const handle = await open(file);
  const { buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0);
  const { size } = await handle.stat();
  await handle.close();
  return [buffer[0] === 0x1f && buffer[1] === 0x8b, size];
}

async function send(events) {
  for (let attempt = 1; ; attempt++) {
    let problem;
    try {
      const answer = await fetch(`${values.url}/admin/events`, { method: "POST", headers, body: JSON.stringify({ events }) });
      if (answer.ok) return;
      problem = `${answer.status} ${await answer.text()}`;
      if (answer.status < 500 && answer.status !== 429) throw Object.assign(new Error(problem), { final: true });
    } catch (error) {
      if (error.final || attempt === 8) throw error;
      problem = error.message;
    }
    if (attempt === 8) throw new Error(problem);
    await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt));
  }
}

const [file] = positionals;
const [gzip, size] = await isGzip(file);
const raw = createReadStream(file);
const days = new Map();
const began = Date.now();
let sent = 0, batch = [];
const flying = new Set();

function progress(end = false) {
  if (!process.stderr.isTTY && !end) return;
  const share = size ? raw.bytesRead / size : 1, filled = Math.round(30 * share);
  process.stderr.write(`\r[${"#".repeat(filled)}${".".repeat(30 - filled)}] ${(100 * share).toFixed(0)} %  ${sent.toLocaleString()} events, ${Math.round((1000 * sent) / Math.max(1, Date.now() - began)).toLocaleString()}/s${end ? "\n" : ""}`);
}

async function flush() {
  if (batch.length === 0) return;
  const events = batch;
  batch = [];
  while (flying.size >= IN_FLIGHT) await Promise.race(flying);
  const early = began + (1000 * sent) / rate - Date.now();
  if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
  const flight = send(events).finally(() => flying.delete(flight));
  flying.add(flight);
  sent += events.length;
  progress();
}

for await (const line of readline.createInterface({ input: gzip ? raw.pipe(createGunzip()) : raw })) {
  if (!line) continue;
  const event = JSON.parse(line);
  for (const name of Object.keys(event)) if (event[name] === null) delete event[name];
  const day = new Date(event.ts).toISOString().slice(0, 10);
  days.set(day, (days.get(day) ?? new Set()).add(event.id));
  if (batch.push(event) === BATCH) await flush();
}
await flush();
await Promise.all(flying);
progress(true);
console.log(`${sent} events sent`);

if (values.verify) {
  for (const [day, ids] of days) {
    for (const deadline = Date.now() + 120_000; ; ) {
      const { events, counted } = await (await fetch(`${values.url}/admin/counts?date=${day}`, { headers })).json();
      if (events >= ids.size && counted >= ids.size) {
        console.log(`${day}: ${ids.size} in the file, ${events} kept, ${counted} counted`);
        break;
      }
      if (Date.now() > deadline) {
        console.error(`${day}: ${ids.size} in the file, but ${events} kept and ${counted} counted`);
        process.exit(1);
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
