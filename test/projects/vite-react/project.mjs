export default {
  title: "create-vite (React) with the Vite plugin",
  does: "the page with its assets, single-page routes, an API with a Durable Object, the assets binding, conditional requests",
  starter: "npm create vite@9.3.0 -- app --template react-ts --no-interactive",
  packages: { "@cloudflare/vite-plugin": "1.64.0", wrangler: "4.158.0" },
  build: ["vite build"],
  async script(t) {
    const page = await t.get("/", { headers: { "sec-fetch-mode": "navigate" } });
    const script = page.text.match(/src="(\/assets\/[^"]+\.js)"/)?.[1];
    t.check(script, "the page has its script", page.text);
    const asset = await t.get(script);
    t.check(asset.status === 200, "the script is there");
    t.check((await t.get(script, { headers: { "if-none-match": asset.headers.etag } })).status === 304, "the script has not changed");
    await t.get(page.text.match(/href="(\/assets\/[^"]+\.css)"/)[1]);
    t.check((await t.get("/some/route", { headers: { "sec-fetch-mode": "navigate" } })).text === page.text, "a route is the page");
    await t.get("/index.html");
    await t.request("/favicon.svg", { method: "HEAD" });
    t.check((await t.get("/api/count?by=5")).json().value === 5 && (await t.get("/api/count")).json().value === 6, "it counts");
    t.check((await t.get("/api/words")).text === "a few words", "the text is in the bundle");
    t.check((await t.get("/api/icon")).text.includes("<svg"), "the binding has the assets");
    await t.get("/api/nothing");
    await t.post("/", { a: 1 });
  },
};
