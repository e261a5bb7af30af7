import * as Sentry from "@sentry/cloudflare";
import { DurableObject } from "cloudflare:workers";

interface Env {
  SENTRY_DSN: string;
  ROOM: DurableObjectNamespace<RoomBase>;
}
const options = (env: Env) => ({ dsn: env.SENTRY_DSN, tracesSampleRate: 1, environment: "example", release: "1.0", instrumentPrototypeMethods: true });

class RoomBase extends DurableObject<Env> {
  async greet(name: string) {
    Sentry.captureMessage(`greeting ${name}`);
    return `Hello, ${name}`;
  }
  async fetch() {
    throw new Error("from the object");
    return new Response();
  }
}
export const Room = Sentry.instrumentDurableObjectWithSentry(options, RoomBase as never);

export default Sentry.withSentry(options, {
  async fetch(request: Request, env: Env) {
    const { pathname } = new URL(request.url);
    Sentry.setUser({ id: "42" });
    Sentry.addBreadcrumb({ message: "came by", category: "example" });
    if (pathname === "/throws") throw new TypeError("on purpose");
    if (pathname === "/caught") {
      const id = Sentry.captureException(new Error("caught"), { tags: { kind: "caught" } });
      return Response.json({ id: id.length });
    }
    if (pathname === "/span") return Response.json({ value: await Sentry.startSpan({ name: "work", op: "example" }, async () => (await new Promise((r) => setTimeout(r, 5)), 7)) });
    const room = env.ROOM.getByName("one");
    if (pathname === "/object") return new Response(await (room as any).greet("Ada"));
    if (pathname === "/object-throws") return (room as any).fetch(request);
    return new Response("ok");
  },
} satisfies ExportedHandler<Env> as never);
