// Detail rows between two times, from the archive and D1 together, as JSON lines.
import { dayPages, readMetadata } from "./archive";
import type { Env } from "./env";
import { DAY, dateOf, type EventRow } from "./event";

/** What says nothing about the visitor. */
const ANONYMOUS: (keyof EventRow)[] = ["id", "path", "method", "status", "response_time", "timestamp", "event_date"];

const pick = (row: EventRow): Partial<EventRow> => Object.fromEntries(ANONYMOUS.map((name) => [name, row[name]]));

export async function* exportLines(env: Env, from: number, to: number, anonymize: boolean): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for (let day = from - (from % DAY); day < to; day += DAY) {
    const date = dateOf(day);
    for await (const page of dayPages(env, date, await readMetadata(env, date))) {
      const wanted = page.filter((row) => row.timestamp >= from && row.timestamp < to);
      if (wanted.length) yield encoder.encode(wanted.map((row) => `${JSON.stringify(anonymize ? pick(row) : row)}\n`).join(""));
    }
  }
}
