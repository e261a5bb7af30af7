import { DurableObject } from "cloudflare:workers";

interface Env {
  COUNTER: DurableObjectNamespace<Counter>;
}

/** One object for each name; what it writes is on disk before anybody hears of it. */
export class Counter extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL)");
  }

  increment(name: string): number {
    const row = this.ctx.storage.sql
      .exec("INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value", name)
      .one();
    return row.value as number;
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    const counter = env.COUNTER.getByName(pathname);
    return Response.json({ path: pathname, visits: await counter.increment("visits") });
  },
};
