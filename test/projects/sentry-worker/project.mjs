/** The items of an envelope: a line of JSON about each, and one of it. */
function items(body) {
  const lines = body.toString().split("\n").slice(1), found = [];
  for (let i = 0; i + 1 < lines.length; i += 2) found.push([JSON.parse(lines[i]).type, JSON.parse(lines[i + 1])]);
  return found;
}
const seen = (t) => t.standIns.requests.filter((r) => r.path.includes("/envelope/")).flatMap((r) => items(r.body));
export default {
  title: "Sentry's SDK (@sentry/cloudflare)",
  does: "a local server gets what was thrown, caught, said; user, breadcrumbs, tags, spans; what an instrumented object sends",
  packages: { "@sentry/cloudflare": "10.40.0" },
  standInVar: "SENTRY_DSN",
  standInUrl: (url) => url.replace("http://", "http://key@") + "/1",
  standIn: () => ({ headers: { "content-type": "application/json" }, body: "{}" }),
  async script(t) {
    const event = (test) => t.until(() => seen(t).find(([type, item]) => type === "event" && test(item))?.[1], "the event");
    t.check((await t.get("/")).text === "ok", "it answers");
    t.check((await t.get("/throws", { quiet: true })).status === 500, "an uncaught error");
    const thrown = await event((e) => e.exception?.values[0].value === "on purpose");
    t.note("thrown", { type: thrown.exception.values[0].type, mechanism: thrown.exception.values[0].mechanism, user: thrown.user?.id, crumbs: thrown.breadcrumbs?.map((b) => b.message), environment: thrown.environment, release: thrown.release, method: thrown.request?.method, runtime: thrown.contexts?.runtime?.name });
    t.check(thrown.exception.values[0].stacktrace?.frames?.length > 0, "it has a stack");
    await t.get("/caught");
    t.note("caught", (await event((e) => e.exception?.values[0].value === "caught")).tags);
    await t.get("/span");
    const transaction = await t.until(() => seen(t).find(([type, item]) => type === "transaction" && item.transaction === "GET /span")?.[1], "the transaction");
    t.note("spans", { op: transaction.contexts.trace.op, spans: transaction.spans.map((s) => [s.op, s.description]) });
    t.check((await t.get("/object")).text === "Hello, Ada", "the object answers");
    t.note("message", (await event((e) => e.message === "greeting Ada")).level);
    await t.get("/object-throws", { quiet: true });
    t.note("of the object", (await event((e) => e.exception?.values[0].value === "from the object")).exception.values[0].mechanism);
  },
};
