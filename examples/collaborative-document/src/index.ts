import content from "./page.html";
import { api, notFound, text } from "../../shared/http";
import { page } from "../../shared/page";
import { clientScript, requireUpgrade } from "../../shared/sockets";
import type { Document } from "./document";
import { apply, diff, transform } from "./splice";

export { Document } from "./document";

interface Env {
  DOCUMENTS: DurableObjectNamespace<Document>;
}

/** The functions of splice.ts for the page: plain functions without anything around them. */
const spliceScript = () =>
  new Response([apply, diff, transform].map((f, i) => `export const ${["apply", "diff", "transform"][i]} = ${f};`).join("\n"), {
    headers: { "content-type": "text/javascript;charset=utf-8", "cache-control": "no-cache" },
  });

export default api<Env>(async (request, env, _ctx, url) => {
  if (url.pathname === "/") return page({ title: "Collaborative document", folder: "collaborative-document", lead: "Many write one text at once. The object puts their changes in order; what you type is never thrown away.", content });
  if (url.pathname === "/reconnecting.js") return clientScript();
  if (url.pathname === "/splice.js") return spliceScript();
  const [, root, name] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "documents" || !name) return notFound(url);
  requireUpgrade(request);
  text(url.searchParams.get("client"), "client", 60);
  return env.DOCUMENTS.getByName(text(name, "document", 60)).fetch(request as never) as never;
});
