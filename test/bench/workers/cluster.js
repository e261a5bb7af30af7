// The workloads of objects.js, for test/bench/cluster.mjs, and besides:
//   /make?from=0&count=50      that many objects with one request
//   /shards?prefix=many&total=1000&count=256   the shards of the counters many1, many2, ... in a cluster with that many
//   /turns?name=x&count=100&width=1   so many calls to an object in memory, so many at a time
//   /places?binding=MEMORY&total=500&count=16  of the objects place0, place1, ...: their shards, and their lanes on a node that has two
//   /kv/put?key=x, /kv/get?key=x&ttl=0
//   /room?name=x                WebSockets (sockets.js)
import base from "./objects.js";
import sockets from "./sockets.js";
export * from "./objects.js";
export { Room } from "./sockets.js";

/** As src/object/shard.h has it: eight bytes in the middle of the id. */
function shardOf(id, count) {
  const bytes = id.toString().slice(32, 48).match(/../g).reverse().join("");
  return Number(BigInt(`0x${bytes}`) % BigInt(count));
}

/** As src/object/node.h has it: the last eight bytes. */
const laneOf = (id) => parseInt(id.toString().slice(48, 50), 16) & 1;

async function turns(stub, count, width) {
  const each = async () => {
    for (let i = 0; i < count / width; i++) await stub.hit();
  };
  await Promise.all(Array.from({ length: width }, each));
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
    if (url.pathname === "/turns") {
      await turns(env.MEMORY.getByName(url.searchParams.get("name")), number("count"), number("width") || 1);
      return Response.json({ count: number("count") });
    }
    if (url.pathname === "/places") {
      return Response.json(Array.from({ length: number("total") }, (_, i) => {
        const id = env[url.searchParams.get("binding")].idFromName(`place${i}`);
        return { shard: shardOf(id, number("count")), lane: laneOf(id) };
      }));
    }
    if (url.pathname === "/kv/put") {
      await env.KV.put(url.searchParams.get("key"), "value");
      return new Response("put");
    }
    if (url.pathname === "/kv/get") {
      const cacheTtl = number("ttl");
      return new Response(await env.KV.get(url.searchParams.get("key"), cacheTtl > 0 ? { cacheTtl } : {}));
    }
    if (url.pathname === "/room") return sockets.fetch(request, env);
    return base.fetch(request, env);
  },
};
