// Who may what: tokens with scopes, of this account and no other (src/v4/tokens.h, v4.h W1, W2).
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import test from "node:test";
import { run } from "../lib/cairn.mjs";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

test("a token is made, is good for its scopes, and for nothing once it is revoked", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const all = token(data, "all"), reader = token(data, "reader", "read"), writer = token(data, "writer", "data");
  assert.ok(!readFileSync(path.join(data, "tokens.json"), "utf8").includes(all.token));
  const listed = run(["tokens", "list", "--data", data]);
  assert.match(listed.stdout, /reader +read\n/);

  const client = new Client(server, all);
  assert.equal((await client.result("GET", "/user/tokens/verify")).status, "active");
  assert.equal((await client.result("GET", "/user")).email, "all");
  assert.deepEqual((await client.result("GET", "/accounts")).map((account) => account.id), [all.account]);
  assert.equal((await client.result("GET", "/memberships"))[0].account.id, all.account);
  await client.deploy("w", hello("w"));

  const read = new Client(server, reader);
  assert.equal((await read.result("GET", "workers/scripts")).length, 1);
  for (const client of [read, new Client(server, writer)]) {
    const { status, body } = await client.script("w", hello("other"));
    assert.equal(status, 403);
    assert.deepEqual([body.success, body.errors[0].code, body.result], [false, 10000, null]);
    assert.equal((await client.ask("DELETE", "workers/scripts/w")).status, 403);
    assert.equal((await client.ask("PUT", "workers/scripts/w/secrets", { json: { name: "A", text: "b" } })).status, 403);
  }
  assert.equal((await new Client(server, writer).ask("GET", "workers/scripts")).status, 403);
  assert.equal(await server.text("/"), "w");

  const control = (token, target) => fetch(server.admin + target, { headers: { authorization: `Bearer ${token}` } }).then((r) => r.status);
  for (const target of ["/api/workers", "/api/tokens", "/api/tail", "/openapi.json", "/api/address"])
    assert.equal(await control(all.token, target), 403, target);

  assert.equal(run(["tokens", "revoke", "all", "--data", data]).status, 0);
  assert.equal((await client.ask("GET", "/user")).status, 401);
});

test("no token, a wrong one, another account, an unknown path: refused in the platform's form", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const client = new Client(server, who);
  const refused = async (client, method, target, status, options) => {
    const answer = await client.ask(method, target, options);
    assert.equal(answer.status, status, `${method} ${target}: ${JSON.stringify(answer.body)}`);
    assert.equal(answer.body.success, false);
    assert.equal(typeof answer.body.errors[0].code, "number");
    assert.equal(typeof answer.body.errors[0].message, "string");
    assert.deepEqual([answer.body.messages, answer.body.result], [[], null]);
  };
  await refused(new Client(server, { account: who.account }), "GET", "/user", 401);
  await refused(new Client(server, { account: who.account }), "PUT", "workers/scripts/w", 401, { body: "x" });
  await refused(new Client(server, { ...who, token: `cairn_${"0".repeat(40)}` }), "GET", "/user", 401);
  await refused(new Client(server, { ...who, account: "0".repeat(32) }), "GET", "workers/scripts", 403);
  for (const form of ["//accounts/", "/accounts//", "///accounts///"]) // however it is written (P1 of admin/target.h)
    await refused(client, "GET", `${form}${"0".repeat(32)}/workers/scripts`, 403);
  const slashes = await fetch(`${server.admin}//client/v4/accounts/${"0".repeat(32)}/workers/scripts`, { headers: { authorization: `Bearer ${who.token}` } });
  assert.equal(slashes.status, 403);
  await refused(client, "GET", "nothing/here", 404);
  await refused(client, "GET", "workers/scripts/none/versions", 404);
  await refused(client, "POST", "workers/assets/upload", 403, { body: "x" }); // only with a session
});

test("tokens can be made while no server runs, and a server on projects keeps its own", async (t) => {
  const data = dataFolder(t);
  await (await empty(t, data)).stop();
  const who = token(data, "before");
  const server = await empty(t, data);
  const client = new Client(server, who);
  assert.equal((await client.result("GET", "/user")).email, "before");
});

test("what was begun with a token that is revoked meanwhile is refused (T2)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const good = new Client(server, token(data, "good"));
  await good.deploy("w", hello("before"));
  await good.result("POST", "r2/buckets", { json: { name: "bucket" } });
  const late = token(data, "late");
  const client = new Client(server, late);
  const begin = (method, target, headers, authorization = `Bearer ${late.token}`) => {
    const request = http.request(`${server.api}/accounts/${late.account}/${target}`, { method, headers: { authorization, ...headers } });
    const answer = new Promise((resolve, reject) => request.on("response", resolve).on("error", reject)).then(async (response) => {
      let text = "";
      for await (const bytes of response) text += bytes;
      return { status: response.statusCode, text };
    });
    return { request, answer };
  };
  const sent = ({ request }, bytes) => new Promise((resolve) => request.write(bytes, resolve));
  const upload = await new Response(client.form({ main_module: "index.js", compatibility_date: "2026-01-01" },
    { "index.js": [hello("after"), "application/javascript+module"] })).blob();
  const bytes = Buffer.from(await upload.arrayBuffer());
  const hash = "0123456789abcdef0123456789abcdef";
  const { jwt } = await client.result("POST", "workers/scripts/w/assets-upload-session", { json: { manifest: { "/a": { hash, size: 1 } } } });
  const bodies = [
    [begin("PUT", "workers/scripts/w", { "content-type": upload.type }), bytes],
    [begin("POST", "workers/scripts/w/versions", { "content-type": upload.type }), bytes],
    [begin("PUT", "workers/scripts/w/secrets", { "content-type": "application/json" }), Buffer.from('{"name":"A","text":"b","type":"secret_text"}')],
    [begin("PUT", "r2/buckets/bucket/objects/key", {}), Buffer.from("value")],
    [begin("POST", "workers/assets/upload", { "content-type": "multipart/form-data; boundary=X" }, `Bearer ${jwt}`),
      Buffer.from(`--X\r\nContent-Disposition: form-data; name="${hash}"\r\n\r\na\r\n--X--\r\n`)],
  ];
  for (const [call, whole] of bodies) await sent(call, whole.subarray(0, 3));
  assert.equal((await client.ask("GET", "/user")).status, 200); // on the same listener, so they have begun
  assert.equal(run(["tokens", "revoke", "late", "--data", data]).status, 0);
  for (const [call, whole] of bodies) {
    call.request.end(whole.subarray(3));
    const { status, text } = await call.answer;
    assert.ok(status >= 400, `${call.request.path}: ${status} ${text}`);
    assert.equal(JSON.parse(text).success, false, call.request.path);
  }
  assert.equal(await server.text("/"), "before");
  assert.equal((await good.result("GET", "workers/scripts/w/versions")).items.length, 1);
  assert.deepEqual(await good.result("GET", "workers/scripts/w/secrets"), []);
  assert.equal((await good.ask("GET", "r2/buckets/bucket/objects/key")).status, 404);
  // Nor is the session of assets that it began good for anything.
  assert.equal((await client.ask("POST", "workers/assets/upload", { body: "x", headers: { authorization: `Bearer ${jwt}` } })).status, 401);
});

test("a change that waits for another deployment is refused if its token is revoked meanwhile (T2)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const good = new Client(server, token(data, "good"));
  await good.deploy("w", hello("before"));
  const late = new Client(server, token(data, "late"));
  // It holds deployments back until its start is given up.
  const slow = good.script("slow", "await new Promise(() => {}); export default {};");
  await server.untilTrue(() => readdirSync(path.join(data, "deployed/code")).length === 2, "the version that does not start");
  const changes = [
    late.script("w", hello("after")),
    late.script("w", hello("after"), {}, "POST", "workers/scripts/w/versions"),
    late.ask("PATCH", "workers/workers/w/versions/latest", { json: { env: { A: { type: "secret_text", text: "x" } } } }),
    late.ask("PUT", "workers/scripts/w/secrets", { json: { name: "A", text: "b", type: "secret_text" } }),
    late.ask("PUT", "workers/scripts/w/schedules", { json: [{ cron: "* * * * *" }] }),
    late.ask("POST", "storage/kv/namespaces", { json: { title: "late" } }),
    late.ask("POST", "d1/database", { json: { name: "late" } }),
    late.ask("POST", "r2/buckets", { json: { name: "late" } }),
    late.ask("POST", "queues", { json: { queue_name: "late" } }),
    late.ask("DELETE", "workers/scripts/w?force=true"),
  ];
  assert.equal((await late.ask("GET", "/user")).status, 200);
  assert.equal(run(["tokens", "revoke", "late", "--data", data]).status, 0);
  assert.equal((await slow).status, 400);
  const answers = await Promise.all(changes); // 401: its connection was accepted after the revocation
  for (const { status, body } of answers) assert.ok([401, 403].includes(status) && body.errors[0].code === 10000, JSON.stringify(body));
  assert.ok(answers.some(({ status }) => status === 403));
  assert.equal(await server.text("/"), "before");
  assert.equal((await good.result("GET", "workers/scripts/w/versions")).items.length, 1);
  for (const list of ["storage/kv/namespaces", "d1/database", "queues"]) assert.deepEqual(await good.result("GET", list), []);
  assert.deepEqual((await good.result("GET", "r2/buckets")).buckets, []);
});

test("a token has an end: it is refused then, and what was begun with it too (T2)", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const good = new Client(server, token(data, "good"));
  await good.deploy("w", hello("before"));
  const made = JSON.parse(run(["tokens", "create", "brief", "--expires-in", "2s", "--json", "--data", data]).stdout);
  const brief = new Client(server, made);
  const request = http.request(`${server.api}/accounts/${made.account}/storage/kv/namespaces`, {
    method: "POST", headers: { authorization: `Bearer ${made.token}`, "content-type": "application/json" } });
  const answer = new Promise((resolve, reject) => request.on("response", resolve).on("error", reject));
  await new Promise((resolve) => request.write('{"title":', resolve));
  assert.equal((await brief.ask("GET", "/user")).status, 200);
  assert.match(run(["tokens", "list", "--data", data]).stdout, /brief +read,deploy,data {2}until 20\d\d-\d\d-\d\dT/);
  await server.untilTrue(async () => (await brief.ask("GET", "/user")).status === 401, "its end");
  request.end('"late"}');
  assert.equal((await answer).statusCode, 403);
  assert.deepEqual(await good.result("GET", "storage/kv/namespaces"), []);
  for (const wrong of ["0", "-1", "x", "5y", "99999d"]) assert.equal(run(["tokens", "create", "n", "--expires-in", wrong, "--data", data]).status, 1, wrong);
});
