// The real wrangler and a cluster: each command goes to another node, and all nodes serve what it did.
import assert from "node:assert/strict";
import test from "node:test";
import { Fleet, get } from "../cluster/server/fleet.mjs";
import { absent } from "../cluster/server/postgres.mjs";
import { folder, write, wrangler } from "./lib.mjs";

test("wrangler deploys to one node, sets a secret on another and rolls back on a third", { skip: absent, timeout: 600_000 }, async (t) => {
  const fleet = await Fleet.begin(t);
  const { a } = await fleet.clients();
  const on = (name, dir, args, options) => wrangler(fleet.nodes.get(name), a, dir, args, options);
  const everywhere = async (text, target = "/") => {
    for (const [name, server] of fleet.nodes) assert.equal((await get(server, target, { host: "w.localhost" })).text, text, name);
  };
  const script = (text) => `export default { fetch(request, env) { return new Response(${JSON.stringify(text)} + (env.KEY ?? "")); } };`;
  const dir = folder(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[assets]\ndirectory = "public"\n', "index.js": script("one "), "public/a.txt": "an asset",
  });
  await on("a", dir, ["deploy"]);
  await everywhere("one ");
  await everywhere("an asset", "/a.txt");
  await on("b", dir, ["secret", "put", "KEY"], { input: "of b" });
  await everywhere("one of b");
  write(dir, { "index.js": script("two ") });
  await on("c", dir, ["deploy"]);
  await everywhere("two of b");
  await on("a", dir, ["rollback", "--message", "back", "--yes"]);
  await everywhere("one of b");
});
