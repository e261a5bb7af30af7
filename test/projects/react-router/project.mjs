export default {
  title: "React Router with the Vite plugin",
  does: "server rendering with D1, deferred data, a form action with redirect, data requests, resource routes, errors, assets",
  packages: { "react-router": "8.4.0", "@react-router/dev": "8.4.0", react: "19.3.1", "react-dom": "19.3.1", isbot: "5.2.3", vite: "8.3.8", "@cloudflare/vite-plugin": "1.64.0", wrangler: "4.158.0" },
  build: ["react-router build"],
  async script(t) {
    const page = await t.get("/");
    t.check(page.text.includes("<title>Guests</title>") && page.text.includes("later"), "the page", page.text);
    t.check((await t.get(page.text.match(/\/assets\/entry[^"]+\.js/)[0])).status === 200, "its script");
    const added = await t.request("/?index", { method: "POST", form: { name: "Ada" } });
    t.check(added.status === 302 && added.headers.location === "/guests/1", "a guest is added");
    t.check((await t.get("/guests/1")).text.includes("<h1>Ada</h1>"), "the guest's page");
    await t.request("/?index", { method: "POST", form: { name: "" } });
    t.check((await t.get("/guests/9")).status === 404, "no such guest");
    await t.get("/guests/1.data");
    await t.get("/_.data");
    await t.request("/_.data?index", { method: "POST", form: { name: "Bob" } });
    t.check((await t.get("/")).text.includes("Bob"), "both are listed");
    await t.get("/api/time");
    await t.request("/api/time", { method: "PUT", json: { a: 1 } });
    await t.get("/nowhere");
    await t.request("/guests/1", { method: "HEAD" });
  },
};
