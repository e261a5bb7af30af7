// Routes, custom domains and workers_dev as the real wrangler sends them (`make test-wrangler`).
import assert from "node:assert/strict";
import http from "node:http";
import test from "node:test";
import { dataFolder, empty, token } from "../integration/deploy/lib.mjs";
import { folder, wrangler, write } from "./lib.mjs";

test("routes and custom domains lead to the worker that has them, again after each deployment, and to one worker only", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data, { args: ["--domain", "apps.example"] });
  const who = token(data);
  const at = (host, path = "/") => new Promise((resolve, reject) => {
    http.get({ host: "127.0.0.1", port: server.port, path, headers: { host } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (more) => { text += more; }).on("end", () => resolve(response.statusCode === 404 ? 404 : text));
    }).on("error", reject);
  });
  const project = (name, more) => folder(t, { "wrangler.toml": `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${more}`, "index.js": `export default { fetch(request) { return new Response("${name}"); } };` });
  const configure = (dir, name, more) => write(dir, { "wrangler.toml": `name = "${name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${more}` });
  const run = (dir, ...args) => wrangler(server, who, dir, args);

  const other = project("other", "");
  await run(other, "deploy");
  assert.deepEqual([await at("other.localhost"), await at("other.apps.example")], ["other", "other"]);
  const routes = 'routes = ["shop.example/*", { pattern = "*.example.org/api/*", zone_name = "example.org" }, { pattern = "www.shop.example", custom_domain = true }]\n';
  const shop = project("shop", routes);
  assert.match(await run(shop, "deploy"), /shop\.example\/\*/);
  const there = async () => [await at("shop.example"), await at("shop.example", "/a/b"), await at("eu.example.org", "/api/x"), await at("eu.example.org", "/x"), await at("www.shop.example", "/x"), await at("shop.localhost"), await at("other.localhost")];
  assert.deepEqual(await there(), ["shop", "shop", "shop", 404, "shop", 404, "other"], "workers_dev is off where there are routes");
  // wrangler asks now whose the routes are.
  await run(shop, "deploy");
  assert.deepEqual(await there(), ["shop", "shop", "shop", 404, "shop", 404, "other"]);
  // Another worker cannot have the same route, and what is served does not change for asking.
  configure(other, "other", 'workers_dev = false\nroutes = ["other.example/*", "shop.example/*"]\n');
  await assert.rejects(run(other, "deploy"), /shop\.example/);
  await assert.rejects(run(other, "deploy"), /assigned to another worker|shop\.example/);
  assert.equal(await at("shop.example"), "shop");
  // A custom domain moves to who asks for it last.
  configure(other, "other", 'workers_dev = true\nroutes = [{ pattern = "www.shop.example", custom_domain = true }]\n');
  await run(other, "deploy");
  assert.deepEqual([await at("www.shop.example"), await at("shop.example"), await at("other.localhost")], ["other", "shop", "other"]);
  // Triggers alone; and they are there after a kill.
  configure(shop, "shop", 'workers_dev = true\nroutes = ["shop.example/new/*"]\n');
  await run(shop, "triggers", "deploy");
  const after = async () => [await at("shop.example"), await at("shop.example", "/new/x"), await at("shop.apps.example"), await at("www.shop.example")];
  assert.deepEqual(await after(), [404, "shop", "shop", "other"]);
  await server.kill();
  server = await empty(t, data, { args: ["--domain", "apps.example"] });
  assert.deepEqual(await after(), [404, "shop", "shop", "other"]);
});
