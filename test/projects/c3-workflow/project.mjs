export default {
  title: "create-cloudflare: Workflow",
  does: "the starter as it is: an instance is made and asked for its status",
  starter: "npm create cloudflare@2.74.0 -- app --type hello-world-workflows --lang ts --no-deploy --no-git --no-open --no-agents",
  missing: { message: /workflows/, why: "Cairn has no Workflows; it says so at start, with the line of the key" },
  async script(t) {
    const { id } = (await t.get("/", { quiet: true })).json();
    t.check((await t.get(`/?instanceId=${id}`, { quiet: true })).json().status.status, "it has a status");
  },
};
