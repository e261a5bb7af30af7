// The same object in two dialects: methods called as methods (RPC), and HTTP requests (fetch).
import { DurableObject, RpcTarget } from "cloudflare:workers";

/** What a caller may do with a counter for a while: capabilities are passed as values. */
export class Batch extends RpcTarget {
  private sum = 0;
  constructor(private readonly counter: Counter) {
    super();
  }
  add(by: number): number {
    return (this.sum += by);
  }
  commit(): Promise<number> {
    return this.counter.add(this.sum);
  }
}

export class Counter extends DurableObject {
  // --- RPC: typed arguments and results, errors arrive as errors, no parsing
  async add(by: number): Promise<number> {
    if (!Number.isSafeInteger(by)) throw new TypeError("A counter can only add whole numbers.");
    const value = (this.ctx.storage.kv.get<number>("value") ?? 0) + by;
    this.ctx.storage.kv.put("value", value);
    return value;
  }

  async value(): Promise<number> {
    return this.ctx.storage.kv.get<number>("value") ?? 0;
  }

  /** Returns an object that lives here and is used over there. */
  async batch(): Promise<Batch> {
    return new Batch(this);
  }

  /** Calls a function of the caller's for every step. */
  async countTo(last: number, onStep: (step: number) => void | Promise<void>): Promise<void> {
    for (let step = 1; step <= last; step++) await onStep(step);
  }

  // --- fetch: for what is HTTP already (a request passed on, streamed bodies, status codes, WebSockets)
  async fetch(request: Request): Promise<Response> {
    const by = Number(new URL(request.url).searchParams.get("by") ?? "1");
    if (request.method === "GET") return Response.json({ value: await this.value() });
    if (request.method !== "POST") return new Response("Use GET or POST.\n", { status: 405, headers: { allow: "GET, POST" } });
    if (!Number.isSafeInteger(by)) return Response.json({ error: "A counter can only add whole numbers." }, { status: 400 });
    return Response.json({ value: await this.add(by) });
  }
}
