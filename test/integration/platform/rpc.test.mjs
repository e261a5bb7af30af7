// RPC as the platform has it: what can be reached, what is sent, who owns a stub (RPC-1..6), and what
// a script may not do while it starts (G1 of prelude/internal/startup.js).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { project, serve, tempDir } from "../lib/server.mjs";
import { objects, services } from "../lib/toml.mjs";

const worker = readFileSync(new URL("rpc.js", import.meta.url), "utf8");
const config = (flags) => `name = "rpc"
main = "index.js"
compatibility_date = "2026-08-22"
compatibility_flags = ${JSON.stringify(flags)}
${services({ SERVICE: { service: "rpc", entrypoint: "Service" } })}
${objects({ THING: "Thing", BARE: "Bare" })}`;

async function start(flags) {
  const server = await serve(project({ "wrangler.toml": config(flags), "index.js": worker }), { data: tempDir() });
  const check = async (name) => (await server.fetch(`/${name}`)).json();
  return { server, check };
}

describe("RPC", () => {
  let server, check;
  before(async () => { ({ server, check } = await start([])); });
  after(() => server.stop());
  const missing = (name) => `TypeError: The RPC receiver does not implement the method "${name}".`;

  test("G1: I/O, timers and random values fail while the script starts, computing does not", async () => {
    const refused = "Disallowed operation called within global scope. Async";
    assert.deepEqual(await check("atStart"), [["waitUntil", refused], ["setTimeout", refused], ["random", refused], ["uuid", refused], refused, 32]);
  });
  test("RPC-2: stubs, properties and promises are instances of their classes", async () => {
    assert.deepEqual(await check("classes"), [true, true, true, true, false]);
  });
  test("RPC-3 RPC-4: members by class, own members of plain objects and functions, nothing else", async () => {
    assert.deepEqual(await check("members"), [3, "deep", "called", 3, 7, 3, "fetched x", missing("other"), missing("nothing"),
      "worked", missing("b"), missing("a"), 'DataCloneError: Could not serialize object of type "Object". This type does not support serialization.',
      "TypeError: Failed to construct 'RpcStub': the value is neither a function, nor a plain object, nor an RpcTarget."]);
  });
  test("RPC-2: promises and properties of stubs are not values", async () => {
    const refused = (type) => `DataCloneError: Could not serialize object of type "${type}". This type does not support serialization.`;
    assert.deepEqual(await check("sends"), [1, refused("RpcPromise"), refused("RpcProperty"), refused("RpcPromise")]);
  });
  test("RPC-2: a Proxy is called where it is, if it shows what can be called", async () => {
    const [seen, other, counting] = await check("proxies");
    assert.equal(seen, 20);
    assert.match(other, /^DataCloneError: Proxy could not be serialized because it is not a valid RPC receiver type/);
    assert.equal(counting, "worked");
  });
  test("RPC-6: who sends a stub keeps it", async () => assert.equal(await check("ownership"), "worked"));
  test("RPC-6: results are disposed of with their own disposer, and what an event has duplicated ends with it", async () => {
    assert.deepEqual(await check("disposal"), [5, "disposed", "disposed", "function", "function"]);
  });
  test("DO-ERR-1: an error of an object has its properties, and says which object it was", async () => {
    assert.deepEqual(await check("errors"), ["boom", 7, true, true]);
  });
  test("DO-CL-1: a class that does not extend DurableObject takes no calls", async () => {
    assert.deepEqual(await check("withoutExtends"), ["bare", "TypeError: The receiving Durable Object does not support RPC, "]);
  });
});

test("RPC-6: with rpc_params_transfer_stubs a stub leaves whoever sends it", async (t) => {
  const { server, check } = await start(["rpc_params_transfer_stubs"]);
  t.after(() => server.stop());
  assert.equal(await check("ownership"), "Error: RPC stub used after being disposed.");
});

test("DO-CL-1: with js_rpc it takes them", async (t) => {
  const { server, check } = await start(["js_rpc"]);
  t.after(() => server.stop());
  assert.deepEqual(await check("withoutExtends"), ["bare", "worked"]);
});
