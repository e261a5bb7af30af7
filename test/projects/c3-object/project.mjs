export default {
  title: "create-cloudflare: Durable Object",
  does: "the starter as it is: an object called by RPC",
  starter: "npm create cloudflare@2.74.0 -- app --type hello-world-durable-object --lang ts --no-deploy --no-git --no-open --no-agents",
  async script(t) {
    for (let i = 0; i < 3; i++) t.check((await t.get(`/${i}`)).text === "Hello, world!", "the object greets");
  },
};
