import content from "./page.html";
import { Account } from "./account";
import { type ObjectError, withRetries } from "./retry";
import { api, body, json, notFound, post, text, whole } from "../../shared/http";
import { page } from "../../shared/page";

export { Account };

interface Env {
  ACCOUNTS: DurableObjectNamespace<Account>;
}

const FLOOD = 10_500; // an object lets 10,000 calls wait
const HOLD_MOST_MS = 10_000;

/** More calls than the object lets wait: those that are too many fail at once, as overloaded. */
async function flood(env: Env, name: string): Promise<{ answered: number; overloaded: number; failed: number }> {
  const stub = env.ACCOUNTS.getByName(name);
  // It takes nothing in before the first call is refused, however long that takes: then so many wait as may.
  const begun = Promise.withResolvers<void>(), refused = Promise.withResolvers<void>();
  const held = stub.hold(async () => {
    begun.resolve();
    await Promise.race([refused.promise, scheduler.wait(HOLD_MOST_MS)]);
  });
  await begun.promise;
  const counts = { answered: 0, overloaded: 0, failed: 0 };
  const one = async (): Promise<void> => {
    try {
      await stub.balance();
      counts.answered++;
    } catch (error) {
      counts[(error as ObjectError).overloaded ? "overloaded" : "failed"]++;
      refused.resolve();
    }
  };
  await Promise.all([held, ...Array.from({ length: FLOOD }, one)]);
  return counts;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Retrying client", folder: "retrying-client", lead: "Calls that fail are tried again with growing pauses if that can help, and not if it would make things worse.", content });
  const [, root, name, action] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "accounts" || !name) return notFound(url);
  text(name, "name");
  try {
    switch (action) {
      case undefined:
        return json({ balance: (await withRetries(() => env.ACCOUNTS.getByName(name).balance())).value });
      case "pay": {
        post(request);
        const input = await body(request);
        const id = text(input.id, "id"), amount = whole(input.amount, "amount", 1, 1_000_000), fails = whole(input.fails, "fails", 0, 10, 0);
        const { value: balance, attempts } = await withRetries(() => env.ACCOUNTS.getByName(name).pay(id, amount, fails));
        return json({ balance, attempts });
      }
      case "flood":
        post(request);
        return json(await flood(env, name));
    }
  } catch (error) {
    const { retryable, overloaded, message } = error as ObjectError;
    if (overloaded || retryable) return json({ error: overloaded ? "Too much is waiting. Come again later." : `Tried five times: ${message}` }, 503, { "Retry-After": "1" });
    throw error;
  }
  return notFound(url);
});
