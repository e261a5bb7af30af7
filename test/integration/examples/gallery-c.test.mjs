// The gallery with its objects in C (examples/c): the same workers in front, the same tests of their APIs; and the room as
// several people use it.
import assert from "node:assert/strict";
import test from "node:test";
import { exampleInC } from "../lib/module.mjs";
import { serve, tempDir } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";

process.env.CAIRN_EXAMPLES_IN = "c";
await import("./gallery.test.mjs");

test("the chat room in C: history, who is here, asides, a bound on talking, sleep and kill -9", async (t) => {
  const folder = exampleInC("chat-room", { limits: { object_idle_ms: 50 } }), data = tempDir();
  let server = await serve(folder, { lanes: 2, data });
  t.after(() => server.kill());
  const join = (name) => Client.open(server, `/rooms/lobby?name=${encodeURIComponent(name)}`);
  const next = async (client, type) => {
    for (;;) {
      const message = JSON.parse(await client.next());
      if (message.type === type) return message;
    }
  };
  const say = (client, text) => client.send(JSON.stringify({ type: "say", text }));
  const ada = await join("Ada"), grace = await join("Grace Hopper");
  assert.deepEqual((await next(ada, "init")).state.messages, []);
  assert.deepEqual((await next(grace, "here")).names, ["Ada", "Grace Hopper"]);
  say(ada, "  Is anybody here? Grüße  ");
  for (const client of [ada, grace]) {
    const { id, name, text } = await next(client, "message");
    assert.deepEqual([id, name, text], [1, "Ada", "Is anybody here? Grüße"]);
  }
  say(grace, "@Ada only you");
  assert.deepEqual((({ name, to, text }) => [name, to, text])(await next(ada, "aside")), ["Grace Hopper", "Ada", "only you"]);
  await next(grace, "aside");
  say(grace, "@Nobody hello");
  assert.equal((await next(grace, "refused")).reason, "Nobody called Nobody is here.");
  for (const nonsense of ["no json", "{}", JSON.stringify({ type: "say", text: " " }), JSON.stringify({ type: "say", text: "x".repeat(9000) })]) {
    ada.send(nonsense);
    assert.match((await next(ada, "refused")).reason, /^Say something/);
  }
  await new Promise((resolve) => setTimeout(resolve, 300)); // long enough to leave memory
  assert.equal(await ada.ask("ping"), "pong");
  for (let i = 0; i < 15; i++) say(ada, `much ${i}`);
  assert.equal((await next(ada, "refused")).reason, "Not so fast.");
  await next(grace, "message");
  await grace.close(1000, "");
  for (let here = []; here.join() !== "Ada"; ) here = (await next(ada, "here")).names;
  await server.kill();
  server = await serve(folder, { lanes: 2, data });
  const again = await join("Ada");
  const { messages } = (await next(again, "init")).state;
  assert.deepEqual([messages[0].text, messages[1].text], ["Is anybody here? Grüße", "much 0"]);
});
