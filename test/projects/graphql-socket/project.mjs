export default {
  title: "graphql-ws in a Durable Object",
  does: "its own client: a query, a mutation, subscriptions over one WebSocket, errors, a refused connection",
  packages: { "graphql-ws": "6.0.8", graphql: "16.15.0" },
  async script(t) {
    const { createClient } = await t.load("graphql-ws");
    const open = (token) => createClient({ url: t.url.replace("http", "ws"), webSocketImpl: t.WebSocket, connectionParams: { token }, retryAttempts: 0, lazy: true });
    const ada = open("good"), bob = open("good");
    const ask = (client, query, variables, each = () => {}) => new Promise((resolve, reject) => {
      const all = [];
      client.subscribe({ query, variables }, { next: (v) => (all.push(v), each(v)), error: reject, complete: () => resolve(all) });
    });
    try {
      t.note("query", await ask(ada, "{ listeners }"));
      t.note("count", await ask(ada, "subscription { count(to: 3) }"));
      const heard = [];
      const stop = bob.subscribe({ query: "subscription { said }" }, { next: (v) => heard.push(v.data.said), error: () => {}, complete: () => {} });
      await t.until(async () => (await ask(ada, "{ listeners }"))[0].data.listeners === 1, "a listener");
      t.note("said", await ask(ada, "mutation($t: String!) { say(text: $t) }", { t: "hello" }));
      await t.until(() => heard.length === 1, "it is heard");
      t.note("heard", heard);
      stop();
      await t.until(async () => (await ask(ada, "{ listeners }"))[0].data.listeners === 0, "nobody listens");
      t.note("wrong", await ask(ada, "{ nothing }").catch((e) => e.map((x) => x.message)));
      t.note("refused", await ask(open("bad"), "{ listeners }").catch((e) => ({ code: e.code, reason: e.reason })));
    } finally {
      await ada.dispose();
      await bob.dispose();
    }
    await t.get("/");
  },
};
