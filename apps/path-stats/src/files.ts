// Archive files: rows in the order of their ids, as gzipped JSON lines or as Parquet. Both are written and read as streams.
import zlib from "node:zlib";
import { parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { COLUMNS, type EventRow } from "./event";

export type Format = "jsonl.gz" | "parquet";
export type Pages = AsyncGenerator<EventRow[]>;

const LINES_AT_ONCE = 1_000;
const ROW_GROUP = 20_000;
const ZSTD_LEVEL = 9;

// --- JSON lines ----------------------------------------------------------------------------------------

function jsonLines(pages: Pages): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const lines = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await pages.next();
      if (done) return controller.close();
      controller.enqueue(encoder.encode(value.map((row) => `${JSON.stringify(row)}\n`).join("")));
    },
  });
  return lines.pipeThrough(new CompressionStream("gzip"));
}

async function* readJsonLines(body: ReadableStream<Uint8Array>): Pages {
  let rest = "", rows: EventRow[] = [];
  for await (const text of body.pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) rows.push(JSON.parse(line) as EventRow);
    if (rows.length >= LINES_AT_ONCE) {
      yield rows;
      rows = [];
    }
  }
  if (rest) throw new Error("the file ends in the middle of a line");
  if (rows.length) yield rows;
}

// --- Parquet -------------------------------------------------------------------------------------------

const TEXT = { type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type: "OPTIONAL" } as const;
const SCHEMA = {
  id: { ...TEXT, repetition_type: "REQUIRED" },
  path: { ...TEXT, repetition_type: "REQUIRED" },
  method: TEXT,
  status: { type: "INT32", repetition_type: "OPTIONAL" },
  response_time: { type: "DOUBLE", repetition_type: "OPTIONAL" },
  client_ip_hash: TEXT,
  timestamp: { type: "INT64", repetition_type: "REQUIRED" },
  event_date: { ...TEXT, repetition_type: "REQUIRED" },
  user_agent: TEXT,
  country: TEXT,
} as const;

const ZSTD = (bytes: Uint8Array): Uint8Array => zlib.zstdCompressSync(bytes, { params: { [zlib.constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL } });
const compressors = { ZSTD };
const decompressors = { ZSTD: (bytes: Uint8Array): Uint8Array => zlib.zstdDecompressSync(bytes) };

/** Pages of exactly ROW_GROUP rows, but for the last: a dictionary is worth more over many rows. */
async function* grouped(pages: Pages): Pages {
  let rows: EventRow[] = [];
  for await (const page of pages) {
    rows = rows.concat(page);
    while (rows.length >= ROW_GROUP) {
      yield rows.slice(0, ROW_GROUP);
      rows = rows.slice(ROW_GROUP);
    }
  }
  if (rows.length) yield rows;
}

/** A row group at a time: what the writer has ready leaves it after each. */
function parquet(pages: Pages): ReadableStream<Uint8Array> {
  const groups = grouped(pages);
  const ready = new ByteWriter();
  const take = (): Uint8Array => {
    const bytes = ready.getBytes().slice();
    ready.index = 0;
    return bytes;
  };
  const schema = [{ name: "root", num_children: COLUMNS.length }, ...COLUMNS.map((name) => ({ name, ...SCHEMA[name] }))];
  const writer = new ParquetWriter({ writer: ready, schema, codec: "ZSTD", compressors });
  const column = (name: (typeof COLUMNS)[number], rows: EventRow[]) =>
    name === "timestamp"
      ? { name, data: rows.map((row) => BigInt(row.timestamp)), encoding: "DELTA_BINARY_PACKED" as const }
      : { name, data: rows.map((row) => row[name]), ...(name === "id" ? { encoding: "DELTA_BYTE_ARRAY" as const } : {}) };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value: rows, done } = await groups.next();
      if (done) {
        writer.finish();
        controller.enqueue(take());
        return controller.close();
      }
      writer.write({ columnData: COLUMNS.map((name) => column(name, rows)), rowGroupSize: ROW_GROUP });
      controller.enqueue(take());
    },
  });
}

/** Row group by row group through ranges, so the file is never held. */
async function* readParquet(bucket: R2Bucket, key: string, size: number): Pages {
  const slice = async (start: number, end = size): Promise<ArrayBuffer> => (await bucket.get(key, { range: { offset: start, length: end - start } }))!.arrayBuffer();
  const file = { byteLength: size, slice };
  const metadata = await parquetMetadataAsync(file);
  let start = 0;
  for (const group of metadata.row_groups) {
    const end = start + Number(group.num_rows);
    const rows = await parquetReadObjects({ file, metadata, compressors: decompressors, rowStart: start, rowEnd: end });
    yield rows.map((row) => ({ ...row, timestamp: Number(row.timestamp) }) as EventRow);
    start = end;
  }
}

// --- both ----------------------------------------------------------------------------------------------

export const encode = (format: Format, pages: Pages): ReadableStream<Uint8Array> => (format === "parquet" ? parquet(pages) : jsonLines(pages));

export const httpMetadata = (format: Format): R2HTTPMetadata =>
  format === "parquet" ? { contentType: "application/vnd.apache.parquet" } : { contentType: "application/x-ndjson", contentEncoding: "gzip" };

export async function* readFile(bucket: R2Bucket, key: string): Pages {
  const object = await bucket.get(key);
  if (!object) throw new Error(`${key} is not in the archive`);
  if (!key.endsWith(".parquet")) return yield* readJsonLines(object.body);
  await object.body.cancel();
  yield* readParquet(bucket, key, object.size);
}

/**
 * Several sources of rows, each in the order of ids, as one; a row that more than one of them has comes once. At most a page
 * of each is held.
 */
export async function* merged(sources: Pages[]): Pages {
  const heads = await Promise.all(sources.map(async (pages) => ({ pages, rows: (await pages.next()).value ?? [], at: 0 })));
  let last = "";
  for (;;) {
    for (const head of heads) if (head.at === head.rows.length) Object.assign(head, { rows: (await head.pages.next()).value ?? [], at: 0 });
    const open = heads.filter((head) => head.rows.length);
    if (open.length === 0) return;
    const page: EventRow[] = [];
    // Until one of them is used up: then its next page must be seen before anything else goes out.
    while (open.every((head) => head.at < head.rows.length)) {
      let first = open[0];
      for (const head of open) if (head.rows[head.at].id < first.rows[first.at].id) first = head;
      const row = first.rows[first.at++];
      if (row.id !== last) page.push(row);
      last = row.id;
    }
    if (page.length) yield page;
  }
}
