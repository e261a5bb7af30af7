// Two queues, of which one has a backlog: test/bench/backlog.mjs.
const seen = { empty: 0, full: 0 };
let turn = 0;

export default {
  queue(batch) {
    seen[batch.queue] += batch.messages.length;
    batch.ackAll();
  },
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/seen") return Response.json(seen);
    const queue = { "/empty": env.EMPTY, "/full": env.FULL }[pathname];
    turn++;
    await queue?.sendBatch(Array.from({ length: 100 }, (_, i) => ({ body: { i, turn, text: "a message of about a hundred bytes, as they often are" } })));
    return new Response("ok");
  },
};
