// The real wrangler and a cluster: each command goes to another node, and all nodes serve what it did.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Fleet, get } from "../cluster/server/fleet.mjs";
import { absent, until } from "../cluster/server/postgres.mjs";
import { bin, environment, folder, write, wrangler } from "./lib.mjs";

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

test("wrangler tail on one node shows all of them; d1 export and time-travel work on a node that does not have the database", { skip: absent, timeout: 600_000 }, async (t) => {
  const fleet = await Fleet.begin(t);
  const { a } = await fleet.clients();
  const on = (name, dir, args, options) => wrangler(fleet.nodes.get(name), a, dir, args, options);
  const dir = folder(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n',
    "index.js": 'export default { fetch(request) { console.log("seen " + new URL(request.url).pathname); return new Response("ok"); } };',
  });
  await on("a", dir, ["deploy"]);
  const databases = ["one", "two"];
  for (const name of databases) {
    const [, id] = /"?database_id"?\s*[=:]\s*"([^"]+)"/.exec(await on("b", dir, ["d1", "create", name]));
    write(dir, { "wrangler.toml": `${readFileSync(`${dir}/wrangler.toml`, "utf8")}[[d1_databases]]\nbinding = "${name.toUpperCase()}"\ndatabase_name = "${name}"\ndatabase_id = "${id}"\n` });
  }
  for (const name of databases) { // wherever each of them is, one of the nodes does not have it
    await on("c", dir, ["d1", "execute", name, "--remote", "--command", `CREATE TABLE t(v); INSERT INTO t VALUES ('of ${name}')`]);
    for (const node of ["a", "b", "c"]) {
      const file = `${dir}/${name}-${node}.sql`;
      await on(node, dir, ["d1", "export", name, "--remote", "--output", file]);
      assert.match(readFileSync(file, "utf8"), new RegExp(`INSERT INTO "?t"?.*of ${name}`), `${name} on ${node}`);
    }
    const marks = [];
    for (const node of ["a", "b", "c"]) marks.push(/[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]+/.exec(await on(node, dir, ["d1", "time-travel", "info", name]))[0]);
    assert.equal(new Set(marks.map((mark) => mark.slice(0, 26))).size, 1, `${marks}`);
  }

  const child = spawn(process.execPath, [bin, "tail", "w", "--format", "json"], { cwd: dir, env: environment(fleet.nodes.get("a"), a, dir), stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (more) => (text += more));
  const tails = async () => (await (await fetch(`${fleet.nodes.get("a").api}/accounts/${a.account}/workers/scripts/w/tails`, { headers: { authorization: `Bearer ${a.token}` } })).json()).result;
  await until(async () => (await tails())?.length === 1, "a listener", 60_000);
  for (const [name, server] of fleet.nodes) {
    const seen = () => text.includes(`seen /${name}`);
    await until(async () => (await get(server, `/${name}`, { host: "w.localhost" }), seen()), `what ${name} does`, 30_000);
    assert.match(text, new RegExp(`"node": ?"${name}"`));
  }
  fleet.nodes.get("b").signal("SIGKILL");
  await until(() => /node b (has left|is not heard)/.test(text), "that b is gone", 30_000);
  await until(async () => (await get(fleet.nodes.get("c"), "/still", { host: "w.localhost" }), text.includes("seen /still")), "c is heard meanwhile", 30_000);
});
