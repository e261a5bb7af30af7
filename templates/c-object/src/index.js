export default {
  async fetch(request, env) {
    const counter = env.COUNTER.getByName(new URL(request.url).pathname);
    return Response.json(await counter.increment(1));
  },
};
