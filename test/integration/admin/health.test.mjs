// The listener for a load balancer: whether the server is there and ready, to whoever reaches it, and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "../lib/server.mjs";
import { dir } from "./lib.mjs";

test("--health answers /healthz and /readyz, and nothing else whatever comes with it", async () => {
  const server = await serve(dir, { env: { CAIRN_HEALTH: "0.0.0.0:0", CAIRN_ADMIN_TOKEN: "a token of the admin" } });
  const [, port] = await server.until(/health on http:\/\/0\.0\.0\.0:(\d+)/);
  const ask = async (target, init) => {
    const response = await fetch(`http://127.0.0.1:${port}${target}`, init);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await ask("/healthz"), [200, "ok\n"]);
  assert.deepEqual(await ask("/readyz"), [200, "ready\n"]);
  assert.deepEqual(await ask("/readyz?from=balancer", { headers: { host: "balancer.example" } }), [200, "ready\n"]);
  const headers = { authorization: "Bearer a token of the admin" };
  for (const target of ["/", "/metrics", "/api/address", "/api/workers", "/client/v4/user", "//client/v4/user", "/readyz/../metrics", "/openapi.json"])
    assert.equal((await ask(target, { headers }))[0], 404, target);
  assert.equal((await ask("/readyz", { method: "POST", headers, body: "x" }))[0], 405);
  await server.stop();
});
