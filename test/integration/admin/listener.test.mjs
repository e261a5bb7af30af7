// The admin listener on TCP: what is open, what needs the token, who is locked out.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { run } from "../lib/cairn.mjs";
import { raw, serve, tempDir } from "../lib/server.mjs";
import { adminPort, ask, call, command, dir } from "./lib.mjs";

const bearer = (token) => ({ headers: { authorization: `Bearer ${token}` } });

/** Ways to write one path of the platform's API. */
const forms = (below) => [`/client/v4${below}`, `//client/v4${below}`, `/client//v4${below}`, `///client/v4/${below}//`, `http://127.0.0.1//client/v4${below}`];

describe("on loopback", () => {
  let server, port, token;
  before(async () => {
    server = await serve(dir, { args: ["--admin", "127.0.0.1:0"] });
    port = await adminPort(server);
    token = readFileSync(path.join(server.data, "admin.token"), "utf8").trim();
  });
  after(() => server.stop());

  test("health, readiness and metrics are open", async () => {
    assert.equal((await ask({ port }, "GET", "/healthz")).text, "ok\n");
    assert.equal((await ask({ port }, "GET", "/readyz")).text, "ready\n");
    assert.equal((await ask({ port }, "GET", "/metrics")).status, 200);
    assert.equal((await ask({ port }, "POST", "/healthz")).status, 405);
  });
  test("the rest needs the token, which only the server's user can read", async () => {
    assert.equal(statSync(path.join(server.data, "admin.token")).mode & 0o777, 0o600);
    assert.equal(statSync(path.join(server.data, "control.sock")).mode & 0o777, 0o600);
    assert.match(token, /^cairn-[0-9a-f]{48}$/);
    await call(server, "x", "add", "one");
    for (const target of ["/api/namespaces", "/openapi.json", "/nothing", "/dashboard/", "/dashboard/../api/namespaces"]) {
      const answer = await ask({ port }, "GET", target);
      assert.equal(answer.status, 401, target);
      assert.equal(answer.headers["www-authenticate"], "Bearer");
    }
    assert.deepEqual((await ask({ port }, "GET", "/api/namespaces", bearer(token))).json, { namespaces: [{ name: "app/Ledger" }] });
    assert.equal((await ask({ port }, "GET", "/nothing", bearer(token))).status, 404);
  });
  test("the dashboard's files are open, run only their own script, and are not sent twice", async () => {
    const page = await ask({ port }, "GET", "/?x");
    assert.equal(page.status, 200);
    assert.match(page.headers["content-type"], /^text\/html/);
    assert.match(page.headers["content-security-policy"], /^default-src 'none'; script-src 'self'; .*connect-src 'self'; .*frame-ancestors 'none'/);
    assert.equal(page.headers["cache-control"], "no-cache");
    assert.equal(page.headers["x-content-type-options"], "nosniff");
    assert.equal((await ask({ port }, "GET", "/", { headers: { "if-none-match": page.headers.etag } })).status, 304);
    assert.equal((await ask({ port }, "GET", "/", { headers: { host: "evil.example" } })).status, 403);
    assert.equal((await ask({ port }, "POST", "/")).status, 405);
    const names = [...page.text.matchAll(/"(\/dashboard\/[^"]+)"/g)].map(([, name]) => name);
    assert.equal(names.length, 3);
    for (const name of names) {
      const plain = await ask({ port }, "GET", name);
      const packed = await ask({ port }, "GET", name, { headers: { "accept-encoding": "gzip, br" } });
      assert.equal(plain.status, 200);
      assert.match(plain.headers["cache-control"], /immutable/);
      assert.equal(packed.headers["content-encoding"], "gzip");
      assert.deepEqual(gunzipSync(packed.bytes), plain.bytes);
    }
  });
  test("the address of the dashboard is told to whoever may know the token", async () => {
    assert.equal((await ask({ port }, "GET", "/api/address")).status, 401);
    assert.deepEqual((await ask({ data: server.data }, "GET", "/api/address")).json, { url: `http://127.0.0.1:${port}`, token });
    const printed = await command(server.data, "dashboard");
    assert.equal(printed.stdout, `http://127.0.0.1:${port}/#token=${token}\n`);
    const none = await command(tempDir(), "dashboard");
    assert.equal(none.status, 1);
    assert.match(none.stderr, /no server/);
  });
  test("pages of other sites are refused, and names that only seem to be this machine", async () => {
    const evil = { headers: { host: "evil.example", authorization: `Bearer ${token}` } };
    assert.equal((await ask({ port }, "GET", "/healthz", evil)).status, 403);
    const foreign = { headers: { origin: "https://evil.example", authorization: `Bearer ${token}` } };
    assert.equal((await ask({ port }, "GET", "/api/namespaces", foreign)).status, 403);
    const own = { headers: { origin: `http://127.0.0.1:${port}`, authorization: `Bearer ${token}` } };
    assert.equal((await ask({ port }, "GET", "/api/namespaces", own)).status, 200);
  });
  test("the OpenAPI document is whole (test/unit/v4/test_routes.c compares it with the routes)", async () => {
    const { json } = await ask({ port }, "GET", "/openapi.json", bearer(token));
    const ids = Object.values(json.paths).flatMap((item) => Object.values(item).map((operation) => operation.operationId).filter(Boolean));
    assert.equal(new Set(ids).size, ids.length);
    for (const ref of JSON.stringify(json).matchAll(/"#\/components\/(\w+)\/(\w+)"/g)) assert.ok(json.components[ref[1]][ref[2]], ref[0]);
  });
  test("malformed requests get clear errors", async () => {
    const post = (target, body) => ask({ port }, "POST", target, { body, ...{ headers: { authorization: `Bearer ${token}` } } });
    for (const [target, body, status, pattern] of [
      ["/api/objects/app%2FLedger/x/sql", { sql: 1 }, 400, /"sql" must be a text/],
      ["/api/objects/app%2FLedger/x/sql", { sql: "SELECT ?", params: [] }, 400, /1 parameters, but 0/],
      ["/api/objects/app%2FLedger/x/sql", { sql: "SELECT ?", params: [{}] }, 400, /must be null, a number or a string/],
      ["/api/objects/app%2FLedger/%00/sql", { sql: "SELECT 1" }, 400, /percent-encoding/],
      ["/api/objects/app%2FNone/x/sql", { sql: "SELECT 1" }, 404, /no namespace/],
      ["/api/objects/app%2FLedger/x/restore", {}, 400, /to which moment/],
      ["/api/objects/app%2FLedger/x/restore", { time: "yesterday" }, 400, /is no time/],
      ["/api/backup", { path: "relative" }, 400, /absolute/],
      ["/api/namespaces", {}, 405, /POST is not possible/],
    ]) {
      const answer = await post(target, body);
      assert.equal(answer.status, status, `${target} ${answer.text}`);
      assert.match(answer.json.error.message, pattern);
    }
    const large = await raw(port, `POST /api/backup HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100000000\r\nConnection: close\r\n\r\n{`);
    assert.match(large, /^HTTP\/1.1 413 /);
  });
  test("a right token is let in whatever wrong ones came from its address, which are told to wait (G3)", async () => {
    const asked = (text) => ask({ port }, "GET", "/api/namespaces", bearer(text));
    const wrong = (i) => asked(`wrong ${i}`.padEnd(48, "0"));
    const statuses = [];
    for (let i = 0; i < 30; i++) {
      const answer = await wrong(i);
      statuses.push(answer.status);
      if (answer.status === 429) assert.ok(Number(answer.headers["retry-after"]) >= 1);
      assert.equal((await asked(token)).status, 200, `after ${i + 1} wrong ones`);
    }
    assert.deepEqual(statuses, [...Array(5).fill(401), ...Array(25).fill(429)]);
    assert.equal((await ask({ port }, "GET", "/api/namespaces")).status, 401); // none is not a wrong one
    await server.until(/127\.0\.0\.1 has sent 6 wrong tokens to the admin listener/);
    assert.equal(server.output.match(/wrong tokens/g).length, 1);
  });
  test("a path is read once: it is checked as it is routed (P1)", async () => {
    for (const target of forms("/accounts/another/workers/scripts")) {
      assert.equal((await ask({ port }, "GET", target)).status, 401, target);
      const { status, json } = await ask({ port }, "GET", target, bearer(token));
      assert.deepEqual([status, json.errors?.[0].code], [403, 9109], target);
    }
    for (const target of ["/healthz", "//healthz", "/healthz/"]) assert.equal((await ask({ port }, "GET", target)).status, 200, target);
    for (const target of ["//api/memory", "/api//memory/", "//openapi.json"]) {
      assert.equal((await ask({ port }, "GET", target)).status, 401, target);
      assert.equal((await ask({ port }, "GET", target, bearer(token))).status, 200, target);
    }
    for (const target of ["/client/%764/accounts", "/CLIENT/v4/accounts", "/client/v4/./accounts", "/api/../client/v4/accounts", "/%2fclient/v4/accounts"])
      assert.equal((await ask({ port }, "GET", target, bearer(token))).status, 404, target);
  });
});

test("a server without deployments refuses the platform's API however its path is written (P1)", async () => {
  const server = await serve(dir, { command: "dev", args: ["--admin", "127.0.0.1:0"] });
  const port = await adminPort(server);
  const token = readFileSync(path.join(server.data, "admin.token"), "utf8").trim();
  for (const target of [...forms("/accounts"), ...forms("/accounts/x/workers/scripts")]) {
    const { status, json } = await ask({ port }, "GET", target, bearer(token));
    assert.deepEqual([status, json.errors?.[0].code], [405, 10013], target);
  }
  await server.stop();
});

test("beyond loopback a token must be given, and metrics need it too", async () => {
  const refused = run(["serve", dir, "--listen", "127.0.0.1:0", "--data", tempDir(), "--admin", "0.0.0.0:0"]);
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /needs a token: set CAIRN_ADMIN_TOKEN/);
  const token = "a token of some length";
  const server = await serve(dir, { args: ["--admin", "0.0.0.0:0"], env: { CAIRN_ADMIN_TOKEN: token } });
  const port = await adminPort(server);
  assert.equal((await ask({ port }, "GET", "/healthz", { headers: { host: "any.example" } })).status, 200);
  assert.equal((await ask({ port }, "GET", "/metrics")).status, 401);
  assert.equal((await ask({ port }, "GET", "/metrics", bearer(token))).status, 200);
  await server.stop();
});

test("a port that is taken is a warning if nobody asked for it, and an error if somebody did", async () => {
  const blocker = net.createServer().listen(8788, "127.0.0.1");
  await new Promise((resolve) => { blocker.on("listening", resolve); blocker.on("error", resolve); }); // taken either way
  const server = await serve(dir, { env: { CAIRN_ADMIN: "" } });
  await server.until(/there is no admin listener: port 8788 is taken/);
  await server.stop();
  const asked = run(["serve", dir, "--listen", "127.0.0.1:0", "--data", tempDir(), "--admin", "127.0.0.1:8788"]);
  assert.equal(asked.status, 1);
  assert.match(asked.stderr, /admin listener/);
  blocker.close();
});
