#!/usr/bin/env node
// Sends recorded events to the queue again: from a file of JSON lines, plain or gzipped, from a Parquet file (archives are both), or
// from the server's own archive of a day.
//
//     node tools/replay.mjs FILE | --date YYYY-MM-DD  --token TOKEN [--url http://path-stats.localhost:8787] [--rate 5000] [--verify]
//
// An event that was counted is not counted again, however long ago that was: its id is the same. --verify asks before it sends which of the
// events are counted and kept already, waits until the rest is, and fails if a day ends with more or fewer than that.
import { createReadStream } from "node:fs";
import { open, readFile, stat } from "node:fs/promises";
import readline from "node:readline";
import { parseArgs } from "node:util";
import { createGunzip } from "node:zlib";
import { decompress } from "fzstd";
import { parquetReadObjects } from "hyparquet";
import { Client } from "./client.mjs";

const BATCH = 100;
const IN_FLIGHT = 4;
const VERIFY_SECONDS = 600;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { url: { type: "string", default: "http://127.0.0.1:8787" }, token: { type: "string" }, rate: { type: "string", default: "5000" }, date: { type: "string" }, verify: { type: "boolean", default: false } },
});
const rate = Number(values.rate);
if (positionals.length + (values.date ? 1 : 0) !== 1 || !values.token || !(rate > 0)) {
  console.error("usage: replay.mjs FILE | --date YYYY-MM-DD --token TOKEN [--url URL] [--rate EVENTS_PER_SECOND] [--verify]");
  process.exit(2);
}
const client = new Client(values.url, values.token);

// --- where they come from ------------------------------------------------------------------------------

async function magic(file) {
  const handle = await open(file);
  const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
  await handle.close();
  return buffer;
}

let share = () => 0;

async function* parquetRows(file) {
  const bytes = await readFile(file);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  yield* await parquetReadObjects({ file: { byteLength: buffer.byteLength, slice: (start, end) => buffer.slice(start, end) }, compressors: { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) } });
}

async function* lines(input) {
  for await (const line of readline.createInterface({ input })) if (line.trim()) yield JSON.parse(line);
}

async function* fromFile(file) {
  const start = await magic(file);
  if (start.toString("latin1") === "PAR1") return yield* parquetRows(file);
  const raw = createReadStream(file);
  const { size } = await stat(file);
  share = () => raw.bytesRead / size;
  yield* lines(start[0] === 0x1f && start[1] === 0x8b ? raw.pipe(createGunzip()) : raw);
}

/** The archive of a day and what is in D1 of it. */
async function* fromServer(date) {
  const from = Date.parse(date);
  const response = await client.open("GET", `/paths/events/export?from=${from}&to=${from + 86_400_000}`);
  if (response.statusCode !== 200) throw new Error(`the server answered ${response.statusCode}`);
  yield* lines(response);
}

/** A row of the archive as the message it was; a message stays as it is. */
function eventOf(row) {
  if (row.version) return row;
  const { id, path, method, status, response_time, client_ip_hash, user_agent, country } = row;
  const known = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined));
  return { version: 1, ...known({ id, path, method, status, responseTime: response_time, clientIpHash: client_ip_hash }), timestamp: Number(row.timestamp), meta: known({ country, userAgent: user_agent }) };
}

// --- sending -------------------------------------------------------------------------------------------

const began = Date.now();
const days = new Map(); // date -> {ids, before, counted, kept}: the latter two are what the file adds
const flying = new Set();
let sent = 0, batch = [];

function progress(end = false) {
  if (!process.stderr.isTTY && !end) return;
  const done = end ? 1 : share(), filled = Math.round(30 * done);
  process.stderr.write(`\r[${"#".repeat(filled)}${".".repeat(30 - filled)}] ${(100 * done).toFixed(0)} %  ${sent.toLocaleString()} events, ${Math.round((1000 * sent) / Math.max(1, Date.now() - began)).toLocaleString()}/s${end ? "\n" : ""}`);
}

async function flush() {
  if (batch.length === 0) return;
  const events = batch;
  batch = [];
  while (flying.size >= IN_FLIGHT) await Promise.race(flying);
  const early = began + (1000 * sent) / rate - Date.now();
  if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
  const flight = (async () => {
    if (values.verify) await expect(events);
    await client.ask("POST", "/admin/events", { events });
  })().finally(() => flying.delete(flight));
  flying.add(flight);
  sent += events.length;
  progress();
}

const counts = (date) => client.ask("GET", `/admin/counts?date=${date}`);

/** Notes what a batch will add to its days. */
async function expect(events) {
  const { counted, kept } = await client.ask("POST", "/admin/events/known", { events });
  events.forEach((event, n) => {
    const day = days.get(dateOf(event));
    day.counted += counted.includes(n) ? 0 : 1;
    day.kept += kept.includes(n) ? 0 : 1;
  });
}

const dateOf = (event) => new Date(event.timestamp).toISOString().slice(0, 10);

for await (const row of values.date ? fromServer(values.date) : fromFile(positionals[0])) {
  const event = eventOf(row);
  const date = dateOf(event);
  if (!days.has(date)) days.set(date, { ids: new Set(), before: values.verify ? await counts(date) : null, counted: 0, kept: 0 });
  const { ids } = days.get(date);
  if (ids.has(event.id)) continue; // twice in the file
  ids.add(event.id);
  if (batch.push(event) === BATCH) await flush();
}
await flush();
await Promise.all(flying);
progress(true);
console.log(`${sent} events sent`);

// --- verifying -----------------------------------------------------------------------------------------

/** Duplicates are handled as late as the last of the queue: wait until nothing moves any more. */
async function settled(date) {
  for (let last = "", same = 0; same < 4; ) {
    const [now, { queue }] = [await counts(date), await client.ask("GET", "/paths/metrics")];
    const text = JSON.stringify([now.counted, now.events, queue.backlog]);
    same = text === last && queue.backlog === 0 ? same + 1 : 0;
    last = text;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  return counts(date);
}

if (values.verify) {
  for (const [date, { ids, before, counted, kept }] of days) {
    const wanted = { counted: before.counted + counted, events: before.events + kept };
    const deadline = Date.now() + VERIFY_SECONDS * 1000;
    for (let now; (now = await counts(date)).counted < wanted.counted || now.events < wanted.events; await new Promise((resolve) => setTimeout(resolve, 500))) {
      if (Date.now() < deadline) continue;
      console.error(`${date}: ${wanted.events} must be kept and ${wanted.counted} counted, but ${now.events} and ${now.counted} are`);
      process.exit(1);
    }
    const now = await settled(date);
    const text = `${date}: ${ids.size} in the file, ${now.events} kept, ${now.counted} counted (${counted} of them new)`;
    const live = date === dateOf({ timestamp: Date.now() }); // somebody else may add to today
    if (live ? now.counted < wanted.counted : now.counted !== wanted.counted || now.events !== wanted.events) {
      console.error(`${text}: should be ${wanted.events} and ${wanted.counted}`);
      process.exit(1);
    }
    console.log(text);
  }
}
client.close();
