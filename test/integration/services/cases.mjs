// A project whose worker runs one of its cases per request: GET /name?args=[...] answers with the
// case's result, or its error, as JSON.
import { project } from "../lib/server.mjs";

/**
 * @param {string} config lines of wrangler.toml
 * @param {string} cases source of the members of an object: async name(env, ...args) { ... }
 * @param {string} [rest] more source: classes
 * @param {Record<string, string>} [files] more files
 */
export function casesProject(config, cases, rest = "", files = {}) {
  return project({
    "wrangler.toml": `name = "test"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${config}`,
    "index.js": `
      ${rest}
      const cases = {${cases}};
      export default {
        async fetch(request, env, ctx) {
          const url = new URL(request.url);
          const args = JSON.parse(url.searchParams.get("args") ?? "[]");
          try {
            const result = await cases[url.pathname.slice(1)](env, ...args, request);
            return result instanceof Response ? result : Response.json({ result });
          } catch (error) {
            return Response.json({ error: error.message, name: error.name, cause: error.cause?.message });
          }
        },
      };`,
    ...files,
  });
}

/** Runs a case; throws its error. */
export async function run(server, name, ...args) {
  const text = await server.text(`/${name}?args=${encodeURIComponent(JSON.stringify(args))}`);
  const answer = JSON.parse(text);
  if ("error" in answer) throw Object.assign(new Error(answer.error), { name: answer.name, cause: answer.cause });
  return answer.result;
}
