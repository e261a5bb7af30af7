import content from "./page.html";
import { api, body, json, notFound, post, text, whole } from "../../shared/http";
import { page } from "../../shared/page";
import type { Scheduler } from "./scheduler";

export { Scheduler } from "./scheduler";

interface Env {
  SCHEDULERS: DurableObjectNamespace<Scheduler>;
}

const YEAR_MS = 366 * 86_400_000;

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Scheduler", folder: "scheduler", lead: "Any number of events on the one alarm an object has: run in order, kept through restarts.", content });

  const [, root, name, action] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "schedulers" || !name) return notFound(url);
  const scheduler = env.SCHEDULERS.getByName(text(name, "name"));
  if (!action) return json(await scheduler.state());

  post(request);
  const input = await body(request);
  switch (action) {
    case "schedule": {
      const delay = whole(input.delayMs, "delayMs", 0, YEAR_MS);
      const every = input.everyMs === undefined || input.everyMs === null ? null : whole(input.everyMs, "everyMs", 1000, YEAR_MS);
      const id = await scheduler.schedule(text(input.label, "label"), Date.now() + delay, every);
      return id === null ? json({ error: "This scheduler is full." }, 429) : json({ id }, 201);
    }
    case "cancel":
      return (await scheduler.cancel(whole(input.id, "id", 1, Number.MAX_SAFE_INTEGER))) ? json({ cancelled: true }) : json({ error: "There is no such event." }, 404);
  }
  return notFound(url);
});
