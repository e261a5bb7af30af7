// The smallest example.
import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { folder, root, serve } from "../lib/cairn.mjs";

test("hello", async (t) => {
  const server = await serve(t, path.join(root, "examples/hello"), { args: ["--data", folder(t)] });
  assert.equal(await server.text("/?name=you"), "Hello, you!\n");
  assert.deepEqual(await (await server.fetch("/json?a=1&b=2")).json(), { path: "/json", query: { a: "1", b: "2" } });
});
