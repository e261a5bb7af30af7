import content from "./page.html";
import { api, notFound, text } from "../../shared/http";
import { page } from "../../shared/page";
import { clientScript, requireUpgrade } from "../../shared/sockets";
import type { Room } from "./room";

export { Room } from "./room";

interface Env {
  ROOMS: DurableObjectNamespace<Room>;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/") return page({ title: "Chat room", folder: "chat-room", lead: "One object per room. It leaves memory while nobody talks, and everybody stays connected.", content });
  if (url.pathname === "/reconnecting.js") return clientScript();
  const [, root, name] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "rooms" || !name) return notFound(url);
  requireUpgrade(request);
  text(url.searchParams.get("name"), "name", 30);
  return env.ROOMS.getByName(text(name, "room", 60)).fetch(request as never) as never;
});
