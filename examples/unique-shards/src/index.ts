import content from "./page.html";
import { Directory, Shard, SHARDS_MOST } from "./shards";
import { api, body, json, notFound, post, Refusal, text } from "../../shared/http";
import { page } from "../../shared/page";

export { Directory, Shard };

interface Env {
  SHARDS: DurableObjectNamespace<Shard>;
  DIRECTORIES: DurableObjectNamespace<Directory>;
}

const ID = /^[0-9a-f]{64}$/;

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/")
    return page({ title: "Unique shards", folder: "unique-shards", lead: "A shard of its own for every writer, by newUniqueId(), and a directory that knows all of them.", content });
  const [, root, name, action, id] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "journals" || !name) return notFound(url);
  const directory = env.DIRECTORIES.getByName(text(name, "name"));
  if (action === undefined) return json(await directory.read());
  if (action !== "writers") return notFound(url);
  post(request);
  if (id === undefined) {
    const writer = await directory.open();
    if (writer === null) throw new Refusal(409, `A journal has at most ${SHARDS_MOST} writers.`);
    return json({ writer }, 201);
  }
  if (!ID.test(id) || !(await directory.has(id))) throw new Refusal(404, "There is no such writer.");
  const number = await env.SHARDS.get(env.SHARDS.idFromString(id)).append(text((await body(request)).text, "text", 500));
  return json({ number }, 201);
});
