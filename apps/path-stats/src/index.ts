import { app } from "./api";
import { archiveDay, daysToArchive } from "./archive";
import { collect, origin } from "./collector";
import { consume } from "./consumer";
import type { Env } from "./env";
import { dateOf, type TrafficEvent } from "./event";
import { check, checkSize, report } from "./monitor";
import { resendPending } from "./pending";
import { forgetHours, rollUpDay, yesterday } from "./rollup";
import { refreshSnapshot } from "./tiers";

export { Aggregator } from "./aggregator";
export { Salt } from "./salt";

const OWN = /^\/(paths|admin)(\/|$)/;
const DASHBOARD = /^\/(dashboard(\/.*)?)?$/;

/** 02:00: yesterday is rolled up, days past their time move to the archive. */
async function nightly(env: Env, now: number): Promise<void> {
  await rollUpDay(env, yesterday(now));
  let problem: string | null = null;
  for (const day of await daysToArchive(env, dateOf(now))) {
    try {
      await archiveDay(env, day);
    } catch (error) {
      problem = `The archive of ${day} failed: ${(error as Error).message}`;
    }
  }
  await report(env, [{ kind: "archive", problem }]);
  await forgetHours(env, now);
}

export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (OWN.test(pathname)) return app.fetch(request, env, ctx);
    if (DASHBOARD.test(pathname)) return pathname === "/" ? Response.redirect(new URL("/dashboard/", request.url).href, 302) : env.ASSETS.fetch(request);
    return collect(request, env, ctx, (inner) => origin(inner, env));
  },

  async queue(batch, env) {
    await consume(batch, env);
  },

  async scheduled(event, env) {
    if (event.cron === "0 2 * * *") return nightly(env, event.scheduledTime);
    if (event.cron === "0 */6 * * *") return report(env, [await checkSize(env)]);
    await resendPending(env);
    await refreshSnapshot(env);
    await report(env, await check(env));
  },
} satisfies ExportedHandler<Env, TrafficEvent>;
