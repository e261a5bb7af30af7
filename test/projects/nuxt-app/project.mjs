export default {
  title: "Nuxt (Nitro's cloudflare_module)",
  does: "server rendering, an API with KV, cookies, route rules, server-sent events, a WebSocket, errors, assets",
  packages: { nuxt: "4.5.2", wrangler: "4.158.0" },
  build: ["nuxt build"],
  async script(t) {
    t.check((await t.post("/api/notes", { text: "milk" })).status === 201, "a note");
    t.check((await t.post("/api/notes", {})).status === 422, "no text");
    const page = await t.get("/");
    t.check(page.text.includes("<li>milk</li>"), "the page", page.text);
    t.check((await t.get(page.text.match(/\/_nuxt\/[^"]+\.js/)[0])).status === 200, "its script");
    const jar = t.jar();
    await t.get("/notes/one", { jar });
    t.check((await t.get("/notes/one", { jar })).text.includes("one 2"), "the cookie counts");
    t.check((await t.get("/notes/none", { headers: { accept: "application/json" } })).status === 404, "no note");
    await t.get("/old");
    await t.get("/api/stream");
    await t.request("/api/notes", { method: "DELETE", headers: { accept: "application/json" } });
    const socket = await t.socket("/socket");
    t.note("welcome", await socket.next());
    socket.send("you");
    t.note("socket", await socket.next());
    t.note("closed", (await socket.close()).code);
  },
};
