import { initTRPC, TRPCError, tracked } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { DurableObject } from "cloudflare:workers";
import superjson from "superjson";
import { z } from "zod";

type Env = { TODOS: DurableObjectNamespace<Todos> };
export class Todos extends DurableObject {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env as never);
    ctx.storage.sql.exec("create table if not exists todos (id integer primary key, text text not null)");
  }
  add(text: string) {
    return this.ctx.storage.sql.exec("insert into todos (text) values (?) returning *", text).one();
  }
  list() {
    return this.ctx.storage.sql.exec("select * from todos order by id").toArray();
  }
}
const t = initTRPC.context<{ env: Env; user: string | null }>().create({ transformer: superjson });
const signedIn = t.procedure.use(({ ctx, next }) => {
  if (!ctx.user) throw new TRPCError({ code: "UNAUTHORIZED" });
  return next({ ctx: { ...ctx, todos: ctx.env.TODOS.getByName(ctx.user) } });
});
const appRouter = t.router({
  greet: t.procedure.input(z.object({ name: z.string().max(10) })).query(({ input }) => ({ text: `Hello, ${input.name}`, at: new Date(0), tags: new Set(["a"]) })),
  todo: t.router({
    add: signedIn.input(z.string()).mutation(({ ctx, input }) => ctx.todos.add(input)),
    list: signedIn.query(({ ctx }) => ctx.todos.list()),
  }),
  count: t.procedure.input(z.number()).subscription(async function* ({ input }) {
    for (let i = 0; i < input; i++) yield tracked(String(i), { i });
  }),
});
export type AppRouter = typeof appRouter;
export default {
  fetch: (request: Request, env: Env) =>
    fetchRequestHandler({ endpoint: "/trpc", req: request, router: appRouter, createContext: () => ({ env, user: request.headers.get("x-user") }) }),
};
