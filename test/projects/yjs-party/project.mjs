export default {
  title: "PartyServer with Yjs (y-partyserver)",
  does: "two Yjs clients edit a document at once, awareness, saved and loaded again; a chat with hibernation, tags, broadcasts",
  packages: { partyserver: "0.5.10", "y-partyserver": "2.2.0", partysocket: "1.3.0", yjs: "13.6.33", "y-protocols": "1.0.7", nanoid: "5.1.16" },
  async script(t) {
    const Y = await t.load("yjs");
    const { default: Provider } = await t.load("y-partyserver/provider");
    const open = (doc) => new Provider(new URL(t.url).host, "one", doc, { party: "doc", protocol: "ws", WebSocketPolyfill: t.WebSocket, disableBc: true });
    const docs = [new Y.Doc(), new Y.Doc()], providers = docs.map(open);
    const texts = docs.map((doc) => doc.getText("text"));
    try {
      await t.until(() => providers.every((p) => p.synced), "both are synchronised");
      texts[0].insert(0, "hello");
      await t.until(() => texts[1].toString() === "hello", "the other sees it");
      texts[0].insert(5, " world");
      texts[1].insert(0, "oh, ");
      await t.until(() => texts.every((text) => text.toString() === "oh, hello world"), "both edits are in both");
      t.note("text", texts.map(String));
      providers[0].awareness.setLocalStateField("user", { name: "Ada" });
      await t.until(() => [...providers[1].awareness.getStates().values()].some((s) => s.user?.name === "Ada"), "presence");
      await t.until(async () => (await fetch(`${t.url}/parties/doc/one`).then((r) => r.json())).saved, "it is saved");
    } finally {
      for (const provider of providers) provider.destroy();
    }
    t.check((await t.get("/parties/doc/one")).json().text === "oh, hello world", "the server has the text");
    const late = new Y.Doc(), provider = open(late);
    await t.until(() => provider.synced && late.getText("text").length > 0, "a late client");
    t.note("late", late.getText("text").toString());
    provider.destroy();
    const a = await t.socket("/parties/chat/room?_pk=a");
    t.note("first", await a.next());
    const b = await t.socket("/parties/chat/room?_pk=b");
    t.note("second", [await b.next(), await a.next()]);
    b.send("hi");
    t.note("heard", [await a.next(), await b.next()]);
    t.check((await t.request("/parties/chat/room", { method: "POST", body: "x" })).json().members === 2, "two members");
    await b.close();
    t.note("left", await a.next());
    await t.get("/parties/nothing/x");
    await t.get("/elsewhere");
  },
};
