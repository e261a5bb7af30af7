import content from "./page.html";
import { api, body, json, notFound, post, text, whole } from "../../shared/http";
import { page } from "../../shared/page";
import type { History, Notebook } from "./notebook";

export { History, Notebook } from "./notebook";

interface Env {
  NOTEBOOKS: DurableObjectNamespace<Notebook>;
  HISTORIES: DurableObjectNamespace<History>;
}

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Point-in-time undo", folder: "point-in-time-undo", lead: "A bookmark before every risky operation, and the whole database of the object goes back to it.", content });

  const [, root, name, action] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "notebooks" || !name) return notFound(url);
  const notebook = env.NOTEBOOKS.getByName(text(name, "name"));
  const history = env.HISTORIES.getByName(name);
  const state = async () => json({ notes: await notebook.list(), marks: await history.list() });
  if (!action) return state();

  post(request);
  const input = await body(request);
  switch (action) {
    case "add":
      await notebook.add(text(input.text, "text", 1000));
      return state();
    case "clear":
      await history.push(await notebook.bookmark(), "before everything was deleted");
      await notebook.clear();
      return state();
    case "replace": {
      const what = text(input.what, "what"), by = text(input.by, "by");
      await history.push(await notebook.bookmark(), `before "${what}" became "${by}"`);
      await notebook.replace(what, by);
      return state();
    }
    case "undo": {
      const mark = await history.find(whole(input.mark, "mark", 1, Number.MAX_SAFE_INTEGER));
      if (!mark) return json({ error: "There is no such mark." }, 404);
      await history.push(await notebook.goTo(mark.bookmark), `before going back to "${mark.label}"`);
      return json({ restored: mark.label });
    }
  }
  return notFound(url);
});
