// One project with every service, that does what a test asks for: POST /NAME runs `actions.NAME`, in
// the worker's own words, and answers its value or the error.
import { project, serve } from "../lib/server.mjs";

const config = {
  name: "app", main: "index.js", compatibility_date: "2026-01-01",
  durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
  kv_namespaces: [{ binding: "KV", id: "kv" }],
  d1_databases: [{ binding: "DB", database_name: "db", database_id: "db" }],
  r2_buckets: [{ binding: "BUCKET", bucket_name: "bucket" }],
  queues: { producers: [{ binding: "QUEUE", queue: "queue" }] },
};

const index = `import { DurableObject } from "cloudflare:workers";
import actions from "./actions.js";
export class Cell extends DurableObject {
  sql(query, ...values) { return this.ctx.storage.sql.exec(query, ...values).toArray(); }
  put(key, value) { return this.ctx.storage.put(key, value); }
  get(key) { return this.ctx.storage.get(key); }
  echo(value) { return value; }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(socket, message) { socket.send(typeof message === "string" ? String(message.length) : message); }
}
export default { async fetch(request, env) {
  const name = new URL(request.url).pathname.slice(1);
  if (name === "hello") return new Response("hello");
  if (name === "ws") return env.CELL.getByName("ws").fetch(request);
  const action = actions[name];
  if (!action) return new Response("nothing here", { status: 404 });
  try {
    const value = await action(request, env);
    return value instanceof Response ? value : Response.json({ value: value ?? null });
  } catch (error) {
    return Response.json({ error: error.name + ": " + error.message });
  }
} };`;

/** A server whose actions are these functions, written as "name: (request, env) => ...". */
export async function actor(actions, { more = {}, ...options } = {}) {
  const source = Object.entries(actions).map(([name, text]) => `${JSON.stringify(name)}: ${text},`).join("\n");
  const dir = project({
    "wrangler.json": JSON.stringify({ ...config, ...more }), "index.js": index, "actions.js": `export default {\n${source}\n};`,
  });
  const server = await serve(dir, options);
  server.dir = dir;
  /** {value} or {error} of an action, which gets \`input\` as JSON. */
  server.act = async (name, input) => (await server.fetch(`/${name}`, { method: "POST", body: JSON.stringify(input ?? null) })).json();
  return server;
}
