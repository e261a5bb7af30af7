import content from "./page.html";
import { Shard, SHARDS_LEAST, SHARDS_MOST, shardName, shardOf, Total } from "./counter";
import { api, body, json, notFound, post, text, whole } from "../../shared/http";
import { page } from "../../shared/page";

export { Shard, Total };

interface Env {
  SHARDS: DurableObjectNamespace<Shard>;
  TOTALS: DurableObjectNamespace<Total>;
}

// How many shards a counter has is asked once per worker and minute, not with every request. Too old
// an answer only means that new shards are used a little later.
const shardCounts = new Map<string, { count: number; until: number }>();

async function countOf(env: Env, name: string): Promise<number> {
  const known = shardCounts.get(name);
  if (known && known.until > Date.now()) return known.count;
  const count = await env.TOTALS.getByName(name).shardCount();
  if (shardCounts.size > 1000) shardCounts.clear();
  shardCounts.set(name, { count, until: Date.now() + 60_000 });
  return count;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Sharded counter", folder: "sharded-counter", lead: "More writes than one object can take: hashed over shards, added up by a coordinator.", content });

  const [, root, name, action] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "counters" || !name) return notFound(url);
  const total = env.TOTALS.getByName(text(name, "name"));
  switch (action) {
    case undefined:
      return json(url.searchParams.has("exact") ? { total: await total.exact() } : await total.total());
    case "add": {
      post(request);
      const input = await body(request);
      const by = whole(input.by, "by", 1, 1_000_000, 1);
      const key = input.key === undefined ? crypto.randomUUID() : text(input.key, "key");
      const shard = shardOf(key, await countOf(env, name));
      await env.SHARDS.getByName(shardName(name, shard)).add(by);
      return json({ shard, added: by });
    }
    case "shards": {
      post(request);
      const count = await total.grow(whole((await body(request)).count, "count", SHARDS_LEAST, SHARDS_MOST));
      shardCounts.delete(name);
      return json({ shards: count });
    }
  }
  return notFound(url);
});
