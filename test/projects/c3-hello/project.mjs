export default {
  title: "create-cloudflare: Hello World",
  does: "the starter as it is: methods, paths, ranges",
  starter: "npm create cloudflare@2.74.0 -- app --type hello-world --lang ts --no-deploy --no-git --no-open --no-agents",
  async script(t) {
    t.check((await t.get("/")).text === "Hello World!", "it greets");
    await t.get("/a/b?c=d", { headers: { range: "bytes=0-3" } });
    await t.post("/", { a: 1 });
    await t.request("/", { method: "HEAD" });
    await t.request("/", { method: "OPTIONS" });
  },
};
