// Hono: parameters, middleware, cookies, a streamed answer, an error handler.
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { getCookie, setCookie } from "hono/cookie";
import { cors } from "hono/cors";
import { streamText } from "hono/streaming";

const app = new Hono();
app.use("*", cors());
app.use("/admin/*", bearerAuth({ token: "secret" }));
app.get("/books/:id{[0-9]+}", (c) => c.json({ id: Number(c.req.param("id")), q: c.req.query("q") }));
app.get("/admin/name", (c) => c.text("root"));
app.get("/visits", (c) => {
  const count = Number(getCookie(c, "visits") ?? 0) + 1;
  setCookie(c, "visits", String(count), { httpOnly: true });
  return c.text(String(count));
});
app.get("/stream", (c) => streamText(c, async (stream) => {
  for (const word of ["one", "two", "three"]) await stream.writeln(word);
}));
app.get("/fail", () => { throw new Error("on purpose"); });
app.onError((error, c) => error.getResponse?.() ?? c.text(`caught: ${error.message}`, 500));
export default app;
