export default {
  title: "Hono with zod-openapi and JSX",
  does: "typed routes with refusals, the OpenAPI document, pages in JSX, one streamed with Suspense",
  packages: { hono: "4.13.17", "@hono/zod-openapi": "1.6.3", zod: "4.6.7" },
  async script(t) {
    t.check((await t.get("/books/7?shout=yes")).json().title === "EMMA", "a book");
    t.check((await t.get("/books/x")).status === 422, "a wrong id");
    t.check((await t.post("/books", { id: "1", title: "Emma" })).status === 201, "a new one");
    await t.post("/books", { id: 1 });
    await t.request("/books", { method: "POST", body: "x", headers: { "content-type": "text/plain" } });
    t.check((await t.get("/doc")).json().components.schemas.Book, "the document");
    t.check((await t.get("/page/%3Cb%3E")).text.includes("&lt;b&gt;"), "a page");
    t.check((await t.get("/stream")).text.includes("later"), "a stream");
    await t.get("/nowhere");
  },
};
