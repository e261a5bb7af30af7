// Routes and custom domains by the API: whose they are is asked before they change, and each is one worker's.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import http from "node:http";
import test from "node:test";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

test("every host is a zone; a route is one worker's; a domain moves only if that is asked for", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  const at = (host, path = "/") => new Promise((resolve, reject) => {
    http.get({ host: "127.0.0.1", port: server.port, path, headers: { host } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (more) => { text += more; }).on("end", () => resolve(response.statusCode === 404 ? 404 : text));
    }).on("error", reject);
  });
  for (const name of ["one", "two"]) await client.deploy(name, hello(name));
  const put = (name, routes) => client.ask("PUT", `workers/scripts/${name}/routes`, { json: routes });
  const domains = (name, hosts, override) => client.ask("PUT", `workers/scripts/${name}/domains/records`, { json: { override_existing_origin: override, origins: hosts.map((hostname) => ({ hostname })) } });
  assert.equal((await put("one", [{ pattern: "a.example/*" }, { pattern: "b.example/x/*" }])).status, 200);
  const taken = await put("two", [{ pattern: "c.example/*" }, { pattern: "a.example/*" }]);
  assert.deepEqual([taken.status, taken.body.errors[0].code], [409, 10020]);
  assert.equal((await put("one", [{ pattern: "a.example/*" }])).status, 200);
  assert.deepEqual([await at("a.example"), await at("b.example", "/x/y"), await at("c.example")], ["one", 404, 404]);
  const id = (name) => createHash("sha256").update(name).digest("hex").slice(0, 32);
  assert.deepEqual((await client.result("GET", `/zones?name=a.example&account.id=${client.account}`)).map((zone) => [zone.id, zone.name]), [[id("a.example"), "a.example"]]);
  assert.deepEqual(await client.result("GET", `/zones?name=a.example&account.id=${"0".repeat(32)}`), []);
  assert.deepEqual((await client.result("GET", `/zones/${id("a.example")}/workers/routes`)).map(({ pattern, script }) => [pattern, script]), [["a.example/*", "one"]]);

  assert.equal((await domains("one", ["www.example", "Shop.example"], false)).status, 200);
  assert.deepEqual([await at("www.example"), await at("shop.example")], ["one", "one"]);
  const changes = await client.result("POST", "workers/scripts/two/domains/changeset", { json: [{ hostname: "www.example" }, { hostname: "new.example" }] });
  assert.deepEqual([changes.added.map(({ hostname }) => hostname), changes.updated.map(({ hostname, service, modified }) => [hostname, service, modified])], [["new.example"], [["www.example", "one", true]]]);
  assert.equal((await client.result("GET", `workers/domains/records/${changes.updated[0].id}`)).service, "one");
  assert.equal((await client.ask("GET", `workers/domains/records/${"0".repeat(32)}`)).status, 404);
  const refused = await domains("two", ["www.example"], false);
  assert.deepEqual([refused.status, refused.body.errors[0].code], [409, 100117]);
  assert.equal(await at("www.example"), "one");
  assert.equal((await domains("two", ["WWW.example"], true)).status, 200);
  assert.deepEqual([await at("www.example"), await at("shop.example")], ["two", "one"]);
  assert.deepEqual((await client.result("GET", "workers/domains")).map(({ hostname, service }) => [hostname, service]).sort(), [["Shop.example", "one"], ["WWW.example", "two"]]);
  for (const bad of ["", " ", "a b", "x".repeat(300), "a/b", "http://a", "*", "a\u0000b"])
    assert.ok((await domains("two", [bad], true)).status >= 400, JSON.stringify(bad));
  for (const bad of ["", "x".repeat(2000), "\u0000", "a\u0000b/*"])
    assert.ok((await put("two", [{ pattern: bad }])).status >= 400, JSON.stringify(bad));
  assert.equal(await at("www.example"), "two");
});
