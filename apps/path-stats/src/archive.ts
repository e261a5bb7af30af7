// A day of detail rows moves from D1 to R2. One file per day: `events-archive/YYYY/MM/YYYY-MM-DD.jsonl.gz`; what it is called
// and holds stands in KV, `archive:metadata:YYYY-MM-DD`, for a year.
//
//   pending ──► writing ──► deleting ──► done            the state is the archiver object's: src/archiver.ts
//
// R1  Memory is constant: rows are read in pages, written as a stream, and a part is the most that is held.
// R2  A row is deleted only if it was read back from the archive: the ids to delete come from there, after all of it was compared with
//     what was written and its name was put into KV.
// R3  It may stop anywhere and be called again: what was being written is written anew, what was verified goes on deleting.
// R4  Archiving a day again (after a replay, or for rows that came late) writes a file with the rows of both, each once, and
//     the old file goes when the new one is the day's.
import { databases, type Env } from "./env";
import { DAY, dateOf, type EventRow } from "./event";
import { encode, type Format, httpMetadata, merged, type Pages, readFile } from "./files";

/** As in KV. */
export interface ArchiveMetadata {
  path: string;
  recordCount: number;
  archivedAt: string;
  format: Format;
  size: number;
}

const PAGE = 1_000;
const DELETE_AT_ONCE = 5_000;
const DELETE_PAUSE_MS = 100;
const MIN_PART_SIZE = 5 * 1024 * 1024;
const METADATA_PREFIX = "archive:metadata:";
const METADATA_TTL = 365 * 86_400;

export const readMetadata = (env: Env, date: string): Promise<ArchiveMetadata | null> => env.KV.get<ArchiveMetadata>(METADATA_PREFIX + date, "json");
const keepMetadata = (env: Env, date: string, metadata: ArchiveMetadata): Promise<void> => env.KV.put(METADATA_PREFIX + date, JSON.stringify(metadata), { expirationTtl: METADATA_TTL });

export async function listArchives(env: Env): Promise<({ date: string } & ArchiveMetadata)[]> {
  const found: ({ date: string } & ArchiveMetadata)[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await env.KV.list({ prefix: METADATA_PREFIX, cursor });
    const values = await Promise.all(page.keys.map(({ name }) => env.KV.get<ArchiveMetadata>(name, "json")));
    values.forEach((value, n) => value && found.push({ date: page.keys[n].name.slice(METADATA_PREFIX.length), ...value }));
    if (page.list_complete) return found;
    cursor = page.cursor;
  }
}

// --- reading -------------------------------------------------------------------------------------------

/** The detail rows of one database between two times, in the order of their ids: which begin with the time. */
async function* databasePages(db: D1Database, from: number, to: number): Pages {
  const statement = db.prepare("SELECT * FROM traffic_events WHERE id > ? AND id < ? ORDER BY id LIMIT ?");
  for (let last = String(from); ; ) {
    const { results } = await statement.bind(last, String(to), PAGE).all<EventRow>();
    if (results.length === 0) return;
    yield results;
    last = results[results.length - 1].id;
  }
}

/** Everything of a day, from the archive and D1 together. */
export function dayPages(env: Env, date: string, archive: ArchiveMetadata | null): Pages {
  const from = Date.parse(date);
  const sources = databases(env).map((db) => databasePages(db, from, from + DAY));
  return merged(archive ? [readFile(env.R2_BUCKET, archive.path), ...sources] : sources);
}

// --- writing -------------------------------------------------------------------------------------------

/** What two readings of the same rows have in common: how many, and what is in them. */
class Tally {
  rows = 0;
  private sum = 0;
  add(row: EventRow): void {
    this.rows++;
    const text = `${row.id} ${row.path} ${row.status} ${row.response_time} ${row.client_ip_hash} ${row.method} ${row.country} ${row.user_agent}`;
    let hash = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.sum = (this.sum + (hash >>> 0)) % 2 ** 48;
  }
  equals(other: Tally): boolean {
    return this.rows === other.rows && this.sum === other.sum;
  }
}

async function* tallied(pages: Pages, tally: Tally): Pages {
  for await (const page of pages) {
    for (const row of page) tally.add(row);
    yield page;
  }
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

type Encoded = () => ReadableStream<Uint8Array>;

/**
 * One put() is told how long the file is before its first byte, so it is encoded twice: to measure it, and to send it.
 * Rows that come in between make it fail, and it is done again.
 */
async function archiveWithSinglePut(env: Env, key: string, encoded: Encoded, options: R2PutOptions): Promise<number> {
  let length = 0;
  for await (const bytes of encoded()) length += bytes.length;
  const { readable, writable } = new FixedLengthStream(length);
  const [object] = await Promise.all([env.R2_BUCKET.put(key, readable, options), encoded().pipeTo(writable)]);
  return object!.size;
}

async function archiveWithMultipart(env: Env, key: string, encoded: Encoded, options: R2MultipartOptions): Promise<number> {
  const multipart = await env.R2_BUCKET.createMultipartUpload(key, options);
  try {
    const parts: R2UploadedPart[] = [];
    for await (const part of equalParts(encoded(), MIN_PART_SIZE)) parts.push(await multipart.uploadPart(parts.length + 1, part));
    return (await multipart.complete(parts)).size;
  } catch (error) {
    await multipart.abort();
    throw error;
  }
}

/** Writes rows to a file of their own and reads it back. `estimate` rows decide how it goes up. */
async function writeFile(env: Env, date: string, key: string, format: Format, pages: () => Pages, estimate: number): Promise<ArchiveMetadata> {
  let written = new Tally();
  const found = new Tally();
  const archivedAt = new Date().toISOString();
  const options = { httpMetadata: httpMetadata(format), customMetadata: { recordCount: String(estimate), archiveDate: archivedAt, sourceDate: date } };
  const estimatedSizeGzipMB = (estimate * 150 * 0.25) / (1024 * 1024);
  const upload = estimatedSizeGzipMB < Number(env.MULTIPART_ABOVE_MB) ? archiveWithSinglePut : archiveWithMultipart;
  const size = await upload(env, key, () => encode(format, tallied(pages(), (written = new Tally()))), options);
  for await (const page of readFile(env.R2_BUCKET, key)) for (const row of page) found.add(row);
  if (!found.equals(written)) {
    await env.R2_BUCKET.delete(key);
    throw new Error(`${key}: ${written.rows} rows were written and ${found.rows} read back, not the same ones`);
  }
  return { path: key, recordCount: written.rows, archivedAt, format, size };
}

/** A name that no file has: the day's, or the day's with a number. */
async function freeKey(env: Env, date: string, format: Format): Promise<string> {
  const base = `events-archive/${date.slice(0, 4)}/${date.slice(5, 7)}/${date}`;
  for (let n = 1; ; n++) {
    const key = `${base}${n > 1 ? `-${n}` : ""}.${format}`;
    if (!(await env.R2_BUCKET.head(key))) return key;
  }
}

// --- the steps of the archiver -------------------------------------------------------------------------

export async function detailCount(env: Env, date: string): Promise<number> {
  const counts = await Promise.all(databases(env).map((db) => db.prepare("SELECT count(*) AS n FROM traffic_events WHERE event_date = ?").bind(date).first<number>("n")));
  return counts.reduce<number>((sum, n) => sum + (n ?? 0), 0);
}

/** Where a day's next file goes. It is remembered before anything is written, so that what was half done can be removed. */
export const nextKey = (env: Env, date: string): Promise<string> => freeKey(env, date, env.ARCHIVE_FORMAT);

/** Writes the day's file from what is archived and what is in D1, and makes it the day's. The file it replaces is the caller's to delete. */
export async function writeDay(env: Env, date: string, key: string, rows: number): Promise<ArchiveMetadata> {
  const before = await readMetadata(env, date);
  const format: Format = key.endsWith(".parquet") ? "parquet" : "jsonl.gz";
  const metadata = await writeFile(env, date, key, format, () => dayPages(env, date, before), rows + (before?.recordCount ?? 0));
  await keepMetadata(env, date, metadata);
  return metadata;
}

/** Deletes from D1 what is in the archive, some thousand rows at a time. */
export async function deleteDay(env: Env, metadata: ArchiveMetadata): Promise<number> {
  let deleted = 0, ids: string[] = [];
  const some = async (): Promise<void> => {
    for (const db of databases(env)) {
      const statement = db.prepare(`DELETE FROM traffic_events WHERE rowid IN (SELECT rowid FROM traffic_events WHERE id IN (SELECT value FROM json_each(?)) LIMIT ${DELETE_AT_ONCE})`);
      deleted += (await statement.bind(JSON.stringify(ids)).run()).meta.changes;
    }
    ids = [];
  };
  for await (const page of readFile(env.R2_BUCKET, metadata.path)) {
    for (const row of page) {
      if (ids.push(row.id) < DELETE_AT_ONCE) continue;
      await some();
      await scheduler.wait(DELETE_PAUSE_MS); // others want the database too
    }
  }
  if (ids.length) await some();
  return deleted;
}

/** Every day that is older than the detail rows are to be kept: on 10-14, with three days, 10-11 and before. */
export async function daysToArchive(env: Env, today: string): Promise<string[]> {
  const limit = dateOf(Date.parse(today) - Number(env.DETAIL_DAYS) * DAY);
  const found = await Promise.all(databases(env).map((db) => db.prepare("SELECT DISTINCT event_date AS date FROM traffic_events WHERE event_date <= ? ORDER BY 1").bind(limit).all<{ date: string }>()));
  return [...new Set(found.flatMap(({ results }) => results.map(({ date }) => date)))].sort();
}

export async function oldestDay(env: Env): Promise<string | null> {
  const found = await Promise.all(databases(env).map((db) => db.prepare("SELECT min(event_date) AS date FROM traffic_events").first<string | null>("date")));
  return found.filter((date) => date !== null).sort()[0] ?? null;
}

/** What the life of an archive asks for on a day: JSON lines become Parquet after some months, and after a year it goes. */
export async function ageArchive(env: Env, date: string, archive: ArchiveMetadata, today: string): Promise<"converted" | "removed" | null> {
  const days = (Date.parse(today) - Date.parse(date)) / DAY;
  if (Number(env.ARCHIVE_DAYS) && days > Number(env.ARCHIVE_DAYS)) {
    await env.R2_BUCKET.delete(archive.path);
    await env.KV.delete(METADATA_PREFIX + date);
    return "removed";
  }
  if (archive.format !== "jsonl.gz" || days <= Number(env.PARQUET_AFTER_DAYS)) return null;
  const key = archive.path.replace(/jsonl\.gz$/, "parquet"); // what a run that was cut off left there is written over
  const metadata = await writeFile(env, date, key, "parquet", () => readFile(env.R2_BUCKET, archive.path), archive.recordCount);
  await keepMetadata(env, date, { ...metadata, archivedAt: archive.archivedAt });
  await env.R2_BUCKET.delete(archive.path);
  return "converted";
}
