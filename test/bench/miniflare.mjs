// Serves a worker by miniflare: node miniflare.mjs MODULES SCRIPT PORT DIR. Its services keep their data in DIR.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";

const [modules, script, port, dir] = process.argv.slice(2);
const { Miniflare } = createRequire(path.join(modules, "index.js"))("miniflare");
const miniflare = new Miniflare({
  host: "127.0.0.1",
  port: Number(port),
  modules: true,
  script: readFileSync(script, "utf8"),
  compatibilityDate: "2026-01-01",
  kvNamespaces: ["KV"],
  kvPersist: path.join(dir, "kv"),
  d1Databases: ["DB"],
  d1Persist: path.join(dir, "d1"),
  r2Buckets: ["BUCKET"],
  r2Persist: path.join(dir, "r2"),
  cachePersist: path.join(dir, "cache"),
  queueProducers: { QUEUE: "bench" },
  queueConsumers: { bench: { maxBatchSize: 100, maxBatchTimeout: 0 } },
});
await miniflare.ready;
process.on("SIGTERM", async () => {
  await miniflare.dispose();
  process.exit(0);
});
