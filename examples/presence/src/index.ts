import content from "./page.html";
import { api, notFound, text } from "../../shared/http";
import { page } from "../../shared/page";
import { clientScript, requireUpgrade } from "../../shared/sockets";
import type { Space } from "./space";

export { Space } from "./space";

interface Env {
  SPACES: DurableObjectNamespace<Space>;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/") return page({ title: "Presence", folder: "presence", lead: "Who is here, where they point, who has gone quiet: state that lives with the connections and nowhere else.", content });
  if (url.pathname === "/reconnecting.js") return clientScript();
  const [, root, name] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "spaces" || !name) return notFound(url);
  requireUpgrade(request);
  text(url.searchParams.get("name"), "name", 30);
  return env.SPACES.getByName(text(name, "space", 60)).fetch(request as never) as never;
});
