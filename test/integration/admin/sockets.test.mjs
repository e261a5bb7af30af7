// Who is connected to an object is part of what inspecting it shows, also while it sleeps; looking
// does not wake it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { project, serve } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";
import { ask, command } from "./lib.mjs";
import { objects } from "../lib/toml.mjs";

const dir = project({
  "wrangler.toml": `name = "chat"
main = "index.js"
compatibility_date = "2026-05-01"
${objects({ ROOM: "Room" })}
[cairn.limits]
object_idle_ms = 150
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  async fetch(request) {
    const url = new URL(request.url);
    await this.ctx.storage.put("k", ((await this.ctx.storage.get("k")) ?? 0) + 1);
    const { 0: client, 1: server } = new WebSocketPair();
    if (url.searchParams.has("plain")) server.accept();
    else this.ctx.acceptWebSocket(server, url.searchParams.getAll("tag"));
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage() {}
}
export default { fetch: (request, env) => env.ROOM.getByName("r").fetch(request) };
`,
});
let server;
before(async () => { server = await serve(dir, { lanes: 2 }); });
after(() => server.stop());
const inspect = async () => (await ask({ data: server.data }, "GET", "/api/objects/chat%2FRoom/r")).json;

test("sockets: how many, since when, their tags, whether they sleep", async () => {
  const start = Date.now();
  const one = await Client.open(server, "/?tag=a&tag=ü");
  const two = await Client.open(server, "/");
  const awake = await inspect();
  assert.equal(awake.sockets.count, 2);
  assert.deepEqual(awake.sockets.connections.map(({ tags, hibernatable }) => ({ tags, hibernatable })), [{ tags: ["a", "ü"], hibernatable: true }, { tags: [], hibernatable: true }]);
  for (const { since } of awake.sockets.connections) assert.ok(since >= start - 1 && since <= Date.now());
  // A look at an object in memory is an event, which keeps it there: not too often.
  await server.untilTrue(() => new Promise((resolve) => setTimeout(async () => resolve((await inspect()).sockets.hibernated), 400)), "the sleep");
  const asleep = await inspect();
  assert.equal(asleep.live, false);
  assert.deepEqual(asleep.sockets, { ...awake.sockets, hibernated: true });
  assert.match((await command(server.data, "objects", "inspect", "chat/Room", "r")).stdout, /^sockets +2, hibernated$/m);
  const plain = await Client.open(server, "/?plain");
  assert.deepEqual((await inspect()).sockets.connections.map(({ hibernatable }) => hibernatable), [true, true, false]);
  for (const client of [one, two, plain]) client.socket.close();
  await server.untilTrue(async () => (await inspect()).sockets.count === 0, "the end");
});
