export default {
  title: "Astro with @astrojs/cloudflare",
  does: "server pages with KV, sessions, forms, cookies, one prebuilt, endpoints, middleware, redirects, a foreign form refused",
  packages: { astro: "7.3.5", "@astrojs/cloudflare": "14.3.3", wrangler: "4.158.0" },
  build: ["astro build"],
  async script(t) {
    const jar = t.jar(), origin = { origin: t.url };
    t.check((await t.get("/")).text.includes("You: unknown"), "the page");
    t.check((await t.request("/", { method: "POST", form: { name: "Ada" }, headers: origin, jar })).status === 303, "a guest");
    const page = await t.get("/", { jar });
    t.check(page.text.includes("You: Ada") && /<li[^>]*>Ada<\/li>/.test(page.text), "the session and the list", page.text);
    t.check((await t.request("/", { method: "POST", form: { name: "" }, headers: origin })).status === 400, "no name");
    t.check((await t.request("/", { method: "POST", form: { name: "x" }, headers: { origin: "https://evil.example" } })).status === 403, "another site");
    await t.get("/about");
    await t.get("/about/");
    t.check((await t.get("/posts/one?q=%3Cb%3E")).text.includes("&lt;b&gt;"), "a post");
    await t.get("/posts/old");
    t.check((await t.get("/posts/none")).status === 404, "no post");
    await t.post("/api/echo", { a: 1 });
    t.check((await t.get("/api/echo")).json().local === "by the middleware", "middleware");
    await t.request("/api/echo", { method: "DELETE", headers: origin });
    await t.get("/nowhere");
    await t.request("/posts/one", { method: "HEAD" });
  },
};
