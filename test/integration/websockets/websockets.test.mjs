// WebSockets of workers and objects, with one lane and with two; the client is npm's ws.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { after, before, describe, test } from "node:test";
import { project, raw, serve } from "../lib/server.mjs";
import { Client, WebSocket, config, makeProject } from "./lib.mjs";

const dir = makeProject();

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    let server;
    before(async () => { server = await serve(dir, { lanes }); });
    after(() => server.stop());

    let unique = 0;
    /** Names that spread over the lanes. */
    const fresh = () => `r${lanes}-${++unique}`;
    const call = async (name, method, ...args) => (await server.fetch(`/room/${name}/${method}?${args.map((a) => `arg=${a}`).join("&")}`)).json();
    const logHas = (name, text) => server.untilTrue(async () => (await call(name, "log")).some((line) => line.startsWith(text)), text);

    test("DO-WS-1: a pair in a worker, accept, send, close, events in order and never early", async () => {
      assert.deepEqual(await (await server.fetch("/local")).json(), {
        during: 0,
        events: [["message", "queued before accept"], ["message", "now"], ["message", "blob"]],
        close: [4001, "gone", true],
        states: [3, 3],
      });
    });
    test("DO-WS-12: binaryType is blob by default", async () => {
      assert.equal(await (await server.fetch("/binary")).json(), "Blob");
    });
    test("DO-WS-1: Response 101 of a worker, its headers, text and bytes", async () => {
      const client = await Client.open(server, "/upper", ["chat"], { perMessageDeflate: true });
      assert.equal(client.socket.protocol, "chat");
      assert.equal(await client.ask("héllo"), "HÉLLO");
      assert.deepEqual(await client.ask(Buffer.from([0, 255])), Buffer.from([0, 255]));
      assert.equal(await client.ask(""), "");
      assert.deepEqual(await client.ask(Buffer.alloc(0)), Buffer.alloc(0));
      assert.equal((await client.ask("compress me ".repeat(1000))).length, 12000);
      client.send("stop");
      assert.deepEqual(await client.closed, [4005, "stopped"]);
    });
    test("DO-WS-1: an object that accept()s, by way of a stub", async () => {
      for (let i = 0; i < 4; i++) {
        const name = fresh();
        const client = await Client.open(server, `/plain/${name}`);
        assert.equal(await client.ask("one"), "one");
        const life = await client.ask("life");
        assert.equal(await (await server.fetch(`/plain/${name}/life`)).json(), Number(life));
        assert.deepEqual(await client.close(4010, "bye"), [4010, "bye"]); // DO-WS-10: replied by itself
        await server.untilTrue(async () => (await (await server.fetch(`/plain/${name}/lastClose`)).json()) !== null, "the close event");
        assert.deepEqual(await (await server.fetch(`/plain/${name}/lastClose`)).json(), ["close", 4010, "bye", true, 3]);
      }
    });
    test("DO-WS-1: messages to an accepted socket wait for the input gate", async () => {
      assert.deepEqual(await (await server.fetch(`/plain/${fresh()}/locked`)).json(), ["lock ends", "before", "inside"]);
    });
    test("DO-WS-1: a script accepts a socket that another object made", async () => {
      for (let i = 0; i < 4; i++) {
        assert.deepEqual(await (await server.fetch(`/room/${fresh()}/stub`)).json(), { status: 101, got: ["hello", "one"], closed: [4003, "by the room", true] });
      }
    });
    test("DO-WS-1: a Response 101 without a handshake is an error, a bad handshake is refused", async () => {
      assert.equal((await server.fetch("/upper")).status, 500);
      await server.until(/did not contain the header "Upgrade: websocket"/);
      const head = "GET /upper HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n";
      assert.match(await raw(server.port, `${head}Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`), /^HTTP\/1.1 426 [^]*sec-websocket-version: 13/i);
      assert.match(await raw(server.port, `${head}Sec-WebSocket-Version: 13\r\n\r\n`), /^HTTP\/1.1 400 /);
    });
    test("DO-WS-1: a pair whose other end nobody keeps is closed with 1006", async () => {
      const client = await Client.open(server, "/dead");
      assert.equal((await client.closed)[0], 1006);
    });

    test("DO-WS-2 DO-WS-3 DO-WS-4 DO-WS-5 DO-WS-6 DO-WS-12: limits and their errors", async () => {
      const errors = await call(fresh(), "errors");
      const kinds = Object.fromEntries(Object.entries(errors).map(([key, value]) => [key, key === "sameTags" ? value.map((t) => t.length) : value[0]]));
      assert.deepEqual(kinds, {
        tags: "Error", tagLength: "Error", twice: "Error", accepted: "Error", acceptAfter: "TypeError", notSocket: "TypeError",
        foreign: "Error", same: "no error", sameTags: [3, 256], unaccepted: "TypeError", code: "InvalidAccessError", code2: "InvalidAccessError",
        reasonAlone: "InvalidAccessError", longReason: "SyntaxError", autoLong: "RangeError", timeoutLong: "Error", useAccepted: "no error",
      });
    });
    test("DO-WS-3: tags, sockets by tag, the same objects each time", async () => {
      const name = fresh();
      const a = await Client.open(server, `/room/${name}?tag=red&tag=blue`);
      const b = await Client.open(server, `/room/${name}?tag=blue`);
      const c = await Client.open(server, `/room/${name}`);
      assert.deepEqual(await a.json("tags"), ["red", "blue"]);
      assert.deepEqual(await c.json("tags"), []);
      assert.deepEqual(await Promise.all([call(name, "sockets"), call(name, "sockets", "blue"), call(name, "sockets", "red"), call(name, "sockets", "none")]), [3, 2, 1, 0]);
      a.send("all blue hello blue");
      assert.equal(await a.next(), "hello blue");
      assert.equal(await b.next(), "hello blue");
      c.send("all * hello all");
      assert.deepEqual(await Promise.all([a.next(), b.next(), c.next()]), ["hello all", "hello all", "hello all"]);
      assert.deepEqual(await a.json("same"), { same: true });
      await b.close(1000, "");
      await logHas(name, "close 1000");
      await server.untilTrue(async () => (await call(name, "sockets", "blue")) === 1, "one blue socket");
    });
    test("DO-WS-1: readyState, protocol, url and extensions of a hibernatable socket", async () => {
      const client = await Client.open(server, `/room/${fresh()}`, ["v1", "v2"], { perMessageDeflate: true });
      assert.equal(client.socket.protocol, "v1");
      assert.deepEqual(await client.json("props"), [1, "v1", null, "permessage-deflate", true]);
    });
    test("DO-WS-4: attachments are copies, up to 16,384 bytes", async () => {
      const client = await Client.open(server, `/room/${fresh()}?attach=ann`);
      assert.deepEqual(await client.json("attachment"), { who: "ann", at: "1970-01-01T00:00:00.000Z", date: true });
      assert.deepEqual(await client.json("attach x"), { list: ["x"] });
      assert.equal((await client.json("attachBytes 16000"))[0], "no error");
      assert.match((await client.json("attachBytes 16385"))[1], /cannot be larger than 16384 bytes/);
      const bare = await Client.open(server, `/room/${fresh()}`);
      assert.equal(await bare.ask("attachment"), "null");
    });
    test("DO-WS-5: the automatic response and its time", async () => {
      const name = fresh();
      const client = await Client.open(server, `/room/${name}`);
      assert.deepEqual(await client.json("stamp"), { time: null, date: false });
      assert.deepEqual(await client.json("auto marco polo"), ["marco", "polo"]);
      const before = Date.now();
      assert.equal(await client.ask("marco"), "polo");
      const { time, date } = await client.json("stamp");
      assert.ok(date && time >= before - 50 && time <= Date.now() + 50);
      assert.equal(await client.ask("auto"), "null");
      client.send("marco");
      assert.equal(await client.ask("echo the pair is gone"), "the pair is gone");
    });
    test("DO-WS-6: the event time-out ends a handler, not the socket", async () => {
      const name = fresh();
      const client = await Client.open(server, `/room/${name}`);
      assert.deepEqual(await client.json("timeout"), { timeout: null });
      assert.deepEqual(await client.json("timeout 300"), { timeout: 300 });
      client.send("sleep 60000 never");
      assert.equal(await client.ask("echo next"), "next");
      assert.deepEqual(await client.json("timeout none"), { timeout: null });
    });
    test("DO-WS-7: pings are answered and never seen", async () => {
      const name = fresh();
      const client = await Client.open(server, `/room/${name}`);
      const pong = once(client.socket, "pong");
      client.socket.ping("abc");
      assert.equal((await pong)[0].toString(), "abc");
      client.socket.pong("unasked");
      assert.equal(await client.ask("echo on"), "on");
      assert.deepEqual(await call(name, "log"), ["constructor"]);
    });
    test("DO-WS-8: large messages, text and binary, both ways; past 32 MiB 1009", async () => {
      const name = fresh();
      const client = await Client.open(server, `/room/${name}`, [], { maxPayload: 64 << 20 });
      const bytes = Buffer.alloc(8 << 20, 7);
      assert.ok(bytes.equals(await client.ask(bytes)));
      assert.equal((await client.ask("big 5000000")).length, 5_000_000);
      client.send(Buffer.alloc((32 << 20) + 1));
      assert.equal((await client.closed)[0], 1009);
      await logHas(name, "error the message is too large");
      await logHas(name, "close 1006");
    });
    test("DO-WS-9: a clean close, a reset and a vanished client all reach webSocketClose", async () => {
      const name = fresh();
      const clean = await Client.open(server, `/room/${name}`);
      assert.deepEqual(await clean.close(3001, "clean"), [3001, "from the object"]);
      await logHas(name, "close 3001 clean true 2 listed=true");
      const cut = await Client.open(server, `/room/${name}`);
      cut.socket.terminate();
      await logHas(name, "close 1006 WebSocket disconnected without sending Close frame. false");
      const none = await Client.open(server, `/room/${name}`);
      none.socket.close();
      assert.equal((await none.closed)[0], 1000);
      await logHas(name, "close 1005  true");
      await server.untilTrue(async () => (await call(name, "sockets")) === 0, "no sockets");
    });
    test("DO-WS-10: a close is answered by itself when the handler does not, also if it throws", async () => {
      const name = fresh();
      for (const reason of ["leave it", "throw"]) {
        const client = await Client.open(server, `/room/${name}`);
        assert.deepEqual(await client.close(3002, reason), [3002, reason]);
      }
      await server.until(/webSocketClose\(\) threw: .*in webSocketClose/);
    });
    test("DO-WS-10: no send after one's own close", async () => {
      const name = fresh();
      const client = await Client.open(server, `/room/${name}`);
      client.send("close 4100 own close");
      assert.deepEqual(await client.closed, [4100, "own close"]);
      await logHas(name, "after close: TypeError Can't call WebSocket send() after close(). 2");
      await logHas(name, "close 4100");
    });
    test("DO-WS-11: order per socket is kept while handlers wait, sockets do not wait for each other", async () => {
      const name = fresh();
      const a = await Client.open(server, `/room/${name}`);
      const b = await Client.open(server, `/room/${name}`);
      a.send("hold slow");
      for (let i = 0; i < 20; i++) a.send(`echo ${i}`);
      assert.equal(await b.ask("echo meanwhile"), "meanwhile");
      assert.equal(a.messages.length, 0);
      b.send("release");
      const got = [];
      for (let i = 0; i < 21; i++) got.push(await a.next());
      assert.deepEqual(got, ["slow", ...Array.from({ length: 20 }, (_, i) => String(i))]);
    });
    test("DO-WS-11: two upgrades at once", async () => {
      const name = fresh();
      const clients = await Promise.all(Array.from({ length: 10 }, () => Client.open(server, `/room/${name}?hello`)));
      assert.deepEqual(await Promise.all(clients.map((c) => c.next())), Array(10).fill("hello"));
      assert.equal(await call(name, "sockets"), 10);
      assert.equal((await call(name, "log")).length, 1);
    });
    test("the same text to many, and what was sent to a closed socket, never mix", async () => {
      const client = await Client.open(server, `/room/${fresh()}`);
      client.send("caching");
      const got = [];
      for (let i = 0; i < 6; i++) got.push(await client.next());
      assert.deepEqual(got.map((text) => text.slice(0, 6) + text.length), ["first5", "second6", "second6", "xxxxxx70000", "xxxxxx70000", "second6"]);
    });
    test("a throw in webSocketMessage leaves the socket open", async () => {
      const client = await Client.open(server, `/room/${fresh()}`);
      client.send("throw");
      assert.equal(await client.ask("echo still here"), "still here");
      await server.until(/webSocketMessage\(\) threw: .*in webSocketMessage/);
    });
    test("DO-TX-5: frames leave when the turn's writes are durable, and never if they are lost", async () => {
      const name = fresh();
      const client = await Client.open(server, `/room/${name}`);
      assert.equal(await client.ask("gate one"), "sent one");
      assert.equal(await client.next(), "synced one");
      client.send("unsent");
      // The object was reset; its hibernatable sockets stay with the next instance.
      assert.equal(await client.ask("echo again"), "again");
      assert.deepEqual((await call(name, "log")).filter((line) => line.includes("rolled back")), []);
    });
    test("malformed frames get their close code", async () => {
      for (const [bytes, code] of [["\xc1\x80\0\0\0\0", 1002], ["\x81\x05hello", 1002], ["\x81\x82\0\0\0\0\xff\xff", 1007], ["\x88\x81\0\0\0\0\x03", 1002], ["\x83\x80\0\0\0\0", 1002]]) {
        const name = fresh();
        const client = await Client.open(server, `/room/${name}`);
        client.socket._socket.write(Buffer.from(bytes, "latin1"));
        assert.equal((await client.closed)[0], code);
        await logHas(name, "close 1006");
      }
    });
    test("a slow reader is closed with 1013 and a log line", async () => {
      const name = fresh();
      const socket = net.connect(server.port, "127.0.0.1");
      socket.pause();
      socket.write(`GET /room/${name} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`);
      const frame = (text) => Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
      await server.untilTrue(async () => (await call(name, "sockets")) === 1, "the socket");
      socket.write(frame("flood 40 1000000"));
      await logHas(name, "close 1013");
      await server.until(/closed with 1013: \d+ bytes wait/);
      socket.destroy();
    });
    test("outgoing: new WebSocket with subprotocols and compression", async () => {
      const to = encodeURIComponent(`${server.url}/upper`);
      assert.deepEqual(await (await server.fetch(`/client/new?to=${to}&protocol=p1&protocol=p1x`)).json(),
        [0, "open", 1, "p1", "permessage-deflate", 1000, ["close", 4004, true], 3]);
    });
    test("outgoing: a worker that passes a WebSocket on to another server", async () => {
      const there = new WebSocket.Server({ port: 0, host: "127.0.0.1", handleProtocols: (offered) => [...offered].at(-1) });
      await once(there, "listening");
      there.on("connection", (socket, request) => {
        socket.on("message", (data, binary) => socket.send(binary ? data : `${request.headers["x-who"]}:${data}`));
        socket.on("close", (code, reason) => { there.last = [code, reason.toString()]; });
      });
      const to = encodeURIComponent(`http://127.0.0.1:${there.address().port}/path`);
      try {
        const client = await Client.open(server, `/proxy?to=${to}`, ["a", "b"], { headers: { "x-who": "me" }, perMessageDeflate: true });
        assert.equal(client.socket.protocol, "b");
        assert.equal(await client.ask("hi"), "me:hi");
        const large = Buffer.alloc(3 << 20, 5);
        assert.ok(large.equals(await client.ask(large)));
        assert.deepEqual(await client.close(3200, "through"), [3200, "through"]);
        await server.untilTrue(() => there.last !== undefined, "its close there");
        assert.deepEqual(there.last, [3200, "through"]);
        const cut = await Client.open(server, `/proxy?to=${to}`);
        for (const socket of there.clients) socket.terminate();
        assert.equal((await cut.closed)[0], 1006);
      } finally {
        there.close();
      }
    });
    test("outgoing: fetch with Upgrade", async () => {
      const got = await (await server.fetch(`/client/fetch?to=${encodeURIComponent(`${server.url}/upper`)}`)).json();
      assert.deepEqual(got, { status: 101, got: "THROUGH FETCH", protocol: "", closed: [1000, true] });
      assert.deepEqual(await (await server.fetch(`/client/fetch?to=${encodeURIComponent(`${server.url}/refuse`)}`)).json(), { status: 403, body: "not for you" });
      const dead = await (await server.fetch(`/client/new?to=${encodeURIComponent(`${server.url}/refuse`)}`)).json();
      assert.deepEqual(dead, [0, "error", ["close", 1006, false], 3]);
    });
  });
}

test("both ends of a pair are one script's or one object's, and one has closed: whoever ends them frees each once", async () => {
  const own = project({
    "wrangler.toml": config("2026-01-01"), // an end that is closed does not answer by itself
    "index.js": `
      import { DurableObject } from "cloudflare:workers";
      const kept = [];
      async function halfClosed() {
        const pair = new WebSocketPair(), [first, second] = [pair[0], pair[1]];
        const told = new Promise((resolve) => second.addEventListener("close", resolve));
        first.accept();
        second.accept();
        first.close(1000, "over");
        await told;
        kept.push(first, second);
      }
      export class Plain extends DurableObject {
        async fetch(request) {
          for (let i = 0; i < 3; i++) await halfClosed();
          if (request.url.endsWith("/abort")) this.ctx.abort("on purpose");
          return new Response("there");
        }
      }
      export class Room extends DurableObject {}
      export default { async fetch(request, env) {
        if (request.url.endsWith("/worker")) for (let i = 0; i < 3; i++) await halfClosed();
        else try { await env.PLAIN.getByName("one").fetch(request.url); } catch (error) { return new Response(error.message); }
        return new Response("there");
      } };`,
  });
  const server = await serve(own, { lanes: 1 });
  try {
    assert.equal(await server.text("/worker"), "there");
    assert.equal(await server.text("/object/abort"), "on purpose");
    assert.equal(await server.text("/object"), "there");
    const ready = server.reloaded();
    server.signal("SIGHUP");
    await ready;
    assert.equal(await server.text("/object"), "there");
  } finally {
    await server.stop();
  }
});
