import { Hono } from "hono";
import { getSignedCookie, setSignedCookie } from "hono/cookie";
import { cors } from "hono/cors";
import { etag } from "hono/etag";
import { HTTPException } from "hono/http-exception";
import { jwt, sign } from "hono/jwt";
import { secureHeaders } from "hono/secure-headers";
import { streamSSE } from "hono/streaming";
import { validator } from "hono/validator";
import { upgradeWebSocket } from "hono/cloudflare-workers";

type Env = { Bindings: { NOTES: KVNamespace } };
const SECRET = "a secret of this example, long enough";
const app = new Hono<Env>();

app.use("/api/*", cors({ origin: "https://front.example", credentials: true }));
app.use("/page", secureHeaders(), etag());
app.use("/private/*", jwt({ secret: SECRET, alg: "HS256" }));

app.post(
  "/api/notes",
  validator("json", (value, c) => (typeof value.text === "string" ? (value as { text: string }) : c.json({ error: "text is missing" }, 422))),
  async (c) => {
    const { text } = c.req.valid("json");
    const id = `note-${text.length}`;
    await c.env.NOTES.put(id, text, { metadata: { length: text.length } });
    return c.json({ id }, 201);
  },
);
app.get("/api/notes", async (c) => c.json((await c.env.NOTES.list()).keys));
app.get("/api/notes/:id", async (c) => {
  const text = await c.env.NOTES.get(c.req.param("id"));
  if (text === null) throw new HTTPException(404, { message: "no such note" });
  return c.json({ text });
});
app.delete("/api/notes/:id", async (c) => {
  await c.env.NOTES.delete(c.req.param("id"));
  return c.body(null, 204);
});
app.post("/login", async (c) => {
  const { name } = await c.req.parseBody();
  await setSignedCookie(c, "who", String(name), SECRET, { httpOnly: true, path: "/" });
  return c.json({ token: await sign({ name, exp: 4102444800 }, SECRET) });
});
app.get("/me", async (c) => c.json({ who: await getSignedCookie(c, SECRET, "who") }));
app.get("/private/name", (c) => c.json(c.get("jwtPayload")));
app.get("/page", (c) => c.html("<h1>Hello</h1>"));
app.get("/events", (c) =>
  streamSSE(c, async (stream) => {
    for (let i = 0; i < 3; i++) {
      await stream.writeSSE({ event: "tick", id: String(i), data: `tick ${i}` });
      await stream.sleep(5);
    }
  }),
);
app.get("/socket", upgradeWebSocket(() => ({ onMessage: (event, socket) => socket.send(`heard ${event.data}`) })));
app.onError((error, c) => (error instanceof HTTPException ? error.getResponse() : c.json({ error: error.message }, 500)));
app.get("/broken", () => {
  throw new Error("on purpose");
});
export default app;
