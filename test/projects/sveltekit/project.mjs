export default {
  title: "SvelteKit (sv create) with adapter-cloudflare",
  does: "pages, form actions into KV, cookies, data requests, endpoints, a stream, immutable assets, errors",
  starter: "npx sv@0.17.1 create app --template minimal --types ts --no-add-ons --no-install",
  packages: { "@sveltejs/adapter-cloudflare": "7.2.9", wrangler: "4.158.0" },
  build: ["npm run build"],
  async script(t) {
    const jar = t.jar(), origin = { origin: t.url, accept: "text/html" };
    const page = await t.get("/");
    t.check(/Welcome to SvelteKit/.test(page.text), "the page is rendered", page.text);
    await t.get(page.text.match(/\/?(_app\/immutable\/entry\/start[^"]+\.js)/)[1].replace(/^/, "/"));
    t.check((await t.request("/notes?/add", { method: "POST", form: { text: "milk" }, headers: origin, jar })).text.includes("<li>milk</li>"), "a note is added");
    t.check((await t.get("/notes", { jar })).text.includes("Last: milk"), "the cookie is kept");
    t.check((await t.request("/notes?/add", { method: "POST", form: { text: "" }, headers: origin, jar })).status === 400, "an empty note is refused");
    await t.request("/notes?/add", { method: "POST", form: { text: "tea" }, headers: { ...origin, accept: "application/json", "x-sveltekit-action": "true" }, jar });
    await t.get("/notes/__data.json", { jar });
    t.check((await t.request("/notes?/add", { method: "POST", form: { text: "x" }, headers: { origin: "https://evil.example" } })).status === 403, "another site may not post");
    t.check((await t.request("/notes?/clear", { method: "POST", form: {}, headers: origin, jar })).status === 303, "cleared");
    await t.get("/notes");
    t.check((await t.post("/api/echo?q=1", { a: [1] })).json().got.a[0] === 1, "the endpoint");
    await t.post("/api/echo?fail", {});
    await t.get("/api/echo");
    await t.request("/api/echo", { method: "PUT" });
    await t.get("/nowhere");
    await t.get("/notes/");
    await t.get("/robots.txt");
  },
};
