// The workloads of objects.js, for test/bench/cluster.mjs, and besides:
//   /make?from=0&count=50      that many objects with one request
//   /shards?prefix=many&total=1000&count=256   the shards of the counters many1, many2, ... in a cluster with that many
import base from "./objects.js";
export * from "./objects.js";

/** As src/object/shard.h has it: eight bytes in the middle of the id. */
function shardOf(id, count) {
  const bytes = id.toString().slice(32, 48).match(/../g).reverse().join("");
  return Number(BigInt(`0x${bytes}`) % BigInt(count));
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const number = (name) => Number(url.searchParams.get(name));
    if (url.pathname === "/make") {
      await Promise.all(Array.from({ length: number("count") }, (_, i) => env.FRESH.getByName(`made${number("from") + i}`).add("made")));
      return Response.json({ made: number("count") });
    }
    if (url.pathname === "/shards") {
      return Response.json(Array.from({ length: number("total") }, (_, i) => shardOf(env.COUNTER.idFromName(url.searchParams.get("prefix") + (i + 1)), number("count"))));
    }
    return base.fetch(request, env);
  },
};
