// Calls the worker in C, and sends it messages.
const failure = (promise) => promise.then((value) => ["no failure", value], (error) => [error.name, error.message]);

const scenarios = {
  async fetch({ FRONT }) {
    const response = await FRONT.fetch("https://front/hello");
    return [response.status, await response.text(), response.headers.get("content-type")];
  },
  async post({ FRONT }) {
    const { method, url, body } = await (await FRONT.fetch("https://front/echo", { method: "POST", body: "a body" })).json();
    return [method, url, body];
  },
  later: ({ FRONT }) => Promise.all(Array.from({ length: 20 }, async () => (await FRONT.fetch("https://front/later")).text())),
  sum: ({ FRONT }) => FRONT.sum(1, 2, 3),
  wrong: ({ FRONT }) => failure(FRONT.sum(1, "two")),
  nothing: ({ FRONT }) => failure(FRONT.nothing()),
  throws: ({ FRONT }) => failure(FRONT.fetch("https://front/throw")),
  async send({ QUEUE }) {
    await QUEUE.send("plain");
    await QUEUE.send({ wish: "object" });
    await QUEUE.send(new Uint8Array([1, 2, 3]), { contentType: "bytes" });
    await QUEUE.send({ wish: "value", when: new Date() }, { contentType: "v8" });
    await QUEUE.send("retry", { contentType: "text" });
    await QUEUE.send("fail");
    return "sent";
  },
};

export default {
  async fetch(request, env) {
    return Response.json(await scenarios[new URL(request.url).pathname.slice("/driver/".length)](env));
  },
};
