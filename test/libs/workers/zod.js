// zod: an order is checked, coerced and refused with the paths of what is wrong.
import { z } from "zod";

const Order = z.object({
  id: z.uuid(),
  email: z.email(),
  placed: z.coerce.date(),
  lines: z.array(z.object({ sku: z.string().regex(/^[A-Z]{2}-\d+$/), count: z.int().positive() })).min(1),
  shipping: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("pickup") }),
    z.object({ kind: z.literal("post"), country: z.string().length(2).toUpperCase() }),
  ]),
}).strict();

export default {
  async fetch(request) {
    const result = Order.safeParse(await request.json());
    if (result.success) return Response.json(result.data);
    return Response.json(result.error.issues.map((issue) => issue.path.join(".") || issue.keys.join()), { status: 422 });
  },
};
