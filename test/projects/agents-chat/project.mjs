const call = async (socket, id, method, ...args) => {
  socket.send({ type: "rpc", id, method, args });
  return socket.json((m) => m.type === "rpc" && m.id === id && m.done !== false);
};
export default {
  title: "Agents SDK",
  does: "agent by HTTP and WebSocket: state synchronised between clients, callable methods, one streamed, schedule, SQL, errors",
  packages: { agents: "0.32.0", ai: "7.0.169", zod: "4.6.7" },
  async script(t) {
    await t.get("/agents/counter/room");
    const one = await t.socket("/agents/counter/room"), two = await t.socket("/agents/counter/room");
    const isState = (m) => m.type === "cf_agent_state";
    t.note("first state", (await one.json(isState)).state);
    await two.json(isState);
    t.note("call", await call(one, "1", "add", 5));
    t.note("the other client sees", (await two.json((m) => isState(m) && m.state.count === 5)).state);
    two.send({ type: "cf_agent_state", state: { count: 7, reminders: [] } });
    t.note("a client's state", (await one.json((m) => isState(m) && m.state.count === 7)).state);
    one.send({ type: "rpc", id: "2", method: "countTo", args: [3] });
    for (let i = 0; i < 3; i++) t.note("stream", await one.json((m) => m.type === "rpc" && m.id === "2"));
    for (const [id, method] of [["3", "fail"], ["4", "notCallable"], ["5", "nothing"]]) t.note(method, await call(one, id, method));
    one.send("hello");
    t.note("echo", await one.next((m) => m.startsWith("echo")));
    t.check((await t.get("/direct")).json().count === 17, "by RPC");
    t.note("remind", await call(one, "6", "remind", "tea"));
    t.note("reminded", (await one.json((m) => isState(m) && m.state.reminders.length === 1)).state);
    await one.close();
    t.check((await t.get("/agents/counter/room")).json().state.count === 17, "the state stays");
    await t.get("/agents/counter/other");
    await t.get("/agents/nothing/x");
    await t.request("/agents/counter/room", { method: "OPTIONS", headers: { origin: "https://a.example" } });
    await t.get("/elsewhere");
  },
};
