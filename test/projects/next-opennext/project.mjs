export default {
  title: "Next.js (create-next-app) with OpenNext",
  does: "a static page, a streamed one, route handlers with KV and cookies, redirects, middleware, data requests, assets, errors",
  starter: "npx create-next-app@16.4.3 app --yes --skip-install --disable-git --app --ts --no-tailwind --no-eslint",
  packages: { "@opennextjs/cloudflare": "1.20.13", wrangler: "4.158.0" },
  build: ["opennextjs-cloudflare build"],
  async script(t) {
    const page = await t.get("/");
    t.check(page.status === 200 && page.text.includes("</html>"), "the page", page.text);
    t.check((await t.get(page.text.match(/\/_next\/static\/[^"\\]+\.js/)[0])).status === 200, "its script");
    t.check((await t.post("/api/items", { name: "milk" })).status === 201, "an item");
    t.check((await t.post("/api/items", {})).status === 400, "no name");
    t.check((await t.get("/api/items?q=x", { headers: { cookie: "who=ada" } })).json().items[0] === "milk", "the list");
    await t.request("/api/items", { method: "DELETE" });
    t.check((await t.get("/posts/one")).text.includes('id="later"'), "a streamed page");
    await t.get("/posts/one", { headers: { rsc: "1" } });
    t.check((await t.get("/posts/none")).status === 404, "not found");
    t.check([307, 308].includes((await t.get("/posts/old")).status), "a redirect");
    t.check((await t.get("/go")).status === 307, "a redirect of the middleware");
    t.check((await t.get("/alias")).text.includes("<h1>alias</h1>"), "a rewrite of the middleware");
    await t.get("/next.svg");
    await t.get("/nowhere");
  },
};
