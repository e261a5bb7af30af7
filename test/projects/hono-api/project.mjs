export default {
  title: "Hono, an API",
  does: "KV behind validated routes, CORS, signed cookies, JWT, entity tags, server-sent events, a WebSocket, errors",
  packages: { hono: "4.13.17" },
  async script(t) {
    t.check((await t.post("/api/notes", { text: "hello" })).status === 201, "a note is made");
    t.check((await t.post("/api/notes", { text: 1 })).status === 422, "a number is refused");
    await t.request("/api/notes", { method: "POST", body: "{", headers: { "content-type": "application/json" } });
    t.check((await t.get("/api/notes/note-5")).json().text === "hello", "the note is there");
    t.check((await t.get("/api/notes")).json().length === 1, "the list has it");
    await t.request("/api/notes", { method: "OPTIONS", headers: { origin: "https://front.example", "access-control-request-method": "POST" } });
    await t.get("/api/notes", { headers: { origin: "https://front.example" } });
    await t.request("/api/notes/note-5", { method: "DELETE" });
    t.check((await t.get("/api/notes/note-5")).status === 404, "the note is gone");
    const jar = t.jar();
    const { token } = (await t.request("/login", { method: "POST", form: { name: "Ada" }, jar })).json();
    t.check((await t.get("/me", { jar })).json().who === "Ada", "the cookie is hers");
    await t.get("/me", { headers: { cookie: "who=Ada.forged" } });
    t.check((await t.get("/private/name", { headers: { authorization: `Bearer ${token}` } })).json().name === "Ada", "the token is hers");
    t.check((await t.get("/private/name")).status === 401, "no token, no answer");
    await t.get("/private/name", { headers: { authorization: `Bearer ${token}x` } });
    const page = await t.get("/page");
    t.check((await t.get("/page", { headers: { "if-none-match": page.headers.etag } })).status === 304, "the page has not changed");
    await t.request("/page", { method: "HEAD" });
    t.check((await t.get("/events")).text.match(/event: tick/g).length === 3, "three events");
    await t.get("/broken");
    await t.get("/nowhere");
    const socket = await t.socket("/socket");
    socket.send("you");
    t.note("socket", await socket.next());
    t.note("close", await socket.close());
  },
};
