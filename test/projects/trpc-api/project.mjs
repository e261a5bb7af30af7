export default {
  title: "tRPC",
  does: "its own client: queries, a batch, mutations into a Durable Object, streamed batches, a subscription, errors, superjson",
  packages: { "@trpc/server": "11.22.1", "@trpc/client": "11.22.1", superjson: "2.2.6", zod: "4.6.7" },
  known: [{ step: "GET /trpc/greet?input=%7B", why: "the message of `JSON.parse()` for what is no JSON is the engine's" }],
  async script(t) {
    const { createTRPCClient, httpBatchLink, httpBatchStreamLink } = await t.load("@trpc/client");
    const { default: superjson } = await t.loadFile("superjson/dist/index.js");
    const client = (link, user) => createTRPCClient({ links: [link({ url: `${t.url}/trpc`, transformer: superjson, headers: user ? { "x-user": user } : {} })] });
    const ada = client(httpBatchLink, "ada");
    const greeting = await ada.greet.query({ name: "Ada" });
    t.check(greeting.at instanceof Date && greeting.tags instanceof Set, "superjson keeps types");
    t.note("greet", { text: greeting.text, at: greeting.at.getTime(), tags: [...greeting.tags] });
    t.note("add", await ada.todo.add.mutate("one"));
    await ada.todo.add.mutate("two");
    t.note("batch", await Promise.all([ada.todo.list.query(), ada.greet.query({ name: "B" }).then((g) => g.text)]));
    t.check((await ada.todo.list.query()).length === 2, "two todos");
    const bob = client(httpBatchStreamLink, "bob");
    t.note("streamed", await Promise.all([bob.todo.list.query(), bob.greet.query({ name: "C" }).then((g) => g.text)]));
    const nobody = client(httpBatchLink);
    for (const [name, call] of [["no user", () => nobody.todo.list.query()], ["too long", () => nobody.greet.query({ name: "x".repeat(11) })]]) {
      const error = await call().then(() => null, (e) => e);
      t.check(error?.data, name);
      t.note(name, { code: error.data.code, status: error.data.httpStatus, message: error.message });
    }
    const events = await t.get(`/trpc/count?input=${encodeURIComponent(JSON.stringify({ json: 3 }))}`, { headers: { accept: "text/event-stream" } });
    t.check(/"i":2/.test(events.text), "the subscription counts to the end");
    await t.get("/trpc/nothing");
    await t.get("/trpc/greet?input=%7B");
  },
};
