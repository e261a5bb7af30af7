import content from "./page.html";
import { api, body, json, notFound, post, Refusal, text } from "../../shared/http";
import { page } from "../../shared/page";
import type { Workshop } from "./workshop";

export { Workshop } from "./workshop";

interface Env {
  WORKSHOPS: DurableObjectNamespace<Workshop>;
}

const ENDS = ["well", "throws", "crashes"] as const;

export default api<Env>(async (request, env, _ctx, url) => {
  const workshop = env.WORKSHOPS.getByName("demo");
  switch (url.pathname) {
    case "/":
      return page({ title: "Graceful clean-up", folder: "graceful-cleanup", lead: "Answer first, clear up afterwards, and lose track of nothing: finally, waitUntil, and an alarm for what a crash left behind.", content });
    case "/api/state":
      return json(await workshop.state());
    case "/api/work": {
      post(request);
      const input = await body(request);
      const end = ENDS.find((name) => name === (input.end ?? "well"));
      if (!end) throw new Refusal(400, `"end" must be one of ${ENDS.join(", ")}.`);
      try {
        return json({ result: await workshop.work(text(input.label, "label"), end) });
      } catch (error) {
        return json({ error: (error as Error).message }, 500);
      }
    }
  }
  return notFound(url);
});
