import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { bearer, jwt } from "better-auth/plugins";
import { D1Dialect } from "kysely-d1";

interface Env {
  DB: D1Database;
  BETTER_AUTH_SECRET: string;
}
const options = (env: Env, origin: string) => ({
  database: { dialect: new D1Dialect({ database: env.DB }), type: "sqlite" as const },
  baseURL: origin,
  secret: env.BETTER_AUTH_SECRET,
  emailAndPassword: { enabled: true },
  plugins: [bearer(), jwt()],
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
});
export default {
  async fetch(request: Request, env: Env) {
    const { origin, pathname } = new URL(request.url);
    const auth = betterAuth(options(env, origin));
    if (pathname === "/setup") {
      const { runMigrations, toBeCreated } = await getMigrations(options(env, origin));
      await runMigrations();
      return Response.json(toBeCreated.map((t) => t.table).sort());
    }
    if (pathname.startsWith("/api/auth/")) return auth.handler(request);
    const session = await auth.api.getSession({ headers: request.headers });
    if (!session) return Response.json({ error: "who are you?" }, { status: 401 });
    return Response.json({ hello: session.user.name, email: session.user.email });
  },
};
