export default {
  title: "tldraw sync (@tldraw/sync-core)",
  does: "two clients of a room in a Durable Object with SQLite: a shape of one is seen by the other and kept",
  packages: { "@tldraw/sync-core": "5.4.2", "@tldraw/tlschema": "5.4.2", "@tldraw/store": "5.4.2", "@tldraw/utils": "5.4.2", "@tldraw/state": "5.4.2", "@tldraw/validate": "5.4.2", react: "19.3.1" },
  normalise: [[/"serverClock":\d+/g, '"serverClock":0'], [/"connectRequestId":"[^"]+"/g, '"connectRequestId":"…"']],
  async script(t) {
    const { createTLSchema } = await t.load("@tldraw/tlschema");
    const { getTlsyncProtocolVersion } = await t.load("@tldraw/sync-core");
    const schema = createTLSchema().serialize();
    /** The events of a message: some come together as "data". */
    const connect = async (id) => {
      const socket = await t.socket(`/room?sessionId=${id}`);
      socket.send({ type: "connect", connectRequestId: id, schema, protocolVersion: getTlsyncProtocolVersion(), lastServerClock: -1 });
      const hello = await socket.json((m) => m.type === "connect" || m.type === "incompatibility_error");
      t.check(hello.type === "connect", "connected", hello);
      return [socket, hello];
    };
    const [one, hello] = await connect("one"), [two] = await connect("two");
    t.note("connected", { type: hello.type, hydration: hello.hydrationType, records: Object.keys(hello.diff).sort() });
    const page = { id: "page:one", typeName: "page", name: "One", index: "a1", meta: {} };
    const shape = { id: "shape:a", typeName: "shape", type: "geo", x: 1, y: 2, rotation: 0, index: "a1", parentId: page.id, isLocked: false, opacity: 1, meta: {},
      props: { geo: "rectangle", w: 10, h: 20, dash: "draw", color: "black", fill: "none", size: "m", font: "draw", align: "middle", verticalAlign: "middle", growY: 0, url: "", scale: 1, labelColor: "black", flipX: false, flipY: false, richText: { type: "doc", content: [] } } };
    one.send({ type: "push", clientClock: 1, diff: { [page.id]: ["put", page], [shape.id]: ["put", shape] } });
    const events = (m) => (m.type === "data" ? m.data : [m]);
    const result = events(await one.json((m) => events(m).some((e) => e.type === "push_result"))).find((e) => e.type === "push_result");
    t.note("pushed", result.action);
    const patch = events(await two.json((m) => events(m).some((e) => e.type === "patch"))).find((e) => e.type === "patch");
    t.note("patched", patch.diff);
    t.check(patch.diff["shape:a"], "the other sees it");
    one.send({ type: "ping" });
    t.note("pong", (await one.json((m) => m.type === "pong")).type);
    t.check((await t.get("/room")).json().records.includes("shape:a"), "the room has it");
    await one.close();
    await two.close();
    const [, late] = await connect("late");
    t.note("late", Object.keys(late.diff).sort());
    const wrong = await t.socket("/room?sessionId=bad");
    wrong.send({ type: "connect", connectRequestId: "x", schema, protocolVersion: 1, lastServerClock: -1 });
    const { code, reason } = await wrong.closed;
    t.note("too old", { code, reason });
  },
};
