interface Env {
  DB: D1Database;
}

const LENGTH = 10_000; // characters of a note

const refuse = (status: number, error: string) => Response.json({ error }, { status });

async function list(env: Env): Promise<Response> {
  const { results } = await env.DB.prepare("SELECT id, text, created FROM notes ORDER BY id DESC LIMIT 100").all();
  return Response.json(results);
}

async function create(request: Request, env: Env): Promise<Response> {
  const body = await request.json().catch(() => null);
  const text = (body as { text?: unknown } | null)?.text;
  if (typeof text !== "string" || !text || text.length > LENGTH) return refuse(400, "a note is {\"text\": \"...\"}");
  const note = await env.DB.prepare("INSERT INTO notes (text) VALUES (?) RETURNING id, text, created").bind(text).first();
  return Response.json(note, { status: 201 });
}

async function one(request: Request, env: Env, id: number): Promise<Response> {
  if (request.method === "GET") {
    const note = await env.DB.prepare("SELECT id, text, created FROM notes WHERE id = ?").bind(id).first();
    return note ? Response.json(note) : refuse(404, "there is no such note");
  }
  if (request.method !== "DELETE") return refuse(405, "GET or DELETE");
  const { meta } = await env.DB.prepare("DELETE FROM notes WHERE id = ?").bind(id).run();
  return meta.changes ? new Response(null, { status: 204 }) : refuse(404, "there is no such note");
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    const id = pathname.match(/^\/notes\/(\d{1,15})$/)?.[1];
    if (id) return one(request, env, Number(id));
    if (pathname !== "/notes") return refuse(404, "there is /notes");
    if (request.method === "GET") return list(env);
    return request.method === "POST" ? create(request, env) : refuse(405, "GET or POST");
  },
};
