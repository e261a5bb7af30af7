// What is over stays over: JavaScript that still holds a closed socket, a cursor of a database that was
// emptied, or an event that was given up reaches nothing by it, and never something that came later
// (base/handles.h H1). Numbers of a table with 9 bits of generation were the same again after 511 uses.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";
import { objects } from "../lib/toml.mjs";

const config = `name = "stale"
main = "index.js"
compatibility_date = "2026-05-01"
${objects({ THING: "Thing" })}`;
const worker = `import { DurableObject } from "cloudflare:workers";
let kept;
let release;
const released = new Promise((resolve) => { release = resolve; });
let answer;
export class Thing extends DurableObject {
  async fill(name) {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (v)");
    for (let i = 0; i < 3; i++) this.ctx.storage.sql.exec("INSERT INTO t VALUES (?)", name + i);
  }
  half() { // a cursor that is kept half read
    this.cursor = this.ctx.storage.sql.exec("SELECT v FROM t");
    return this.cursor.next().value.v;
  }
  rest() {
    return this.cursor.next().value?.v ?? "nothing";
  }
  async empty() {
    await this.ctx.storage.deleteAll();
    try {
      return this.rest();
    } catch (error) {
      return "threw";
    }
  }
  fetch() {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    this.ctx.setHibernatableWebSocketEventTimeout(300);
    return new Response(null, { status: 101, webSocket: client });
  }
  async webSocketMessage(socket, message) {
    if (message === "ping") return socket.send("pong");
    await released;
  }
  noop() {}
  hold() {
    return new Promise((resolve) => { answer = resolve; });
  }
}
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    const thing = (name) => env.THING.getByName(name);
    switch (url.pathname) {
      case "/socket": {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        server.addEventListener("message", (event) => server.send("echo " + event.data));
        kept ??= server;
        return new Response(null, { status: 101, webSocket: client });
      }
      case "/send":
        kept.send("not for you");
        return new Response("sent");
      case "/cursors": {
        await thing("a").fill("a");
        await thing("b").fill("b");
        await thing("a").half();
        return new Response(await thing("a").empty());
      }
      case "/cursors/later": { // somebody else's cursor that is still open has every number there was
        const answers = [];
        for (let i = 0; i < 520; i++) {
          await thing("b").half();
          answers.push(await thing("a").rest().catch(() => "threw"));
          await thing("b").rest();
          await thing("b").rest();
          await thing("b").rest();
        }
        return Response.json([...new Set(answers)]);
      }
      case "/room":
        return thing("room").fetch(request);
      case "/calls": {
        // With the ping: the next one is the 511th user of the number that the given-up event had.
        for (let i = 0; i < 509; i++) await thing("b").noop();
        const held = thing("b").hold().then((value) => "answered with " + value);
        await scheduler.wait(50);
        release();
        await scheduler.wait(50);
        answer("its own");
        return new Response(await held);
      }
    }
  },
};
`;
let server;
before(async () => { server = await serve(project({ "wrangler.toml": config, "index.js": worker }), { nodes: 1 }); }); // objects share the variables of the script
after(() => server.stop());
const text = async (target) => (await server.fetch(target)).text();

test("H1: send() on a closed WebSocket that is still referenced reaches no other client, however many came since", async () => {
  const first = await Client.open(server, "/socket");
  assert.equal(await first.ask("a"), "echo a");
  await first.close(1000, "");
  for (let i = 0; i < 520; i++) {
    const client = await Client.open(server, "/socket");
    assert.equal(await text("/send").catch((e) => e.message), "sent");
    assert.equal(await client.ask("b"), "echo b", `connection ${i}`);
    assert.deepEqual(client.messages, [], `connection ${i}`);
    await client.close(1000, "");
  }
});

test("H1: a cursor from before deleteAll() never has rows of another object", async () => {
  assert.equal(await text("/cursors"), "threw");
  assert.deepEqual(await (await server.fetch("/cursors/later")).json(), ["threw"]);
});

test("H1: an event that was given up for its time answers no later call of another object", async () => {
  const client = await Client.open(server, "/room");
  client.send("wait");
  assert.equal(await client.ask("ping"), "pong"); // K1: not before the first was given up
  assert.equal(await text("/calls"), "answered with its own");
  await client.close(1000, "");
});
