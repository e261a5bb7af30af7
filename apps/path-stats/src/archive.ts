// A day of detail rows moves from D1 to R2.
//
//   writing   ──►  verified  ──►  deleting  ──►  done          the state stands in KV: archive:YYYY-MM-DD
//
// R1  Memory is constant: rows are read in pages, written as a stream, and a part is the most that is held.
// R2  Nothing is deleted before the archive was read back whole and its rows counted and compared.
// R3  It may stop anywhere and be called again: what was being written is written anew, what was verified goes on deleting.
// R4  Only rows that were there when writing began are written and deleted: later ones have larger row numbers and wait for
//     the next call, which makes a second file.
import { parquetReadObjects } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { databases, type Env } from "./env";

export interface ArchiveState {
  date: string;
  phase: "writing" | "verified" | "deleting" | "done" | "failed";
  key: string;
  format: "jsonl" | "parquet";
  rows: number;
  bytes: number;
  /** The largest row number of each database that belongs to it. */
  upTo: number[];
  deleted: number;
  startedAt: number;
  endedAt: number | null;
  error: string | null;
}

interface Row {
  row: number;
  id: string;
  ts: number;
  path: string;
  method: string | null;
  status: number | null;
  ms: number | null;
  ip_hash: string | null;
  agent: string | null;
  country: string | null;
  request_id: string | null;
}

const PAGE = 1_000;
const DELETE_AT_ONCE = 5_000;
const PART_BYTES = 5 * 1024 * 1024;
const BYTES_PER_ROW = 60; // compressed, for the estimate

export const stateKey = (date: string): string => `archive:${date}`;
export const readState = (env: Env, date: string): Promise<ArchiveState | null> => env.KV.get<ArchiveState>(stateKey(date), "json");

async function keep(env: Env, state: ArchiveState): Promise<void> {
  await env.KV.put(stateKey(state.date), JSON.stringify(state));
}

/** Pages of a day, one database after the other. */
async function* pages(env: Env, state: ArchiveState): AsyncGenerator<Row[]> {
  for (const [n, db] of databases(env).entries()) {
    const page = db.prepare("SELECT row, id, ts, path, method, status, ms, ip_hash, agent, country, request_id FROM traffic_events WHERE event_date = ? AND row > ? AND row <= ? ORDER BY row LIMIT ?");
    for (let last = 0; ; ) {
      const { results } = await page.bind(state.date, last, state.upTo[n], PAGE).all<Row>();
      if (results.length === 0) break;
      yield results;
      last = results[results.length - 1].row;
    }
  }
}

/** What two readings of the same rows have in common, in any order. */
class Tally {
  rows = 0;
  private sum = 0;
  add(id: string): void {
    this.rows++;
    for (let i = 0; i < id.length; i++) this.sum = (this.sum + Math.imul(id.charCodeAt(i), 2 * i + 1) * 31) >>> 0;
  }
  equals(other: Tally): boolean {
    return this.rows === other.rows && this.sum === other.sum;
  }
}

// --- writing -------------------------------------------------------------------------------------------

function jsonLines(env: Env, state: ArchiveState, tally: Tally): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const source = pages(env, state);
  const lines = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await source.next();
      if (done) return controller.close();
      let text = "";
      for (const { row: _, ...event } of value) {
        tally.add(event.id);
        text += `${JSON.stringify(event)}\n`;
      }
      controller.enqueue(encoder.encode(text));
    },
  });
  return lines.pipeThrough(new CompressionStream("gzip"));
}

const TEXT = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" } as const;
const PARQUET_COLUMNS = {
  id: { ...TEXT, repetition_type: "REQUIRED" },
  ts: { type: "INT64", repetition_type: "REQUIRED" },
  path: { ...TEXT, repetition_type: "REQUIRED" },
  method: TEXT,
  status: { type: "INT32", repetition_type: "OPTIONAL" },
  ms: { type: "DOUBLE", repetition_type: "OPTIONAL" },
  ip_hash: TEXT,
  agent: TEXT,
  country: TEXT,
  request_id: TEXT,
} as const;
const COLUMN_NAMES = Object.keys(PARQUET_COLUMNS) as (keyof typeof PARQUET_COLUMNS)[];

/** Parquet with a row group per page. What the writer has ready leaves it after each. */
function parquet(env: Env, state: ArchiveState, tally: Tally): ReadableStream<Uint8Array> {
  const source = pages(env, state);
  const ready = new ByteWriter();
  const take = (): Uint8Array => {
    const bytes = ready.getBytes().slice();
    ready.index = 0;
    return bytes;
  };
  const schema = [{ name: "root", num_children: COLUMN_NAMES.length }, ...COLUMN_NAMES.map((name) => ({ name, ...PARQUET_COLUMNS[name] }))];
  const writer = new ParquetWriter({ writer: ready, schema });
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value: rows, done } = await source.next();
      if (done) {
        writer.finish();
        controller.enqueue(take());
        return controller.close();
      }
      for (const row of rows) tally.add(row.id);
      writer.write({ columnData: COLUMN_NAMES.map((name) => ({ name, data: rows.map((row) => (name === "ts" ? BigInt(row.ts) : row[name])) })), rowGroupSize: PAGE });
      controller.enqueue(take());
    },
  });
}

/** Cuts a stream into parts of the same size; only the last is smaller. Each takes the place of the one before. */
async function* equalParts(stream: ReadableStream<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  const part = new Uint8Array(size);
  let used = 0;
  for await (let bytes of stream) {
    while (bytes.length) {
      const take = Math.min(bytes.length, size - used);
      part.set(bytes.subarray(0, take), used);
      used += take;
      bytes = bytes.subarray(take);
      if (used === size) {
        yield part;
        used = 0;
      }
    }
  }
  if (used) yield part.subarray(0, used);
}

async function upload(env: Env, state: ArchiveState, stream: ReadableStream<Uint8Array>, estimate: number): Promise<number> {
  const options = { httpMetadata: { contentType: state.format === "jsonl" ? "application/gzip" : "application/vnd.apache.parquet" }, customMetadata: { date: state.date } };
  if (estimate < Number(env.MULTIPART_ABOVE_BYTES)) return (await env.ARCHIVE.put(state.key, stream, options))!.size;
  const multipart = await env.ARCHIVE.createMultipartUpload(state.key, options);
  try {
    const parts: R2UploadedPart[] = [];
    for await (const part of equalParts(stream, PART_BYTES)) parts.push(await multipart.uploadPart(parts.length + 1, part));
    return (await multipart.complete(parts)).size;
  } catch (error) {
    await multipart.abort();
    throw error;
  }
}

// --- verifying -----------------------------------------------------------------------------------------

async function readBack(env: Env, state: ArchiveState): Promise<Tally> {
  const tally = new Tally();
  const object = await env.ARCHIVE.get(state.key);
  if (!object) throw new Error(`${state.key} is not in the archive`);
  if (state.format === "parquet") {
    // Column data is read group by group through ranges, so the file is never held.
    await object.body.cancel();
    const slice = async (start: number, end?: number): Promise<ArrayBuffer> => (await env.ARCHIVE.get(state.key, { range: { offset: start, length: (end ?? object.size) - start } }))!.arrayBuffer();
    for (let at = 0; at < state.rows; at += PAGE)
      for (const row of await parquetReadObjects({ file: { byteLength: object.size, slice }, columns: ["id"], rowStart: at, rowEnd: Math.min(at + PAGE, state.rows) })) tally.add(row.id as string);
    return tally;
  }
  let rest = "";
  for await (const text of object.body.pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) tally.add(JSON.parse(line).id);
  }
  if (rest) throw new Error(`${state.key} ends in the middle of a line`);
  return tally;
}

// --- the whole way -------------------------------------------------------------------------------------

async function begin(env: Env, date: string): Promise<ArchiveState | null> {
  const counts = await Promise.all(databases(env).map((db) => db.prepare("SELECT count(*) AS rows, coalesce(max(row), 0) AS last FROM traffic_events WHERE event_date = ?").bind(date).first<{ rows: number; last: number }>()));
  const rows = counts.reduce((sum, count) => sum + count!.rows, 0);
  if (rows === 0) return null;
  const format = env.ARCHIVE_FORMAT;
  const base = `events-archive/${date.slice(0, 4)}/${date.slice(5, 7)}/${date}`;
  const suffix = format === "jsonl" ? ".jsonl.gz" : ".parquet";
  let key = base + suffix;
  for (let n = 2; await env.ARCHIVE.head(key); n++) key = `${base}-${n}${suffix}`;
  return { date, phase: "writing", key, format, rows, bytes: 0, upTo: counts.map((count) => count!.last), deleted: 0, startedAt: Date.now(), endedAt: null, error: null };
}

async function writeAndVerify(env: Env, state: ArchiveState): Promise<void> {
  const written = new Tally();
  const stream = state.format === "jsonl" ? jsonLines(env, state, written) : parquet(env, state, written);
  state.bytes = await upload(env, state, stream, state.rows * BYTES_PER_ROW);
  state.rows = written.rows;
  const found = await readBack(env, state);
  if (!found.equals(written)) {
    await env.ARCHIVE.delete(state.key);
    throw new Error(`${state.key} held ${found.rows} rows where ${written.rows} were written`);
  }
  state.phase = "verified";
  await keep(env, state);
}

async function deleteRows(env: Env, state: ArchiveState): Promise<void> {
  state.phase = "deleting";
  for (const [n, db] of databases(env).entries()) {
    const some = db.prepare("DELETE FROM traffic_events WHERE row IN (SELECT row FROM traffic_events WHERE event_date = ? AND row <= ? ORDER BY row LIMIT ?)");
    for (;;) {
      const { meta } = await some.bind(state.date, state.upTo[n], DELETE_AT_ONCE).run();
      state.deleted += meta.changes;
      if (meta.changes < DELETE_AT_ONCE) break;
      await keep(env, state);
    }
  }
}

/** Archives a day, or goes on where it stopped. Null if there is nothing of that day. */
export async function archiveDay(env: Env, date: string): Promise<ArchiveState | null> {
  const before = await readState(env, date);
  const goOn = before?.phase === "verified" || before?.phase === "deleting";
  // A half-written file belongs to nobody: the next one takes its name.
  if (before && !goOn && before.phase !== "done") await env.ARCHIVE.delete(before.key);
  const state = goOn ? before : await begin(env, date);
  if (!state) return before;
  try {
    await keep(env, state);
    if (state.phase === "writing") await writeAndVerify(env, state);
    await deleteRows(env, state);
    Object.assign(state, { phase: "done", endedAt: Date.now() });
  } catch (error) {
    // What was verified stays so: the next call goes on deleting.
    if (state.phase === "writing") state.phase = "failed";
    state.error = (error as Error).message;
    await keep(env, state);
    throw error;
  }
  await keep(env, state);
  return state;
}

/** Every day that is older than the detail rows are to be kept. */
export async function daysToArchive(env: Env, today: string): Promise<string[]> {
  const limit = new Date(Date.parse(today) - Number(env.DETAIL_DAYS) * 86_400_000).toISOString().slice(0, 10);
  const found = await Promise.all(databases(env).map((db) => db.prepare("SELECT DISTINCT event_date AS date FROM traffic_events WHERE event_date < ? ORDER BY 1").bind(limit).all<{ date: string }>()));
  return [...new Set(found.flatMap(({ results }) => results.map(({ date }) => date)))].sort();
}

export async function listArchives(env: Env): Promise<ArchiveState[]> {
  const { keys } = await env.KV.list({ prefix: "archive:" });
  const states = await Promise.all(keys.slice(-100).map(({ name }) => env.KV.get<ArchiveState>(name, "json")));
  return states.filter((state) => state !== null).reverse();
}
