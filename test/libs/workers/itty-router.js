// itty-router: a nested router, parameters, a JSON body, its error for what is missing.
import { AutoRouter, Router, error } from "itty-router";

const notes = Router({ base: "/notes" });
notes
  .get("/:id", ({ id, query }) => (id === "0" ? error(404, "no such note") : { id, lang: query.lang }))
  .post("/", async (request) => ({ created: (await request.json()).title }));
const router = AutoRouter();
router.all("/notes/*", notes.fetch);
export default { fetch: router.fetch };
