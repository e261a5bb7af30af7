import content from "./page.html";
import { api, json, notFound, post, whole } from "../../shared/http";
import { page } from "../../shared/page";
import type { Counter } from "./counter";

export { Counter } from "./counter";

interface Env {
  COUNTERS: DurableObjectNamespace<Counter>;
}

export default api<Env>(async (request, env, _ctx, url) => {
  const counter = env.COUNTERS.getByName("demo");
  switch (url.pathname) {
    case "/":
      return page({ title: "RPC and fetch side by side", folder: "rpc-and-fetch", lead: "The same object, called as an object and as an HTTP server: when to use which.", content });
    case "/rpc/add": {
      post(request);
      return json({ value: await counter.add(whole(url.searchParams.get("by"), "by", -1000, 1000, 1)) });
    }
    case "/rpc/batch": {
      post(request);
      // The stub of the object's Batch; `using` would dispose of it at the end of the block.
      const batch = await counter.batch();
      try {
        for (const by of [1, 2, 3]) await batch.add(by);
        return json({ value: await batch.commit() });
      } finally {
        batch[Symbol.dispose]();
      }
    }
    case "/rpc/steps": {
      const steps: number[] = [];
      await counter.countTo(5, (step) => void steps.push(step));
      return json({ steps });
    }
    case "/fetch/add":
      // The request goes on as it is, and the answer comes back as it is.
      return counter.fetch(request);
  }
  return notFound(url);
});
