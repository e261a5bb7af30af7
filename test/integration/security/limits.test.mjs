// Limits of docs/reference/limits.md that no other test reaches: of a worker's own doing, and of connections.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { after, before, describe, test } from "node:test";
import { actor } from "./lib.mjs";

/** Answers every request; what begins with "stay" waits for ever. */
async function makeOrigin() {
  const origin = http.createServer((request, response) => { if (!request.url.startsWith("/stay")) response.end("ok"); }).listen(0, "127.0.0.1");
  await once(origin, "listening");
  return origin;
}

describe("subrequests of an invocation", () => {
  let origin, server;
  before(async () => {
    origin = await makeOrigin();
    const { port } = origin.address(), url = `http://127.0.0.1:${port}/`;
    server = await actor({
      fetch: `async (request) => { let done = 0; const count = await request.json(); try { for (; done < count; done++) await (await fetch("${url}")).text(); } catch (error) { return [done, error.message]; } return [done]; }`,
      together: `async (request) => (await Promise.allSettled(Array.from({ length: await request.json() }, () => fetch("${url}").then((r) => r.text())))).filter((end) => end.status === "fulfilled").length`,
      connect: `async (request) => {
        const { connect } = await import("cloudflare:sockets");
        let done = 0;
        try { for (; done < 10; done++) await connect("127.0.0.1:${port}").close(); } catch (error) { return [done, error.message]; }
        return [done];
      }`,
      object: '(request, env) => request.json().then((count) => env.CELL.getByName("f").outgoing(count))',
      calls: '(request, env) => request.json().then(async (count) => { for (let i = 0; i < count; i++) await env.CELL.getByName("f").echo(i); return count; })',
    }, { more: { limits: { subrequests: 5 } } });
  });
  after(async () => { await server.stop(); origin.close(); origin.closeAllConnections(); });
  test("one past the limit throws, and the next invocation has its own", async () => {
    assert.deepEqual(await server.act("fetch", 5), { value: [5] });
    assert.deepEqual(await server.act("fetch", 9), { value: [5, "Too many subrequests."] });
    assert.deepEqual(await server.act("together", 20), { value: 5 });
    assert.deepEqual(await server.act("fetch", 5), { value: [5] });
  });
  test("those under way at once have each their own", async () => {
    const many = await Promise.all(Array.from({ length: 8 }, (_, i) => server.act("fetch", i % 2 ? 9 : 5)));
    many.forEach((answer, i) => assert.deepEqual(answer, { value: i % 2 ? [5, "Too many subrequests."] : [5] }));
  });
  test("sockets count too; calls of objects do not", async () => {
    assert.deepEqual(await server.act("connect"), { value: [5, "Too many subrequests."] });
    assert.deepEqual(await server.act("calls", 50), { value: 50 });
  });
  test("the default is 10,000", async () => {
    const { value } = await server.act("fetch", 1);
    assert.deepEqual(value, [1]);
    const other = await actor({
      fetch: `async () => { let done = 0; try { for (; done < 10001; done++) fetch("http://127.0.0.1:1/").catch(() => {}); } catch {} const last = await fetch("http://127.0.0.1:1/").catch((error) => error.message); return [done, last]; }`,
    });
    const { value: [done, last] } = await other.act("fetch");
    assert.ok(done === 10001 && /Too many subrequests/.test(last), `${done} ${last}`);
    await other.stop();
  });
});

test("timers, and fetches at once", async (t) => {
  const origin = await makeOrigin();
  const server = await actor({
    timers: '() => { let count = 0; try { for (; count < 200000; count++) setTimeout(() => {}, 1e8); } catch (error) { return [count, error.message]; } }',
    fetches: `async (request) => {
      const gone = new AbortController();
      let refused = "";
      const all = Array.from({ length: 9000 }, () => fetch("http://127.0.0.1:${origin.address().port}/stay", { signal: gone.signal }).catch((error) => { if (!gone.signal.aborted) refused = error.message; }));
      await new Promise((resolve) => setTimeout(resolve, 50));
      gone.abort();
      await Promise.all(all);
      return refused;
    }`,
  });
  t.after(() => { server.kill(); origin.closeAllConnections(); origin.close(); });
  const fetches = await server.act("fetches");
  assert.match(fetches.value ?? fetches.error, /too many (fetches|requests)/);
  const { value: [count, message] } = await server.act("timers");
  assert.ok(count >= 99_000 && count <= 100_000 && /More than 100000 timers/.test(message), `${count} ${message}`);
  assert.equal(await server.text("/hello"), "hello");
});

test("connections of a lane", async (t) => {
  const server = await actor({}, { more: { cairn: { limits: { connections: 3 } } }, lanes: 1 });
  t.after(() => server.kill());
  const open = () => new Promise((resolve) => {
    const socket = net.connect(server.port, "127.0.0.1");
    socket.setEncoding("latin1").once("data", (text) => resolve({ socket, text })).on("error", () => {});
    socket.write("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  });
  const kept = [await open(), await open(), await open()];
  for (const { text } of kept) assert.match(text, /^HTTP\/1.1 200 /);
  const refused = await open();
  assert.match(refused.text, /^HTTP\/1.1 503 /);
  for (const { socket } of kept) socket.destroy();
  await server.untilTrue(async () => { const { socket, text } = await open(); socket.destroy(); return text.startsWith("HTTP/1.1 200"); }, "a free place");
  refused.socket.destroy();
});
