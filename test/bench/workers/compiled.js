// The same objects in JavaScript and in C (compiled.c), behind one worker: /js/... and /c/...
//
//     /js/counter/METHOD?name=a&times=1   so many calls of a counter, one after the other
//     /js/limit?name=7                    a sliding window
//     /js/hit?name=a                      an object without storage
//     /js/room?name=a                     a WebSocket of a room
export { Counter, Limiter, Memory } from "./objects.js";
export { Room } from "./sockets.js";

const bindings = (env, language) => language === "c"
  ? { counter: env.C_COUNTER, limiter: env.C_LIMITER, memory: env.C_MEMORY, room: env.C_ROOM }
  : { counter: env.COUNTER, limiter: env.LIMITER, memory: env.MEMORY, room: env.ROOM };

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const name = url.searchParams.get("name") ?? "a";
    const [, language, kind, method] = url.pathname.split("/");
    if (language === "hello") return new Response("hello");
    const { counter, limiter, memory, room } = bindings(env, language);
    switch (kind) {
      case "counter": {
        const stub = counter.getByName(name);
        if (method === "fetch") return stub.fetch(request);
        let n = 0;
        for (let times = Number(url.searchParams.get("times") ?? 1); times > 0; times--) n = await stub[method]();
        return Response.json({ n });
      }
      case "limit":
        return Response.json(await limiter.getByName(`shard${Number(name) % 10}`).allow(name, 1e9, 1000));
      case "hit":
        return Response.json({ n: await memory.getByName(name).hit() });
      case "room":
        return room.getByName(name).fetch(request);
    }
    return new Response("not found", { status: 404 });
  },
};
