// WebSockets over time: hibernation, reloads, the end of the server, silent clients, older dates, TLS.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { serve, tempDir } from "../lib/server.mjs";
import { Client, WebSocket, makeProject, worker } from "./lib.mjs";

const IDLE = "[cairn.limits]\nobject_idle_ms = 150\nwebsocket_ping_ms = 1000\n";
const json = async (server, target) => (await server.fetch(target)).json();

for (const lanes of [1, 2]) {
  describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
    const dir = makeProject("2026-05-01", IDLE);
    let server;
    before(async () => { server = await serve(dir, { lanes }); });
    after(() => server.stop());
    const lives = async (name) => (await json(server, `/room/${name}/log`)).filter((line) => line === "constructor").length;
    /** Waits until the object has left memory: asking would wake it, so its own life says it. */
    const sleepingAfter = async (client, born) => {
      let now = born;
      await server.untilTrue(async () => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        now = (await client.json("life")).born;
        return now !== born;
      }, "a new life");
      return now;
    };

    test("DO-LC-2 DO-WS-4 DO-WS-11: an idle object leaves memory, its sockets stay with tags and attachment; a message brings it back", async () => {
      for (const name of ["a", "b", "c"]) {
        const client = await Client.open(server, `/room/${name}?tag=red&attach=ann`);
        const other = await Client.open(server, `/room/${name}?tag=blue`);
        const { born } = await client.json("life");
        const again = await sleepingAfter(client, born);
        assert.notEqual(again, born);
        assert.deepEqual(await client.json("tags"), ["red"]);
        assert.deepEqual(await client.json("attachment"), { who: "ann", at: "1970-01-01T00:00:00.000Z", date: true });
        client.send("all blue after sleep");
        assert.equal(await other.next(), "after sleep");
        // Constructor first, then handlers in order.
        for (let i = 0; i < 10; i++) client.send(`echo ${i}`);
        for (let i = 0; i < 10; i++) assert.equal(await client.next(), String(i));
        assert.ok((await lives(name)) >= 2);
        await client.close(1000, "");
        await other.close(1000, "");
      }
    });
    test("DO-WS-5 DO-WS-7: an automatic response and a ping do not wake the object", async () => {
      const client = await Client.open(server, "/room/auto");
      assert.deepEqual(await client.json("auto hey you"), ["hey", "you"]);
      const { born } = await client.json("life");
      await sleepingAfter(client, born);
      const before = await lives("auto");
      await server.untilTrue(async () => {
        await new Promise((resolve) => setTimeout(resolve, 600)); // it sleeps again
        return true;
      }, "sleep");
      const began = Date.now();
      for (let i = 0; i < 20; i++) {
        assert.equal(await client.ask("hey"), "you");
        await new Promise((resolve) => { client.socket.once("pong", resolve); client.socket.ping(); });
      }
      const { time } = await client.json("stamp");
      assert.ok(time >= began - 50);
      // That question and the next one woke it once at most each; the twenty did not.
      assert.ok((await lives("auto")) <= before + 2);
    });
    test("DO-WS-10: one's own close counts after hibernation too", async () => {
      const name = "closing";
      const watcher = await Client.open(server, `/room/${name}`);
      const socket = net.connect(server.port, "127.0.0.1");
      const key = randomBytes(16).toString("base64");
      socket.write(`GET /room/${name} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`);
      const frame = (text, opcode = 0x81) => Buffer.concat([Buffer.from([opcode, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
      socket.on("data", (bytes) => { if (bytes.includes("\x89\x00", 0, "latin1")) socket.write(frame("", 0x8a)); }); // it is not silent
      await server.untilTrue(async () => (await json(server, `/room/${name}/sockets`)) === 2, "two sockets");
      socket.write(frame("closeAndSay")); // and it never answers the close
      const { born } = await watcher.json("life");
      await sleepingAfter(watcher, born);
      assert.deepEqual(await watcher.json("sendAfterClose"), [["TypeError", "Can't call WebSocket send() after close()."]]);
      socket.destroy();
    });
    test("SEMANTICS: accept()ed sockets keep their object", async () => {
      const client = await Client.open(server, "/plain/kept");
      const life = await client.ask("life");
      await new Promise((resolve) => setTimeout(resolve, 1500));
      assert.equal(await client.ask("life"), life);
      client.socket.terminate();
      await server.untilTrue(async () => (await json(server, "/plain/kept/lastClose")) !== null, "the close event");
      assert.deepEqual((await json(server, "/plain/kept/lastClose")).slice(0, 4), ["close", 1006, "WebSocket disconnected without sending Close frame.", false]);
    });
    test("DO-WS-9: a client that has gone silent is found out by pings", async () => {
      const socket = net.connect(server.port, "127.0.0.1");
      const key = randomBytes(16).toString("base64");
      let head = "";
      socket.on("error", () => {}); // it is reset in the end
      socket.on("data", (bytes) => { head += bytes.toString("latin1"); });
      socket.write(`GET /room/silent HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`);
      await server.untilTrue(() => head.includes("\r\n\r\n"), "the handshake");
      assert.ok(head.includes(createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64")));
      await server.untilTrue(async () => (await json(server, "/room/silent/log")).some((line) => line.startsWith("close 1006")), "the close");
      assert.ok(head.includes("\x89\x00"), "a ping came before");
    });
    test("DO-WS-13: a reload keeps hibernatable sockets, on the new code; accept()ed ones get 1012", async () => {
      const clients = [];
      for (let i = 0; i < 6; i++) clients.push(await Client.open(server, `/room/reload${i}?tag=t${i}&attach=a${i}`));
      const plain = await Client.open(server, "/plain/reload");
      const upper = await Client.open(server, "/upper");
      assert.equal(await plain.ask("x"), "x");
      for (const client of clients) assert.equal((await client.json("life")).version, "v1");
      writeFileSync(path.join(dir, "index.js"), worker.replace('VERSION = "v1"', 'VERSION = "v2"'));
      const ready = server.reloaded();
      server.signal("SIGHUP");
      await ready;
      assert.equal((await plain.closed)[0], 1012);
      assert.equal((await upper.closed)[0], 1012);
      for (const [i, client] of clients.entries()) {
        assert.equal((await client.json("life")).version, "v2");
        assert.deepEqual(await client.json("tags"), [`t${i}`]);
        assert.equal((await client.json("attachment")).who, `a${i}`);
      }
    });
    test("when the server stops, every client gets 1012", async () => {
      const clients = [];
      for (let i = 0; i < 4; i++) clients.push(await Client.open(server, `/room/stop${i}`));
      clients.push(await Client.open(server, "/plain/stop"), await Client.open(server, "/upper"));
      const ended = server.stop();
      for (const client of clients) assert.equal((await client.closed)[0], 1012);
      assert.deepEqual(await ended, { code: 0, signal: null });
    });
  });
}

describe("before 2026-03-17 and 2026-04-07", () => {
  const dir = makeProject("2026-03-01");
  let server;
  before(async () => { server = await serve(dir, { lanes: 2 }); });
  after(() => server.stop());
  test("DO-WS-10: the script answers a close; if it does not, the client sees 1006 after 10 s", async () => {
    const answered = await Client.open(server, "/room/old");
    assert.deepEqual(await answered.close(3000, "x"), [3000, "from the object"]);
    const left = await Client.open(server, "/room/old");
    const gone = left.close(3000, "leave it");
    // K6: it is listed in its webSocketClose, and not after.
    await server.untilTrue(async () => (await json(server, "/room/old/log")).at(-1)?.startsWith("close 3000 leave it"), "webSocketClose");
    assert.match((await json(server, "/room/old/log")).at(-1), /listed=true$/);
    await server.untilTrue(async () => (await json(server, "/room/old/sockets")) === 0, "an empty list");
    assert.equal(left.over, undefined, "the connection is still there");
    assert.equal((await gone)[0], 1006);
  });
  test("DO-WS-12: a long reason is cut before 2026-03-03", async () => {
    const old = await serve(makeProject("2026-02-01"));
    try {
      const client = await Client.open(old, "/room/reason");
      client.send(`close 4000 ${"é".repeat(80)}`);
      assert.deepEqual(await client.closed, [4000, "é".repeat(61)]);
    } finally {
      await old.stop();
    }
  });
  test("DO-WS-12: binaryType is arraybuffer", async () => {
    assert.equal(await json(server, "/binary"), "ArrayBuffer");
  });
});

test("outgoing wss: the certificate is verified", async () => {
  const dir = tempDir();
  const files = { cert: path.join(dir, "cert.pem"), key: path.join(dir, "key.pem") };
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", files.key, "-out", files.cert], { stdio: "ignore" });
  const { createServer } = await import("node:https");
  const https = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) });
  const sockets = new WebSocket.Server({ server: https, perMessageDeflate: true });
  sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(`wss:${data}`)));
  await new Promise((resolve) => https.listen(0, "127.0.0.1", resolve));
  const to = encodeURIComponent(`wss://localhost:${https.address().port}/`);
  const server = await serve(makeProject(), { env: { SSL_CERT_FILE: files.cert } });
  const stranger = await serve(makeProject());
  try {
    assert.deepEqual((await json(server, `/client/new?to=${to}`)).slice(1, 3), ["open", 1]);
    assert.equal((await json(server, `/client/fetch?to=${to.replace("wss", "https")}`)).got, "wss:through fetch");
    assert.deepEqual(await json(stranger, `/client/new?to=${to}`), [0, "error", ["close", 1006, false], 3]);
  } finally {
    await Promise.all([server.stop(), stranger.stop()]);
    for (const socket of sockets.clients) socket.terminate();
    https.close();
  }
});

test("wss: clients over TLS, moved between lanes; compression can be turned off", async () => {
  const dir = tempDir();
  const files = { cert: path.join(dir, "cert.pem"), key: path.join(dir, "key.pem") };
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-keyout", files.key, "-out", files.cert], { stdio: "ignore" });
  const server = await serve(makeProject("2026-05-01", "[cairn]\nwebsocket_compression = false\n"), { lanes: 2, args: ["--tls-cert", files.cert, "--tls-key", files.key] });
  try {
    for (let i = 0; i < 8; i++) {
      const client = await Client.open(server, `/room/tls${i}?hello`, [], { rejectUnauthorized: false, perMessageDeflate: true });
      assert.equal(client.socket.extensions, "");
      assert.equal(await client.next(), "hello");
      const bytes = Buffer.alloc(300_000, i);
      assert.ok(bytes.equals(await client.ask(bytes)));
      assert.deepEqual(await client.close(3003, "bye"), [3003, "from the object"]);
    }
  } finally {
    await server.stop();
  }
});
