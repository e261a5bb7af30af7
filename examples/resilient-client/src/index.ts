import content from "./page.html";
import client from "./resilient-socket.client.js";
import { api, json, notFound, post, Refusal } from "../../shared/http";
import { page } from "../../shared/page";
import type { Inbox } from "./inbox";

export { Inbox } from "./inbox";

interface Env {
  INBOXES: DurableObjectNamespace<Inbox>;
}

export default api<Env>(async (request, env, _ctx, url) => {
  const inbox = env.INBOXES.getByName("demo");
  switch (url.pathname) {
    case "/":
      return page({ title: "Resilient client", folder: "resilient-client", lead: "A WebSocket that comes back: growing pauses, a queue of what was not acknowledged, nothing twice and nothing lost.", content });
    case "/resilient-socket.js":
      return new Response(client as unknown as string, { headers: { "content-type": "text/javascript;charset=utf-8", "cache-control": "no-cache" } });
    case "/socket":
      if (request.headers.get("upgrade") !== "websocket") throw new Refusal(426, "This is for WebSockets.");
      return inbox.fetch(request);
    case "/api/entries":
      return json(await inbox.entries());
    case "/api/crash":
      post(request);
      await inbox.crash();
      return json({ crashed: true });
  }
  return notFound(url);
});
