// A million rows of D1 through gzip into R2 and back: complete, and with little memory.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { serve } from "../lib/server.mjs";
import { casesProject, run } from "./cases.mjs";

const ROWS = 1_000_000;
const MEMORY_MAX = 64 << 20; // over an idle server

const dir = casesProject(`
[[d1_databases]]
binding = "DB"
database_name = "big"
[[r2_buckets]]
binding = "R2"
bucket_name = "big"
`, `
  async fill(env, from, count) {
    await env.DB.exec("CREATE TABLE IF NOT EXISTS big(a INTEGER PRIMARY KEY, b TEXT)");
    await env.DB.prepare("WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 + ?2 - 1) INSERT INTO big SELECT i, 'row number ' || i FROM n").bind(from, count).run();
    return env.DB.prepare("SELECT count(*) AS n FROM big").first("n");
  },
  async export(env) {
    let last = 0, rows = 0;
    const encoder = new TextEncoder();
    const pages = new ReadableStream({ async pull(controller) {
      const page = await env.DB.prepare("SELECT a, b FROM big WHERE a > ? ORDER BY a LIMIT 1000").bind(last).raw();
      if (page.length === 0) return controller.close();
      last = page.at(-1)[0];
      rows += page.length;
      controller.enqueue(encoder.encode(page.map((row) => JSON.stringify(row)).join("\\n") + "\\n"));
    } });
    await env.R2.put("dump.gz", pages.pipeThrough(new CompressionStream("gzip")));
    return rows;
  },
  async count(env) {
    let lines = 0;
    const { body } = await env.R2.get("dump.gz");
    for await (const chunk of body.pipeThrough(new DecompressionStream("gzip"))) for (const byte of chunk) lines += byte === 10;
    return lines;
  },
`);

/** A bucket that changes its node during a put, as after the start of a cluster, refuses it with a sentence. */
async function exported(server) {
  for (;;) {
    try {
      return await run(server, "export");
    } catch (error) {
      if (!server.nodes || !/put it again \(10043\)/.test(error.message)) throw error;
    }
  }
}

test("D1-5 a million rows through gzip into R2", async (t) => {
  let server = await serve(dir);
  t.after(() => server.stop());
  for (let from = 1; from < ROWS; from += 100_000) await run(server, "fill", from, 100_000);
  await server.stop();
  server = await serve(dir, { data: server.data });
  const memory = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) * 1024;
  const idle = memory("VmRSS");
  assert.equal(await exported(server), ROWS);
  const peak = memory("VmHWM");
  assert.ok(peak - idle < MEMORY_MAX, `${(peak - idle) >> 20} MiB over idle`);
  assert.equal(await run(server, "count"), ROWS);
});
