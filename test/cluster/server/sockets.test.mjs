// WebSockets over nodes: a client of one on an object of another, sleep and waking, moves that clients do not notice, a node that is killed.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Client } from "../../integration/websockets/lib.mjs";
import { Cluster } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const options = { skip: absent, timeout: 400_000 };

const files = {
  "wrangler.toml": `name = "chat"
main = "index.js"
compatibility_date = "2026-06-01"
[[durable_objects.bindings]]
name = "ROOM"
class_name = "Room"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["Room"]
[cairn.limits]
object_idle_ms = 300
[cairn.cluster]
shards = 16
`,
  "index.js": `import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  born = crypto.randomUUID();
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname.endsWith("/count")) return Response.json([this.ctx.getWebSockets().length, this.born, await this.ctx.storage.get("closed") ?? 0]);
    const { 0: client, 1: server } = new WebSocketPair();
    const name = url.searchParams.get("name");
    this.ctx.acceptWebSocket(server, [name, "all"]);
    this.ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
    server.serializeAttachment({ name, at: url.hostname });
    server.send("welcome " + name);
    return new Response(null, { status: 101, webSocket: client });
  }
  async webSocketMessage(ws, message) {
    const { name } = ws.deserializeAttachment();
    if (message === "who") return ws.send(JSON.stringify([name, this.ctx.getTags(ws), this.ctx.getWebSockets("all").length, this.born]));
    const number = (await this.ctx.storage.get("number") ?? 0) + 1;
    await this.ctx.storage.put("number", number);
    for (const each of this.ctx.getWebSockets("all")) each.send(number + " " + name + ": " + (typeof message === "string" ? message : message.byteLength));
  }
  async webSocketClose(ws, code) {
    await this.ctx.storage.put("closed", (await this.ctx.storage.get("closed") ?? 0) + 1);
  }
}
export default {
  fetch(request, env) {
    return env.ROOM.getByName(new URL(request.url).pathname.split("/")[1]).fetch(request);
  },
};
`,
};

async function start(t, ...names) {
  const cluster = await Cluster.make(t);
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(cluster.project, name), text);
  for (const name of names) await cluster.start(name);
  await cluster.whole(Math.min(names.length, 2));
  return cluster;
}

const open = (cluster, node, room, name) => Client.open(cluster.nodes.get(node), `/${room}/ws?name=${name}`);
const count = async (cluster, node, room) => (await cluster.try(node, `/${room}/count`, 20_000)).value;

test("clients of every node are in one room, which sleeps and wakes", options, async (t) => {
  const cluster = await start(t, "a", "b", "c");
  const clients = {};
  for (const node of ["a", "b", "c"]) {
    clients[node] = await open(cluster, node, "lobby", node);
    assert.equal(await clients[node].next(), `welcome ${node}`);
  }
  clients.a.send("hello");
  for (const node of ["a", "b", "c"]) assert.equal(await clients[node].next(), "1 a: hello");
  const [, , , born] = await clients.b.json("who");
  // It leaves memory, its sockets stay; the next message starts it again.
  await until(async () => (await clients.c.json("who"))[3] !== born || new Promise((resolve) => setTimeout(() => resolve(false), 600)), "it slept");
  for (const node of ["a", "b", "c"]) assert.equal(await clients[node].ask("ping"), "pong");
  clients.b.send(Buffer.alloc(100_000));
  for (const node of ["a", "b", "c"]) assert.equal(await clients[node].next(), "2 b: 100000");
  assert.deepEqual((await clients.c.json("who")).slice(0, 3), ["c", ["c", "all"], 3]);
  // A close is told, whichever node its client is on.
  for (const node of ["a", "b", "c"]) await clients[node].close(1000, "bye");
  await until(async () => (await count(cluster, "a", "lobby"))[2] === 3, "three closes");
  assert.equal((await count(cluster, "b", "lobby"))[0], 0);
});

test("a room that is moved takes its sleeping sockets along, and nobody notices", options, async (t) => {
  const cluster = await start(t, "a", "b", "c");
  const clients = {};
  for (const node of ["a", "b", "c"]) {
    clients[node] = await open(cluster, node, "lobby", node);
    assert.equal(await clients[node].next(), `welcome ${node}`);
  }
  // Each node is emptied in turn: wherever the room is, it goes.
  let number = 0;
  const seen = new Set();
  for (const node of ["a", "b", "c"]) {
    assert.equal((await cluster.command("drain", node)).code, 0);
    const order = ["a", "b", "c"];
    for (let i = 0; ; i++) {
      const from = order[i % 3];
      clients[from].send(`m${i}`);
      number++;
      for (const each of order) assert.equal(await clients[each].next(), `${number} ${from}: m${i}`);
      seen.add((await clients[from].json("who"))[3]);
      if (new RegExp(`^${node} +draining +0 `, "m").test((await cluster.command("nodes")).stdout)) break;
    }
    assert.equal((await cluster.command("drain", node, "--off")).code, 0);
  }
  for (const each of ["a", "b", "c"]) {
    assert.equal(clients[each].over, undefined);
    assert.equal(await clients[each].ask("ping"), "pong");
  }
  assert.ok(seen.size > 1, "it has been on several nodes");
  assert.deepEqual((await count(cluster, "a", "lobby"))[0], 3);
});

test("when the node of a room is killed, its clients hear 1012 and find it where it is next", options, async (t) => {
  const cluster = await start(t, "a", "b", "c");
  const rooms = Array.from({ length: 12 }, (_, i) => `room${i}`);
  const clients = await Promise.all(rooms.map(async (room) => {
    const client = await open(cluster, "a", room, "x");
    assert.equal(await client.next(), "welcome x");
    assert.equal(await client.ask("before"), "1 x: before");
    return client;
  }));
  cluster.nodes.get("b").signal("SIGKILL");
  await Promise.all(clients.map(async (client, i) => {
    for (let tries = 0; ; tries++) {
      client.send("after");
      const got = await client.next().catch((error) => (client.over ? client.over[0] : Promise.reject(error)));
      if (got === 1012) {
        client = await until(async () => open(cluster, "a", rooms[i], "x").catch(() => false), "the room answers");
        assert.equal(await client.next(), "welcome x");
        continue;
      }
      assert.match(got, /^\d+ x: after$/);
      assert.ok(Number(got.split(" ")[0]) > 1, "what was acknowledged is there");
      break;
    }
    await client.close(1000, "");
  }));
});

test("rooms go to a node that has just come back, and nobody in them notices", options, async (t) => {
  const cluster = await start(t, "a", "b", "c");
  const rooms = Array.from({ length: 12 }, (_, i) => `room${i}`);
  await cluster.nodes.get("b").kill();
  await cluster.whole(1);
  const clients = [];
  for (const room of rooms)
    for (const node of ["a", "c"]) {
      const client = await open(cluster, node, room, node);
      assert.equal(await client.next(), `welcome ${node}`);
      clients.push(client);
    }
  const born = async () => Promise.all(rooms.map(async (room) => (await count(cluster, "a", room))[1]));
  const before = await born();
  await cluster.start("b"); // and they say something all the time while some rooms go there
  const owned = () => cluster.engine.ask("SELECT count(*) FROM cairn.shard s JOIN cairn.session x ON x.id = s.owner AND x.live JOIN cairn.disk d ON d.id = x.disk WHERE d.node = 'b'");
  const numbers = rooms.map(() => 0);
  for (let last = false; ; last = Number(await owned()) >= 4) {
    await Promise.all(rooms.map(async (room, i) => {
      const pair = clients.slice(2 * i, 2 * i + 2);
      for (const [n, client] of pair.entries()) {
        client.send("x");
        const expected = `${++numbers[i]} ${["a", "c"][n]}: x`;
        for (const each of pair) assert.equal(await each.next(), expected, room);
      }
    }));
    if (last) break;
  }
  assert.ok((await born()).some((one, i) => one !== before[i]), "no room has moved");
  for (const client of clients) assert.equal(client.over, undefined);
});
