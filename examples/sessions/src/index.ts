import content from "./page.html";
import { api, body, json, notFound, post, text, whole } from "../../shared/http";
import { page } from "../../shared/page";
import type { Session } from "./session";

export { Session } from "./session";

interface Env {
  SESSIONS: DurableObjectNamespace<Session>;
}

const COOKIE = "session";

/** 256 random bits: not to be guessed. */
function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function secretOf(request: Request): string | null {
  const match = /(?:^|;\s*)session=([0-9a-f]{64})(?:;|$)/.exec(request.headers.get("cookie") ?? "");
  return match ? match[1] : null;
}

function cookie(value: string, url: URL, seconds: number): string {
  return `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${url.protocol === "https:" ? "; Secure" : ""}`;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Sessions", folder: "sessions", lead: "An object per session: random id in a cookie, state on disk, expiry by alarm.", content });

  const secret = secretOf(request);
  switch (url.pathname) {
    case "/api/login": {
      post(request);
      const input = await body(request);
      const lifetimeSeconds = whole(input.lifetimeSeconds, "lifetimeSeconds", 1, 86_400, 900);
      const user = text(input.user, "user");
      // A new secret with every login: one that somebody planted before it is worth nothing.
      if (secret) await env.SESSIONS.getByName(secret).end();
      const fresh = newSecret();
      const data = await env.SESSIONS.getByName(fresh).begin(user, lifetimeSeconds * 1000);
      return json(data, 200, { "set-cookie": cookie(fresh, url, lifetimeSeconds) });
    }
    case "/api/me": {
      const data = secret && (await env.SESSIONS.getByName(secret).visit());
      return data ? json(data) : json({ error: "You are not logged in." }, 401);
    }
    case "/api/logout":
      post(request);
      if (secret) await env.SESSIONS.getByName(secret).end();
      return json({ loggedOut: true }, 200, { "set-cookie": cookie("", url, 0) });
  }
  return notFound(url);
});
