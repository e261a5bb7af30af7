// Functions, stubs and streams between JavaScript and objects in C, and bodies of requests as streams both ways. The
// class is test/module/flow.c, the caller flow.js.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { test } from "node:test";
import { compile, configuration } from "../lib/module.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";

const flow = compile("test/module/flow.c", path.join(tempDir(), "flow.so"));
const settings = configuration("flow:Flow", {
  durable_objects: { bindings: [{ name: "FLOW", class_name: "flow:Flow" }, { name: "LENDER", class_name: "Lender" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["flow:Flow", "Lender"] }],
});
const makeProject = () => project({ "wrangler.json": settings, "index.js": readFileSync(path.join(root, "test/integration/modules/flow.js")), "flow.so": readFileSync(flow) });

for (const lanes of [1, 2]) {
  test(`functions, stubs and streams go both ways, ${lanes === 1 ? "on one lane" : "over lanes"}`, async (t) => {
    const server = await serve(makeProject(), { lanes });
    t.after(() => server.kill());
    for (const name of await (await server.fetch("/scenarios")).json()) {
      await t.test(name, async () => assert.equal(await server.text(`/scenario/${name}`), '"ok"'));
    }
    assert.equal((await server.stop()).code, 0);
  });
}

test("a body goes through an object in C piece by piece, and a client that goes ends it", async (t) => {
  const server = await serve(makeProject());
  t.after(() => server.kill());
  const size = 20 << 20; // more than is kept anywhere
  const request = http.request(`${server.url}/echo`, { method: "POST", agent: false });
  const got = new Promise((resolve, reject) => {
    request.on("error", reject).on("response", (response) => {
      let bytes = 0;
      response.on("data", (piece) => { bytes += piece.length; }).on("end", () => resolve(bytes)).on("error", reject);
    });
  });
  const piece = Buffer.alloc(1 << 20, 7);
  for (let sent = 0; sent < size; sent += piece.length) {
    if (!request.write(piece)) await new Promise((resolve) => request.once("drain", resolve));
  }
  request.end();
  assert.equal(await got, size);
  await new Promise((resolve) => {
    const gone = http.get(`${server.url}/endless`, { agent: false }, (response) => response.once("data", () => { response.destroy(); resolve(); }));
    gone.on("error", () => {});
  });
  assert.equal(await server.text("/scenario/writing"), '"ok"');
  assert.equal((await server.stop()).code, 0);
});

test("a reload while streams and functions are in use leaves nothing behind", async (t) => {
  const server = await serve(makeProject());
  t.after(() => server.kill());
  const open = await server.fetch("/endless");
  const reader = open.body.getReader();
  await reader.read();
  server.signal("SIGHUP");
  await server.until(/reloaded/);
  await assert.rejects(async () => { while (!(await reader.read()).done); throw new Error("it ended"); });
  assert.equal(await server.text("/scenario/functions"), '"ok"');
  assert.equal((await server.stop()).code, 0);
});
