const ask = (t, query, variables, options) => t.post("/graphql", { query, variables }, options);
export default {
  title: "GraphQL Yoga",
  does: "mutations, variables, aliases, errors, introspection, GET, form upload, subscription as events, health check, GraphiQL",
  packages: { "graphql-yoga": "5.24.1", graphql: "16.15.0" },
  async script(t) {
    t.check((await ask(t, "mutation($t: String!) { add(title: $t) { id shout } }", { t: "emma" })).json().data.add.shout === "EMMA!", "a book is added");
    t.check((await ask(t, "{ all: books { title shout(mark: \"?\") } }")).json().data.all.length === 1, "it is listed");
    t.check((await ask(t, "{ book(id: 7) { title } }")).json().errors[0].extensions.code === "NOT_FOUND", "an error of the resolver");
    await ask(t, "{ nothing }");
    await ask(t, "{ books { ");
    await t.get("/graphql?query=%7Bbooks%7Btitle%7D%7D");
    await t.get("/graphql?query=mutation%7Badd(title%3A%22x%22)%7Bid%7D%7D");
    await ask(t, "{ __schema { queryType { name } types { name kind } } }");
    await ask(t, "{ books { title } }", undefined, { headers: { accept: "application/graphql-response+json" } });
    const events = await ask(t, "subscription { count(to: 3) }", undefined, { headers: { accept: "text/event-stream" } });
    t.check(events.text.match(/"count":/g)?.length === 3, "three events", events.text);
    const form = '--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{books{id}}"}\r\n--b\r\nContent-Disposition: form-data; name="map"\r\n\r\n{}\r\n--b--\r\n';
    await t.request("/graphql", { method: "POST", body: form, headers: { "content-type": "multipart/form-data; boundary=b" } });
    await t.get("/health");
    await t.get("/graphql", { headers: { accept: "text/html" }, quiet: true });
    await t.request("/graphql", { method: "OPTIONS", headers: { origin: "https://a.example", "access-control-request-method": "POST" } });
    await t.get("/elsewhere");
  },
};
