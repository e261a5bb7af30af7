export default {
  title: "Remix",
  does: "server rendering with KV, form actions, signed session cookies, data requests, error boundaries, assets",
  packages: { "@remix-run/cloudflare": "2.17.3", "@remix-run/react": "2.17.3", "@remix-run/dev": "2.17.3", vite: "6.4.6", react: "18.3.1", "react-dom": "18.3.1", isbot: "5.2.3" },
  build: ["remix vite:build"],
  known: [{ step: "GET /todos/none", why: "a `statusText` that was not given is the reason phrase; it is empty in newer versions of workerd" }],
  async script(t) {
    const jar = t.jar();
    const page = await t.get("/");
    t.check(page.text.includes("Last: "), "the page", page.text);
    t.check((await t.get(page.text.match(/\/assets\/[^"]+\.js/)[0])).status === 200, "its script");
    t.check((await t.request("/?index", { method: "POST", form: { text: "milk" }, jar })).status === 302, "a todo");
    t.check((await t.get("/", { jar })).text.includes("<li>milk</li>"), "it is listed");
    t.check((await t.request("/?index", { method: "POST", form: { text: "" }, jar })).status === 400, "no text");
    await t.get("/", { headers: { cookie: "session=forged" } });
    await t.get("/todos/milk");
    t.check((await t.get("/todos/none")).status === 404, "no todo");
    await t.get("/?_data=routes%2F_index", { jar });
    await t.get("/todos/milk?_data=routes%2Ftodos.%24id");
    await t.get("/nowhere");
    await t.request("/todos/milk", { method: "HEAD" });
  },
};
