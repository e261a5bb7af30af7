// A WebSocket that passes through a service binding: the other worker, or an object of it, answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { Client, config, worker } from "./lib.mjs";

for (const lanes of [1, 2]) {
  test(`through a service binding, ${lanes} lane${lanes > 1 ? "s" : ""}`, async () => {
    const back = project({ "wrangler.toml": config("2026-05-01"), "index.js": worker });
    const front = project({
      "wrangler.toml": 'name = "front"\nmain = "index.js"\ncompatibility_date = "2026-05-01"\n[[services]]\nbinding = "BACK"\nservice = "sockets"\n[cairn]\nhosts = ["127.0.0.1"]\n',
      "index.js": "export default { fetch: (request, env) => env.BACK.fetch(request) };",
    });
    const server = await serve([front, back], { lanes });
    try {
      for (let i = 0; i < 4; i++) {
        const client = await Client.open(server, `/room/service${i}?hello`);
        assert.equal(await client.next(), "hello");
        assert.equal(await client.ask("echo through"), "through");
        assert.deepEqual(await client.close(3100, "bye"), [3100, "from the object"]);
      }
      const upper = await Client.open(server, "/upper");
      assert.equal(await upper.ask("x"), "X");
      assert.deepEqual((await upper.close(3101, ""))[0], 3101);
    } finally {
      await server.stop();
    }
  });
}
