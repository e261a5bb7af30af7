// One round of sampling: ask for a batch, fetch its weapons at the same time, hand in.
import type { Batch, Results } from "./coordinator";
import { coordinatorOf, type Env } from "./env";
import { listingsOf } from "./market";
import { isoTime, makeTick } from "./tick";

async function ask<T>(env: Env, path: string, input?: unknown): Promise<T> {
  const response = await coordinatorOf(env).fetch(`http://coordinator${path}`, { method: "POST", body: input === undefined ? undefined : JSON.stringify(input) });
  if (!response.ok) throw new Error(`the coordinator answered ${path} with ${response.status}: ${await response.text()}`);
  return response.json<T>();
}

/** How many weapons were sampled and how many could not be; 0 and 0 if none is due. */
export async function sampleBatch(env: Env): Promise<{ sampled: number; failed: number }> {
  const batch = await ask<Batch>(env, "/next-batch");
  if (batch.slugs.length === 0) return { sampled: 0, failed: 0 };
  const results: Results = { batch: batch.id, samples: [], failures: [], standIn: false };
  await Promise.all(
    batch.slugs.map(async (slug) => {
      try {
        const { listings, standIn } = await listingsOf(slug, env);
        results.samples.push(makeTick(listings, env.PLATFORM, slug, Date.now(), env.TICK_SECONDS));
        results.standIn ||= standIn;
      } catch (error) {
        results.failures.push({ ts: isoTime(Date.now()), platform: env.PLATFORM, weapon_slug: slug, reason: (error as Error).message });
      }
    }),
  );
  await ask(env, "/append-results", results);
  return { sampled: results.samples.length, failed: results.failures.length };
}
