// tRPC: a router served with its fetch adapter, called by its own client through this worker.
import { createTRPCClient, httpBatchLink } from "@trpc/client";
import { TRPCError, initTRPC } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { z } from "zod";

const t = initTRPC.context().create();
const stock = new Map([["tea", 3]]);
const router = t.router({
  stock: t.procedure.input(z.string()).query(({ input }) => stock.get(input) ?? 0),
  whoami: t.procedure.query(({ ctx }) => ctx.user),
  buy: t.procedure.input(z.object({ item: z.string(), count: z.number().int().min(1) })).mutation(({ input }) => {
    const left = (stock.get(input.item) ?? 0) - input.count;
    if (left < 0) throw new TRPCError({ code: "CONFLICT", message: "sold out" });
    stock.set(input.item, left);
    return left;
  }),
});

const handle = (request) => fetchRequestHandler({
  endpoint: "/trpc", req: request, router, createContext: ({ req }) => ({ user: req.headers.get("x-user") }),
});

export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname.startsWith("/trpc")) return handle(request);
    const batches = [];
    const client = createTRPCClient({
      links: [httpBatchLink({
        url: new URL("/trpc", url), headers: { "x-user": "ann" },
        fetch: (address, init) => (batches.push(new URL(address).pathname), handle(new Request(address, init))),
      })],
    });
    const [tea, milk, user] = await Promise.all([client.stock.query("tea"), client.stock.query("milk"), client.whoami.query()]);
    const left = await client.buy.mutate({ item: "tea", count: 2 });
    const conflict = await client.buy.mutate({ item: "tea", count: 2 }).catch((error) => error.data.code);
    const invalid = await client.buy.mutate({ item: "tea", count: 0 }).catch((error) => error.data.code);
    return Response.json({ tea, milk, user, left, conflict, invalid, batches });
  },
};
