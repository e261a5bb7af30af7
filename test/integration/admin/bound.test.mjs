// CN_ADMIN_JOB_MAX: sixteen control calls are under way at once. One more is refused with a sentence; those that need no thread are
// answered; and whoever leaves, or is answered, makes room.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { serve } from "../lib/server.mjs";
import { ask, call, dir, objectPath } from "./lib.mjs";

const MAX = 16, body = JSON.stringify({ sql: "SELECT 1 AS a" });

/** A call whose thread waits for its body: the server has asked for that. */
function hold(data) {
  const socket = net.connect(path.join(data, "control.sock")), held = { socket, text: "" };
  socket.setEncoding("latin1").on("error", () => {}).on("data", (text) => (held.text += text));
  socket.write(`POST ${objectPath("s", "/sql")} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
  held.begun = new Promise((resolve, reject) => socket.once("data", resolve).once("close", () => reject(new Error("closed"))));
  held.over = new Promise((resolve) => socket.once("close", resolve));
  return held;
}

test("the seventeenth control call at once is refused, and nothing is left of the others", async (t) => {
  const server = await serve(dir, { lanes: 1 });
  t.after(() => server.stop());
  const { data } = server, threads = () => readdirSync(`/proc/${server.child.pid}/task`).length;
  const isFree = async () => (await ask({ data }, "GET", "/api/namespaces")).status === 200;
  await call(server, "s", "add", "one");
  assert.ok(await isFree());
  const before = threads();
  for (let round = 0; round < 3; round++) {
    const held = Array.from({ length: MAX }, () => hold(data));
    await Promise.all(held.map(({ begun }) => begun));
    for (const { text } of held) assert.match(text, /^HTTP\/1\.1 100 /);
    for (let i = 0; i < 3; i++) {
      const refused = await ask({ data }, "GET", "/api/namespaces");
      assert.equal(refused.status, 503);
      assert.match(refused.text, /too many operations are under way/);
      assert.equal(refused.headers["retry-after"], "1");
    }
    assert.equal((await ask({ data }, "GET", "/healthz")).status, 200); // no operation
    if (round < 2) {
      for (const { socket } of held) socket.destroy(); // they leave
    } else {
      const answered = held.map(({ socket }) => new Promise((resolve) => socket.on("data", resolve))); // or are answered
      for (const { socket } of held) socket.write(body);
      await Promise.all(answered);
      for (const { text, socket } of held) assert.match(text, /\r\n\r\nHTTP\/1\.1 200 /), socket.destroy();
    }
    await server.untilTrue(isFree, "room again");
    await server.untilTrue(() => threads() <= before, "the threads of the calls are gone");
  }
  // The server that ends while all are under way ends in order.
  const held = Array.from({ length: MAX }, () => hold(data));
  await Promise.all(held.map(({ begun }) => begun));
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  await Promise.all(held.map(({ over }) => over));
});
