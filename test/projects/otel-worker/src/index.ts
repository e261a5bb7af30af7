import { instrument, type ResolveConfigFn } from "@microlabs/otel-cf-workers";
import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

interface Env {
  COLLECTOR: string;
  STORE: KVNamespace;
}
const handler = {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    return trace.getTracer("shop").startActiveSpan("order", { kind: SpanKind.INTERNAL, attributes: { "order.path": url.pathname } }, async (span) => {
      try {
        span.addEvent("looked up");
        await env.STORE.put("seen", url.pathname);
        const seen = await env.STORE.get("seen");
        const remote = await fetch(`${env.COLLECTOR}/remote`, { headers: { "x-from": "worker" } });
        if (url.pathname === "/fails") throw new Error("on purpose");
        return Response.json({ seen, remote: await remote.json() });
      } catch (error) {
        span.recordException(error as Error);
        span.setStatus({ code: SpanStatusCode.ERROR, message: "failed" });
        return new Response("failed", { status: 500 });
      } finally {
        span.end();
      }
    });
  },
};
const config: ResolveConfigFn = (env: Env) => ({ exporter: { url: `${env.COLLECTOR}/v1/traces` }, service: { name: "shop", version: "1" } });
export default instrument(handler as never, config);
