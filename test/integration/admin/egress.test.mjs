// [cairn.egress]: where scripts may connect to, by address, whatever the name.
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { run } from "../lib/cairn.mjs";
import { project, serve } from "../lib/server.mjs";

const worker = `import { connect } from "cloudflare:sockets";
export default {
  async fetch(request) {
    const { host, how } = Object.fromEntries(new URL(request.url).searchParams);
    try {
      if (how === "socket") {
        const socket = connect(host);
        await socket.opened;
        await socket.close();
        return new Response("connected");
      }
      return new Response(await (await fetch("http://" + host)).text());
    } catch (error) {
      return new Response(String(error), { status: 502 });
    }
  },
};
`;
const config = (egress) => `name = "test"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${egress}`;

test("denied ranges, by fetch and by socket, by name and by number; exceptions", async () => {
  const origin = http.createServer((request, response) => response.end("reached")).listen(0, "127.0.0.1");
  await new Promise((resolve) => origin.on("listening", resolve));
  const { port } = origin.address();
  const ask = async (server, host, how = "") => {
    const response = await server.fetch(`/?how=${how}&host=${encodeURIComponent(host)}`);
    return [response.status, await response.text()];
  };
  const open = await serve(project({ "wrangler.toml": config(""), "index.js": worker }));
  assert.deepEqual(await ask(open, `127.0.0.1:${port}`), [200, "reached"]);
  await open.stop();
  const closed = await serve(project({ "wrangler.toml": config('[cairn.egress]\ndeny = ["private"]\n'), "index.js": worker }));
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::ffff:127.0.0.1]:${port}`, `2130706433:${port}`]) {
    const [status, text] = await ask(closed, host);
    assert.equal(status, 502, host);
    assert.match(text, /not allowed/, host);
  }
  const [status, text] = await ask(closed, `127.0.0.1:${port}`, "socket");
  assert.equal(status, 502);
  assert.match(text, /not allowed/);
  await closed.stop();
  const some = await serve(project({ "wrangler.toml": config('[cairn.egress]\ndeny = ["all"]\nallow = ["127.0.0.1"]\n'), "index.js": worker }));
  assert.deepEqual(await ask(some, `127.0.0.1:${port}`), [200, "reached"]);
  assert.deepEqual(await ask(some, `127.0.0.1:${port}`, "socket"), [200, "connected"]);
  await some.stop();
  origin.close();
});

test("a malformed range is refused at start", () => {
  const dir = project({ "wrangler.toml": config('[cairn.egress]\ndeny = ["10.0.0.0/40"]\n'), "index.js": worker });
  const { status, stderr } = run(["serve", dir, "--listen", "127.0.0.1:0"]);
  assert.equal(status, 1);
  assert.match(stderr, /\[cairn\.egress\]: "10\.0\.0\.0\/40" is no range of addresses/);
});
