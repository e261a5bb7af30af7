import content from "./page.html";
import { api, body, json, notFound, post, text, whole } from "../../shared/http";
import { page } from "../../shared/page";
import type { Ledger } from "./ledger";
import type { Lock } from "./lock";

export { Ledger } from "./ledger";
export { Lock } from "./lock";

interface Env {
  LOCKS: DurableObjectNamespace<Lock>;
  LEDGERS: DurableObjectNamespace<Ledger>;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Distributed lock", folder: "distributed-lock", lead: "One holder at a time, released by itself when its time is up, with a fencing token that keeps a late holder out.", content });

  const [, root, name, action] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "locks" || !name) return notFound(url);
  const lock = env.LOCKS.getByName(text(name, "name"));
  const ledger = env.LEDGERS.getByName(name);
  if (!action) return json({ ...(await lock.status()), entries: await ledger.latest(10) });

  post(request);
  const input = await body(request);
  const token = () => whole(input.token, "token", 1, Number.MAX_SAFE_INTEGER);
  const ttl = () => whole(input.ttlMs, "ttlMs", 100, 3_600_000, 10_000);
  switch (action) {
    case "acquire": {
      const grant = await lock.acquire(text(input.owner, "owner"), ttl(), whole(input.waitMs, "waitMs", 0, 60_000, 0));
      return grant ? json(grant) : json({ error: "Somebody else holds the lock." }, 409);
    }
    case "release":
      return (await lock.release(token())) ? json({ released: true }) : json({ error: "This token does not hold the lock any more." }, 409);
    case "extend": {
      const grant = await lock.extend(token(), ttl());
      return grant ? json(grant) : json({ error: "This token does not hold the lock any more." }, 409);
    }
    case "write": {
      const entry = { token: token(), owner: text(input.owner, "owner"), text: text(input.text, "text") };
      return (await ledger.write(entry)) ? json(entry) : json({ error: "A later holder has written already: fenced off." }, 409);
    }
  }
  return notFound(url);
});
