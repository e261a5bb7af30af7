import { DurableObject } from "cloudflare:workers";
import words from "./words.txt?raw";

interface Env {
  ASSETS: Fetcher;
  COUNTER: DurableObjectNamespace<Counter>;
}
export class Counter extends DurableObject<Env> {
  async add(n: number) {
    const value = ((await this.ctx.storage.get<number>("value")) ?? 0) + n;
    await this.ctx.storage.put("value", value);
    return value;
  }
}
export default {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    if (url.pathname === "/api/count") return Response.json({ value: await env.COUNTER.getByName("one").add(Number(url.searchParams.get("by") ?? 1)) });
    if (url.pathname === "/api/words") return new Response(words.trim(), { headers: { "x-mode": import.meta.env.MODE } });
    if (url.pathname === "/api/icon") return env.ASSETS.fetch(new URL("/favicon.svg", url));
    return new Response(null, { status: 404 });
  },
};
