// What an error is, is never told by its text: prelude/internal/fault.js, F1.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve } from "../../integration/lib/cairn.mjs";
import { Cluster } from "./cluster.mjs";
import { absent } from "./postgres.mjs";

const AWAY = "this node does not answer for the object at the moment; try again";
const script = `export default { fetch(request) {
  const { pathname } = new URL(request.url);
  throw pathname === "/away" ? new Error(${JSON.stringify(AWAY)}) : Object.assign(new Error("mine"), { overloaded: true });
} };`;

test("a script that throws our sentences and properties has thrown, and that is logged", async (t) => {
  const server = await serve(t, project(t, { "index.js": script }));
  for (const path of ["/away", "/overloaded"]) assert.equal((await server.fetch(path)).status, 500, path);
  await server.until(/does not answer for the object/);
  await server.until(/Error: mine/);
});

test("the same on a node of a cluster", { skip: absent, timeout: 300_000 }, async (t) => {
  const cluster = await Cluster.make(t);
  const server = await cluster.start("a");
  const answer = await cluster.try("a", `/throw/${encodeURIComponent(AWAY)}`, 60_000);
  assert.equal(answer.status, 500, JSON.stringify(answer));
  await server.until(/does not answer for the object/);
});
