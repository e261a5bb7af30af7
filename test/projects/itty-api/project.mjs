export default {
  title: "itty-router, an API",
  does: "a router within a router, parameters, bodies, cookies, queries, CORS, errors",
  packages: { "itty-router": "6.0.0" },
  async script(t) {
    t.check((await t.post("/api/items/a", { n: 1 })).status === 201, "an item is made");
    t.check((await t.get("/api/items/a")).json().n === 1, "the item is there");
    await t.request("/api/items/f", { method: "POST", form: { a: "1", b: "two words" } });
    await t.get("/api/items/f");
    await t.get("/api/items/none");
    await t.get("/api/files/a/b/c.txt");
    await t.get("/api/image.png");
    await t.get("/api/image");
    await t.get("/cookies", { headers: { cookie: "a=1; b=two" } });
    await t.get("/query?a=1&a=2&b=%20x");
    await t.request("/query", { method: "OPTIONS", headers: { origin: "https://front.example", "access-control-request-method": "GET" } });
    await t.get("/query", { headers: { origin: "https://front.example" } });
    t.check((await t.get("/throws")).status === 500, "a thrown error is an answer");
    t.check((await t.get("/refused")).status === 418, "the teapot");
    t.check((await t.get("/nowhere")).status === 404, "404");
  },
};
