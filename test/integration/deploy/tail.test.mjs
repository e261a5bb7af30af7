// wrangler tail: listeners to a worker over a WebSocket (src/worker/taps.h L1 to L4, src/admin/live.h).
import assert from "node:assert/strict";
import net from "node:net";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { Client, dataFolder, empty, token } from "./lib.mjs";
import { run } from "../lib/cairn.mjs";
import { WebSocket } from "ws";

const source = `
import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject { hear(text) { console.log("room heard", text); return 1; } }
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") throw new TypeError("on purpose");
    if (pathname === "/room") return new Response(String(await env.ROOM.getByName("a").hear("you")));
    if (pathname === "/big") { console.log("x".repeat(100_000)); return new Response("big"); }
    console.log("said", { a: [1, 2] }, pathname); console.warn("careful");
    return new Response("ok", { status: 201 });
  },
};`;
const metadata = { bindings: [{ type: "durable_object_namespace", name: "ROOM", class_name: "Room" }], migrations: { new_tag: "v1", steps: [{ new_sqlite_classes: ["Room"] }] } };

/** Connects a listener: {events, closed, ws}. */
async function listen(t, url) {
  const ws = new WebSocket(url, "trace-v1");
  const listener = { ws, events: [], closed: undefined };
  ws.on("message", (data) => listener.events.push(JSON.parse(data)));
  ws.on("close", (code) => { listener.closed = code; });
  ws.on("error", () => {});
  t.after(() => ws.terminate());
  await new Promise((resolve, reject) => { ws.on("open", resolve); ws.on("error", reject); });
  ws.send(JSON.stringify({ debug: false }));
  return listener;
}
const tail = (client, filters = []) => client.result("POST", "workers/scripts/w/tails", { json: { filters } });

test("events come in the platform's form, to every listener by its filters, until the tail is deleted", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", source, { metadata });
  const { items: [{ id: version }] } = await client.result("GET", "workers/scripts/w/versions");
  const session = await tail(client);
  assert.match(session.id, /^[0-9a-f]{32}$/);
  assert.ok(Date.parse(session.expires_at) > Date.now());
  const all = await listen(t, session.url);
  assert.equal(all.ws.protocol, "trace-v1");
  const errors = await listen(t, (await tail(client, [{ outcome: ["exception"] }])).url);
  const posts = await listen(t, (await tail(client, [{ method: ["POST"] }, { header: { key: "X-Who", query: "me" } }])).url);
  const said = await listen(t, (await tail(client, [{ query: "/needle" }])).url);
  const own = await listen(t, (await tail(client, [{ client_ip: ["self"] }, { scriptVersion: version }])).url);
  const none = await listen(t, (await tail(client, [{ sampling_rate: 0 }])).url);

  await server.fetch("/path?token=0123456789abcdef0123456789abcdef", { headers: { authorization: "Bearer secret", "x-plain": "seen" } });
  await server.fetch("/throw");
  await server.fetch("/needle", { method: "POST", headers: { "x-who": "it is me" } });
  await server.fetch("/x", { method: "POST", headers: { "x-who": "another" } });
  await server.fetch("/room");
  await server.untilTrue(() => all.events.length === 6, "six events");

  const of = (path) => all.events.find(({ event }) => event.request && new URL(event.request.url).pathname === path);
  const first = of("/path");
  assert.equal(first.scriptName, "w");
  assert.deepEqual(first.scriptVersion, { id: version });
  assert.equal(first.outcome, "ok");
  assert.equal(first.event.request.method, "GET");
  assert.deepEqual(first.event.response, { status: 201 });
  assert.deepEqual(first.logs.map(({ level, message }) => [level, message]), [["log", ["said", { a: [1, 2] }, "/path"]], ["warn", ["careful"]]]);
  assert.deepEqual(first.exceptions, []);
  // L3
  assert.equal(first.event.request.headers.authorization, "REDACTED");
  assert.equal(first.event.request.headers["x-plain"], "seen");
  assert.match(first.event.request.url, /token=REDACTED$/);
  assert.equal(first.kind, undefined);
  const thrown = of("/throw");
  assert.equal(thrown.outcome, "exception");
  assert.deepEqual(thrown.exceptions.map(({ name, message }) => [name, message]), [["TypeError", "on purpose"]]);
  const room = all.events.find(({ entrypoint }) => entrypoint === "Room");
  assert.equal(room.event.rpcMethod, "hear");
  assert.deepEqual(room.logs[0].message, ["room heard", "you"]);

  await server.untilTrue(() => own.events.length === 5, "all requests of this machine");
  assert.deepEqual(errors.events.map(({ outcome }) => outcome), ["exception"]);
  assert.deepEqual(posts.events.map(({ event }) => new URL(event.request.url).pathname), ["/needle"]);
  assert.deepEqual(said.events.map(({ event }) => new URL(event.request.url).pathname), ["/needle"]);
  assert.equal(none.events.length, 0);

  assert.equal((await client.result("GET", "workers/scripts/w/tails")).length, 6);
  await client.result("DELETE", `workers/scripts/w/tails/${session.id}`);
  await server.untilTrue(() => all.closed === 1000, "the close");
  assert.equal((await client.ask("DELETE", `workers/scripts/w/tails/${session.id}`)).status, 404);
  posts.ws.close();
  await server.untilTrue(async () => (await client.result("GET", "workers/scripts/w/tails")).length === 4, "four that are left");
  // A redeployment changes nothing for listeners.
  await client.deploy("w", source.replaceAll("said", "told"), { metadata: { bindings: metadata.bindings } });
  await server.fetch("/throw");
  await server.untilTrue(() => errors.events.length === 2, "the event of the next version");
  assert.notEqual(errors.events[1].scriptVersion.id, version);
  assert.equal(await server.text("/after"), "ok");
  await server.stop();
});

test("listeners are bounded, a secret is good once, and a token that is revoked hears no more", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const other = token(data, "listener", "read");
  await client.deploy("w", source, { metadata });
  const reader = new Client(server, other);
  const { url } = await tail(reader);
  const heard = await listen(t, url);
  await assert.rejects(listen(t, url), /404/);
  await assert.rejects(listen(t, `${new URL(url).origin}/client/v4/tails/${"0".repeat(32)}`), /404/);
  assert.equal((await fetch(url.replace("ws:", "http:"))).status, 426);
  for (const filters of [{}, [{ unknown: 1 }], [{ method: "GET" }], ["x"], [{ query: "a", method: [] }], Array(20).fill({ query: "a" })])
    assert.ok((await client.ask("POST", "workers/scripts/w/tails", { json: { filters } })).status >= 400, JSON.stringify(filters));
  assert.equal((await client.ask("POST", "workers/scripts/nobody/tails", { json: { filters: [] } })).status, 404);
  for (let i = 0; i < 9; i++) await tail(client);
  assert.equal((await client.ask("POST", "workers/scripts/w/tails", { json: { filters: [] } })).body.errors[0].code, 10057);

  await server.fetch("/one");
  await server.untilTrue(() => heard.events.length === 1, "an event");
  assert.equal(run(["tokens", "revoke", other.id, "--data", data]).status, 0);
  await server.fetch("/two");
  await server.untilTrue(() => heard.closed !== undefined, "the end of the listener");
  assert.equal(heard.events.length, 1);
});

test("one that does not read is told how much it has missed, and nobody waits for it", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", source, { metadata });
  const { url } = await tail(client);
  const { hostname, port, pathname } = new URL(url);
  const socket = net.connect(port, hostname);
  t.after(() => socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: trace-v1\r\nSec-WebSocket-Key: ${randomBytes(16).toString("base64")}\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.write(Buffer.concat([Buffer.from([0x81, 0x02]), Buffer.from("{}")])); // not masked, as wrangler sends it
  socket.pause();
  for (let i = 0; i < 150; i++) assert.equal(await server.text("/big"), "big"); // 15 MB for it
  let text = "";
  socket.on("data", (bytes) => { text = (text + bytes.toString("latin1")).slice(-1_000_000); });
  socket.resume();
  await server.untilTrue(() => /\d+ events were dropped/.test(text), "the word about what was missed");
  assert.equal(await server.text("/"), "ok");
});
