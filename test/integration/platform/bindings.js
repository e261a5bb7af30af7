import { WorkerEntrypoint } from "cloudflare:workers";
import { connect } from "cloudflare:sockets";

let seen = [];
export class Other extends WorkerEntrypoint {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    request.signal.onabort = () => seen.push([pathname, request.signal.reason.message]);
    switch (pathname) {
      case "/redirect": return Response.redirect(new URL("/end", request.url));
      case "/end": return new Response(`end, ${request.redirect}`, { status: 404 });
      case "/gzip": return new Response("zipped text", { headers: { "content-encoding": "gzip" } });
      case "/slow": return scheduler.wait(500).then(() => new Response("late"));
      case "/stream": {
        const { readable, writable } = new IdentityTransformStream();
        const writer = writable.getWriter();
        this.ctx.waitUntil(writer.write(new TextEncoder().encode("first")).catch(() => {}));
        return new Response(readable);
      }
    }
    return Response.error();
  }
  hangs() { return new Promise(() => {}); }
  takes(request) { return [request.redirect, request.signal.aborted]; }
  async queue(batch) {
    seen.push([batch.queue, batch.messages.map((message) => message.body), batch.metadata.metrics.backlogCount]);
    if (batch.queue === "throws") throw new Error("no");
    batch.messages[0].ack();
    batch.messages[1]?.retry({ delaySeconds: 3 });
  }
  scheduled(controller) {
    seen.push([controller.cron, controller.scheduledTime]);
    controller.noRetry();
  }
  async connect(socket) {
    const writer = socket.writable.getWriter();
    await writer.write(new TextEncoder().encode("hello "));
    for await (const chunk of socket.readable) await writer.write(chunk);
    await writer.close();
  }
}

const failure = (f) => Promise.resolve().then(f).then(() => "worked", (error) => `${error.name}: ${error.message}`);

async function exchange(socket) {
  const writer = socket.writable.getWriter();
  await writer.write(new TextEncoder().encode("you"));
  await writer.close();
  const text = await new Response(socket.readable).text();
  await socket.closed;
  return text;
}

const checks = {
  async redirects(env) {
    const followed = await env.OTHER.fetch("http://x/redirect");
    const manual = await env.OTHER.fetch("http://x/redirect", { redirect: "manual" });
    return [await followed.text(), followed.url, followed.redirected, followed.statusText, manual.status, manual.url, manual.redirected];
  },
  async coding(env) {
    const response = await env.OTHER.fetch("http://x/gzip");
    return [response.headers.get("content-encoding"), await response.text()];
  },
  errorResponse: (env) => failure(() => env.OTHER.fetch("http://x/nothing")),
  async signals(env) {
    seen = [];
    const slow = await failure(() => env.OTHER.fetch("http://x/slow", { signal: AbortSignal.timeout(20) }));
    const response = await env.OTHER.fetch("http://x/stream");
    const reader = response.body.getReader();
    await reader.read();
    await reader.cancel();
    await scheduler.wait(50);
    return [slow, seen];
  },
  async handlers(env) {
    seen = [];
    const messages = [{ id: "a", timestamp: new Date(), body: { n: 1 }, attempts: 1 }, { id: "b", timestamp: new Date(), body: "two", attempts: 1 }];
    const results = [await env.OTHER.queue("q", messages, { metrics: { backlogCount: 5 } }), await env.OTHER.queue("throws", messages.slice(0, 1)),
      await env.OTHER.queue("unreadable", [{ id: "c", timestamp: new Date(), serializedBody: new ArrayBuffer(3), attempts: 1 }]),
      await env.OTHER.scheduled({ cron: "* * * * *", scheduledTime: 1000 })];
    return [results, seen, await failure(() => env.OTHER.queue("q", [{ id: "a", timestamp: new Date(), attempts: 1 }]))];
  },
  async sockets(env, ctx) {
    const host = ctx.mapVirtualHost(env.OTHER, 5432);
    return [await exchange(env.OTHER.connect("somewhere:80")), await exchange(connect(host)), /^[0-9a-f]{32}\.workers\.alt:5432$/.test(host), ctx.mapVirtualHost(env.OTHER, 1) === host];
  },
  async hung(env) {
    return failure(() => env.OTHER.hangs());
  },
  never: () => new Promise(() => {}),
  async value(env, ctx, request) {
    ctx.props = { mine: 1 };
    void request.signal;
    return [request.redirect, new Request(request).redirect, await env.OTHER.takes(new Request("http://x/", { redirect: "manual", signal: AbortSignal.abort() })), await env.OTHER.takes(request), ctx.props];
  },
  flags: () => [Cloudflare.compatibilityFlags.service_binding_extra_handlers, Cloudflare.compatibilityFlags.nodejs_compat, Cloudflare.compatibilityFlags.url_standard, Object.isFrozen(Cloudflare.compatibilityFlags)],
};

export default {
  async fetch(request, env, ctx) {
    const name = new URL(request.url).pathname.slice(1);
    return Response.json(await checks[name](env, ctx, request));
  },
};
