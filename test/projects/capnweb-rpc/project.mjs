export default {
  title: "Cap'n Web (capnweb)",
  does: "its client over a WebSocket and HTTP batches: pipelined calls, objects, callbacks into the client, dates, bytes, errors",
  packages: { capnweb: "0.12.0" },
  async script(t) {
    const { newWebSocketRpcSession, newHttpBatchRpcSession } = await t.load("capnweb");
    const socket = new t.WebSocket(`${t.url.replace("http", "ws")}/api`);
    const api = newWebSocketRpcSession(socket);
    const account = api.login("ada");
    t.note("pipelined", await Promise.all([account.owner, account.add(2), account.add(3)]));
    t.note("callbacks", await account.each([1, 2, 3], (n) => n * 10));
    const value = await api.echo({ at: new Date(0), bytes: new Uint8Array([1, 255]), big: 5n, list: [undefined, null, "é"] });
    t.note("values", { at: value.at.getTime(), bytes: [...value.bytes], big: String(value.big), list: value.list.length });
    t.note("error", await api.login("").then(() => null, (e) => [e.name, e.message]));
    socket.close();
    const batch = newHttpBatchRpcSession(`${t.url}/api`);
    const bob = batch.login("bob");
    t.note("batch", await Promise.all([bob.owner, bob.add(1)]));
    await t.get("/elsewhere");
    await t.get("/api");
  },
};
