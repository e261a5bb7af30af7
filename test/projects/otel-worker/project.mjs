const spans = (t) => t.standIns.requests.filter((r) => r.path === "/v1/traces")
  .flatMap((r) => JSON.parse(r.body).resourceSpans).flatMap((r) => r.scopeSpans).flatMap((s) => s.spans);
export default {
  title: "OpenTelemetry (otel-cf-workers)",
  does: "spans of requests, KV and fetch reach a local collector, with parents, events, errors, the caller's trace context",
  packages: { "@microlabs/otel-cf-workers": "0.9.1", "@opentelemetry/api": "1.4.1" },
  standInVar: "COLLECTOR",
  standIn: ({ path, headers }) => ({ headers: { "content-type": "application/json" }, body: path === "/remote" ? JSON.stringify({ traced: /^00-/.test(headers.traceparent ?? "") }) : "{}" }),
  async script(t) {
    const summary = (all) => {
      const byId = new Map(all.map((s) => [s.spanId, s]));
      return all.map((s) => `${byId.get(s.parentSpanId)?.name ?? "-"} > ${s.name} ${s.kind} ${s.status?.code ?? 0} ${(s.events ?? []).map((e) => e.name)}`).sort();
    };
    const of = (path) => t.until(() => {
      const all = spans(t), order = all.find((s) => s.name === "order" && s.attributes.some((a) => a.value.stringValue === path));
      const trace = order && all.filter((s) => s.traceId === order.traceId);
      return trace?.some((s) => s.kind === 2) && trace;
    }, `the spans of ${path}`);
    t.check((await t.get("/one")).json().remote.traced, "the context goes on");
    t.note("one", summary(await of("/one")));
    t.check((await t.get("/fails")).status === 500, "an error");
    t.note("fails", summary(await of("/fails")));
    const parent = "0af7651916cd43dd8448eb211c80319c";
    await t.get("/child", { headers: { traceparent: `00-${parent}-b7ad6b7169203331-01` } });
    t.check((await of("/child"))[0].traceId === parent, "the caller's trace");
  },
};
