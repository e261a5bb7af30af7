import content from "./page.html";
import { api, json, notFound, text } from "../../shared/http";
import { page } from "../../shared/page";
import type { Limiter } from "./limiter";

export { Limiter } from "./limiter";

interface Env {
  LIMITERS: DurableObjectNamespace<Limiter>;
  LIMIT: number;
  WINDOW_SECONDS: number;
}

/** One limiter per user, or per address for those who give no name. */
function clientKey(request: Request, url: URL): string {
  const user = url.searchParams.get("user");
  if (user !== null) return `user:${text(user, "user")}`;
  return `ip:${request.headers.get("CF-Connecting-IP") ?? "unknown"}`;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Rate limiting", folder: "rate-limiting", lead: "A sliding window per user or address, exact under any concurrency: one object per client decides.", content });
  if (url.pathname !== "/api/hello") return notFound(url);

  const verdict = await env.LIMITERS.getByName(clientKey(request, url)).take(env.LIMIT, env.WINDOW_SECONDS * 1000);
  const headers: Record<string, string> = {
    "RateLimit-Policy": `"default";q=${verdict.limit};w=${env.WINDOW_SECONDS}`,
    RateLimit: `"default";r=${verdict.remaining};t=${Math.ceil(verdict.retryAfterMs / 1000)}`,
  };
  if (verdict.allowed) return json({ hello: "you are let in", ...verdict }, 200, headers);
  headers["Retry-After"] = String(Math.ceil(verdict.retryAfterMs / 1000));
  return json({ error: `Too many requests: ${verdict.limit} in ${env.WINDOW_SECONDS} s are allowed.`, ...verdict }, 429, headers);
});
