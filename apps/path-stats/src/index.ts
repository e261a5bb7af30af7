import { app } from "./api";
import { daysToArchive } from "./archive";
import { archiver } from "./archiver";
import { collect, origin } from "./collector";
import { consume } from "./consumer";
import { type Env, prefixOf } from "./env";
import { dateOf, type TrafficEvent } from "./event";
import { checkD1Capacity, watch } from "./monitor";
import { resendPending } from "./pending";
import { forgetAggregates, rollUpDays } from "./rollup";
import { refreshSnapshot } from "./tiers";

export { AggregatorDO } from "./aggregator";
export { ArchiverDO } from "./archiver";
export { MetersDO } from "./meters";
export { PathCollector } from "./legacy";
export { SaltDO } from "./salt";
export { SnapshotDO } from "./tiers";

const OWN = /^\/(paths|admin)(\/|$)/;
const DASHBOARD = /^\/(dashboard(\/.*)?)?$/;

/** 02:00: days past their time move to the archive, what is older than it is kept goes. */
async function nightly(env: Env, now: number): Promise<void> {
  await rollUpDays(env, now);
  for (const day of await daysToArchive(env, dateOf(now))) await archiver(env).request(day);
  await archiver(env).age(dateOf(now));
  await forgetAggregates(env, now);
}

/** Each on its own: one that fails keeps none of the others from running. */
async function everyMinute(env: Env, now: number): Promise<void> {
  const work = { "what waits": () => resendPending(env), "days": () => rollUpDays(env, now), "the snapshot": () => refreshSnapshot(env), "the checks": () => watch(env) };
  for (const [name, run] of Object.entries(work)) {
    try {
      await run();
    } catch (error) {
      console.error(`${name} failed`, error);
    }
  }
}

/** The application's own page and API; null for a request of the site. */
function own(request: Request, env: Env, ctx: ExecutionContext): Response | Promise<Response> | null {
  const url = new URL(request.url);
  const prefix = prefixOf(env);
  if (url.pathname !== prefix && !url.pathname.startsWith(`${prefix}/`)) return null;
  const pathname = url.pathname.slice(prefix.length) || "/";
  if (!OWN.test(pathname) && !DASHBOARD.test(pathname)) {
    // Below a prefix of its own there is nothing else.
    return prefix ? Response.json({ error: `There is nothing at ${url.pathname}.` }, { status: 404 }) : null;
  }
  if (pathname === "/" || pathname === "/dashboard") return Response.redirect(new URL(`${prefix}/dashboard/`, url).href, 302);
  const inner = new Request(new URL(pathname + url.search, url), request);
  return OWN.test(pathname) ? app.fetch(inner, env, ctx) : env.ASSETS.fetch(inner);
}

export default {
  async fetch(request, env, ctx) {
    return own(request, env, ctx) ?? collect(request, env, ctx, (inner) => origin(inner, env));
  },

  async queue(batch, env, ctx) {
    await consume(batch, env, ctx);
  },

  async scheduled(event, env) {
    if (event.cron === "0 2 * * *") return nightly(env, event.scheduledTime);
    if (event.cron === "0 */6 * * *") return checkD1Capacity(env);
    await everyMinute(env, event.scheduledTime);
  },
} satisfies ExportedHandler<Env, TrafficEvent>;
