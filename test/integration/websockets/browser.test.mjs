// A browser's own WebSocket against the server: what Chromium makes of our frames, and we of its.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { closeBrowser, noBrowser, withPage } from "../lib/browser.mjs";
import { serve } from "../lib/server.mjs";
import { makeProject } from "./lib.mjs";

describe("Chromium", { skip: noBrowser }, () => {
  after(closeBrowser);
  for (const lanes of [1, 2]) {
    describe(`with ${lanes} lane${lanes > 1 ? "s" : ""}`, () => {
      let server;
      before(async () => { server = await serve(makeProject(), { lanes }); });
      after(() => server.stop());

      test("text, bytes, compression, subprotocol and close codes, with objects on every lane", () =>
        withPage({}, async (page) => {
          await page.goto(server.url);
          for (let i = 0; i < 4; i++) {
            const seen = await page.evaluate(async (name) => {
              const socket = new WebSocket(`ws://${location.host}/room/${name}?tag=web`, ["one", "two"]);
              socket.binaryType = "arraybuffer";
              const queue = [];
              let wake = () => {};
              socket.onmessage = ({ data }) => { queue.push(data); wake(); };
              const next = async () => {
                while (queue.length === 0) await new Promise((resolve) => { wake = resolve; });
                return queue.shift();
              };
              const ask = (message) => { socket.send(message); return next(); };
              await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
              const text = await ask("echo héllo wörld");
              const long = await ask(`echo ${"all work and no play ".repeat(5000)}`);
              const bytes = new Uint8Array(await ask(new Uint8Array(200_000).fill(9)));
              const tags = await ask("tags");
              const props = JSON.parse(await ask("props"));
              const closed = new Promise((resolve) => { socket.onclose = ({ code, reason, wasClean }) => resolve([code, reason, wasClean]); });
              socket.close(3456, "that is all");
              return { text, long: long.length, bytes: [bytes.length, bytes[199_999]], tags, props, extensions: socket.extensions.split(";")[0], closed: await closed };
            }, `browser${i}`);
            assert.deepEqual(seen, {
              text: "héllo wörld", long: 21 * 5000, bytes: [200_000, 9], tags: '["web"]',
              props: [1, "one", null, "permessage-deflate", true], extensions: "permessage-deflate", closed: [3456, "from the object", true],
            });
          }
        }));

      test("DO-WS-9: a tab that is closed reaches webSocketClose", async () => {
        await withPage({}, async (page) => {
          await page.goto(server.url);
          await page.evaluate(() => new Promise((resolve) => {
            globalThis.kept = new WebSocket(`ws://${location.host}/room/tab`);
            globalThis.kept.onopen = resolve;
          }));
        });
        await server.untilTrue(async () => (await (await server.fetch("/room/tab/log")).json()).some((line) => line.startsWith("close 1001") || line.startsWith("close 1006")), "the close");
        await server.untilTrue(async () => (await (await server.fetch("/room/tab/sockets")).json()) === 0, "no sockets");
      });

      test("the server closes, and refuses", () =>
        withPage({ expected: /WebSocket connection to/ }, async (page) => {
          await page.goto(server.url);
          const closed = await page.evaluate(() => new Promise((resolve) => {
            const socket = new WebSocket(`ws://${location.host}/upper`);
            socket.onopen = () => socket.send("stop");
            socket.onclose = ({ code, reason, wasClean }) => resolve([code, reason, wasClean]);
          }));
          assert.deepEqual(closed, [4005, "stopped", true]);
          const refused = await page.evaluate(() => new Promise((resolve) => {
            const socket = new WebSocket(`ws://${location.host}/refuse`);
            socket.onclose = ({ code }) => resolve(code);
          }));
          assert.equal(refused, 1006);
        }));
    });
  }
});
