// Service bindings as the platform has them: redirects, codings, signals, handlers called by name, sockets;
// and events that can never be answered (N1, N2 of src/worker/hung.h).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { Connection, project, serve, tempDir } from "../lib/server.mjs";
import { services } from "../lib/toml.mjs";

const worker = readFileSync(new URL("bindings.js", import.meta.url), "utf8");
const config = `name = "bindings"
main = "index.js"
compatibility_date = "2026-04-21"
compatibility_flags = ["service_binding_extra_handlers"]
${services({ OTHER: { service: "bindings", entrypoint: "Other" } })}`;
const HUNG = "The Workers runtime canceled this request because it detected that your Worker's code had hung and would never generate a response. Refer to: https://developers.cloudflare.com/workers/observability/errors/";

describe("service bindings", () => {
  let server;
  before(async () => { server = await serve(project({ "wrangler.toml": config, "index.js": worker }), { data: tempDir() }); });
  after(() => server.stop());
  const check = async (name) => (await server.fetch(`/${name}`)).json();

  test("SVC-2: redirects are followed to the same service, and the answer says where it came from", async () => {
    assert.deepEqual(await check("redirects"), ["end, manual", "http://x/end", true, "Not Found", 302, "http://x/redirect", false]);
  });
  test("SVC-2: content-encoding is for those outside", async () => {
    assert.deepEqual(await check("coding"), ["gzip", "zipped text"]);
  });
  test("SVC-2: an error response is no answer", async () => {
    assert.equal(await check("errorResponse"), "TypeError: Return value from serve handler must not be an error response (like Response.error())");
  });
  test("SVC-2: who answers is told when nobody waits any more", async () => {
    assert.deepEqual(await check("signals"), ["TimeoutError: The operation was aborted due to timeout",
      [["/slow", "The client has disconnected"], ["/stream", "The client has disconnected"]]]);
  });
  test("SVC-3: queue() and scheduled() of another worker, by name", async () => {
    const [[first, second, third, fourth], seen, refused] = await check("handlers");
    assert.deepEqual(first, { outcome: "ok", ackAll: false, retryBatch: { retry: false }, explicitAcks: ["a"], retryMessages: [{ msgId: "b", delaySeconds: 3 }] });
    assert.equal(second.outcome, "exception");
    assert.equal(third.outcome, "exception");
    assert.deepEqual(fourth, { outcome: "ok", noRetry: true });
    assert.deepEqual(seen, [["q", [{ n: 1 }, "two"], 5], ["throws", [{ n: 1 }], 0], ["* * * * *", 1000]]);
    assert.equal(refused, "TypeError: Expected one of body or serializedBody for each message");
  });
  test("SVC-3: connect() reaches the other worker's handler, also by a name of its own", async () => {
    assert.deepEqual(await check("sockets"), ["hello you", "hello you", true, true]);
  });
  test("REQ-4: an incoming request is not followed, and its signal ends nothing else", async () => {
    assert.deepEqual(await check("value"), ["manual", "manual", ["manual", true], ["manual", false], { mine: 1 }]);
  });
  test("CFG-4: Cloudflare.compatibilityFlags says what was asked for", async () => {
    assert.deepEqual(await check("flags"), [true, false, true, true]);
  });
  test("N2: the call that hangs fails, and its caller goes on", async () => {
    assert.equal(await check("hung"), `Error: ${HUNG}`);
  });
  test("N1: a handler that can never finish is answered with 500 and logged", async () => {
    const response = await server.fetch("/never");
    assert.equal(response.status, 500);
    await server.until(/never generate a response/);
  });
});

describe("events that can never be answered, among two workers", () => {
  let server;
  before(async () => {
    const dir = project({
      "wrangler.toml": "",
      "outer/wrangler.toml": `name = "outer"\nmain = "index.js"\ncompatibility_date = "2026-04-21"\nroutes = ["outer.test/*"]\n${services({ INNER: { service: "inner" } })}`,
      "outer/index.js": `let shared;
        const failure = (promise) => promise.then(() => "worked", (error) => error.message);
        export default { async fetch(request, env) {
          switch (new URL(request.url).pathname) {
            case "/hangs": return new Response(await failure(env.INNER.fetch("http://x/never")));
            case "/back": return new Response(await failure(env.INNER.fetch("http://x/back")));
            case "/never": return new Promise(() => {});
            case "/begin": shared = env.INNER.fetch("http://x/slow").then((response) => response.text()); return new Response(await shared);
            case "/share": return new Response(shared ? await shared : "not yet");
            case "/finish": return env.INNER.fetch("http://x/finish");
          }
        } };`,
      "inner/wrangler.toml": `name = "inner"\nmain = "index.js"\ncompatibility_date = "2026-04-21"\nroutes = ["inner.test/*"]\n${services({ OUTER: { service: "outer" } })}`,
      "inner/index.js": `let finish;
        export default { async fetch(request, env) {
          switch (new URL(request.url).pathname) {
            case "/back": return env.OUTER.fetch("http://x/never");
            case "/slow": { const timer = setInterval(() => {}, 1000); await new Promise((resolve) => { finish = resolve; }); clearInterval(timer); return new Response("done"); }
            case "/finish": finish(); return new Response("finished");
          }
          return new Promise(() => {});
        } };`,
    });
    server = await serve(["outer", "inner"].map((name) => `${dir}/${name}`), { data: tempDir(), lanes: 1 });
  });
  after(() => server.stop());
  const ask = async (path) => {
    const connection = new Connection(server.port);
    const { text } = await connection.get(path, { headers: { host: "outer.test" } });
    connection.close();
    return text;
  };

  test("N2: of two workers the one that is called fails, and the other goes on", async () => {
    assert.equal(await ask("/hangs"), HUNG);
  });
  test("N2: the innermost of three calls fails, though its script is the first one's", async () => {
    assert.equal(await ask("/back"), HUNG);
  });
  test("N3: who waits for what another request has asked of another worker is not failed", async () => {
    const first = ask("/begin");
    let second = ask("/share");
    while ((await Promise.race([second, new Promise((resolve) => { setTimeout(resolve, 300); })])) === "not yet") second = ask("/share");
    await new Promise((resolve) => { setTimeout(resolve, 3000); }); // three sweeps
    assert.equal(await ask("/finish"), "finished");
    assert.deepEqual(await Promise.all([first, second]), ["done", "done"]);
  });
});
