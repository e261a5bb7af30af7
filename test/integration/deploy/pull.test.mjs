// Consumers that pull over HTTP, by the platform's API: leases with a time, retries, dead letters; durable through kill -9.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, dataFolder, empty, hello, token } from "./lib.mjs";

async function start(t) {
  const data = dataFolder(t);
  const who = { data, server: await empty(t, data) };
  who.client = new Client(who.server, token(data));
  who.restart = async () => {
    await who.server.kill();
    who.server = await empty(t, data);
    who.client.server = who.server;
  };
  who.queue = async (name, consumer) => {
    const { queue_id } = await who.client.result("POST", "queues", { json: { queue_name: name } });
    if (consumer) await who.client.result("POST", `queues/${queue_id}/consumers`, { json: { type: "http_pull", ...consumer } });
    return {
      id: queue_id,
      send: (body) => who.client.result("POST", `queues/${queue_id}/messages`, { json: { body, content_type: "text" } }),
      pull: async (json = {}) => (await who.client.result("POST", `queues/${queue_id}/messages/pull`, { json })).messages,
      ack: (acks, retries = []) => who.client.result("POST", `queues/${queue_id}/messages/ack`, { json: { acks: acks.map((lease_id) => ({ lease_id })), retries: retries.map((lease_id) => (typeof lease_id === "string" ? { lease_id } : lease_id)) } }),
    };
  };
  return who;
}
const bodies = (messages) => messages.map(({ body }) => body);
const leases = (messages) => messages.map(({ lease_id }) => lease_id);

test("what was pulled and not acknowledged survives kill -9, and so do the consumer and acknowledgements that come late", async (t) => {
  const who = await start(t);
  const queue = await who.queue("jobs", { settings: { visibility_timeout_ms: 3_600_000, batch_size: 3 } });
  for (const body of ["a", "b", "c", "d", "e"]) await queue.send(body);
  const first = await queue.pull();
  assert.deepEqual(bodies(first), ["a", "b", "c"]);
  assert.deepEqual(await queue.ack([first[0].lease_id]), { ackCount: 1, retryCount: 0, settledCount: 1, warnings: {} });
  await who.restart();
  // The lease of b ended with the process; whoever has done the work may still say so. "c" comes again with what was left.
  assert.deepEqual(await queue.ack([first[1].lease_id]), { ackCount: 1, retryCount: 0, settledCount: 1, warnings: {} });
  assert.equal((await queue.ack([first[1].lease_id])).ackCount, 0);
  const again = await queue.pull({ batch_size: 10 });
  assert.deepEqual(again.map(({ body, attempts }) => [body, attempts]), [["c", 1], ["d", 1], ["e", 1]]);
  assert.equal(again[0].id, first[2].id);
  assert.equal((await queue.ack(leases(again))).ackCount, 3);
  await who.restart();
  assert.deepEqual(await queue.pull(), []);
  assert.equal((await who.client.result("GET", `queues/${queue.id}`)).consumers[0].type, "http_pull");
});

test("a lease ends with its time: the message comes again, counts, and goes to the dead letters after its last try", async (t) => {
  const who = await start(t);
  const dead = await who.queue("dead", {});
  const queue = await who.queue("jobs", { dead_letter_queue: "dead", settings: { max_retries: 1, visibility_timeout_ms: 60_000, retry_delay: 0 } });
  await queue.send("slow");
  const [first] = await queue.pull({ visibility_timeout_ms: 1 });
  let second = [];
  await who.server.untilTrue(async () => (second = await queue.pull()).length > 0, "the message again");
  assert.deepEqual([second[0].attempts, second[0].id, bodies(second)], [2, first.id, ["slow"]]);
  assert.deepEqual(await queue.ack([first.lease_id]), { ackCount: 0, retryCount: 0, settledCount: 0, warnings: { [first.lease_id]: "the lease has ended" } });
  assert.deepEqual(await queue.pull(), [], "what is leased is not given twice");
  assert.equal((await queue.ack([], [second[0].lease_id])).retryCount, 1);
  let letters = [];
  await who.server.untilTrue(async () => (letters = await dead.pull()).length > 0, "the dead letter");
  await who.restart(); // it is durable there, and gone here
  assert.deepEqual(bodies(await dead.pull()), ["slow"]);
  assert.deepEqual(await queue.pull(), []);
  // A retry with a delay waits.
  await queue.send("later");
  const [later] = await queue.pull();
  await queue.ack([], [{ lease_id: later.lease_id, delay_seconds: 3600 }]);
  assert.deepEqual(await queue.pull(), []);
});

test("who may pull: tokens with the scope data, queues with such a consumer, leases that were given", async (t) => {
  const who = await start(t);
  const { client, data } = who;
  const plain = await who.queue("plain");
  const queue = await who.queue("jobs", {});
  await queue.send("m");
  await plain.send("m");
  for (const verb of ["pull", "ack"]) {
    const { status, body } = await client.ask("POST", `queues/${plain.id}/messages/${verb}`, { json: {} });
    assert.deepEqual([status, body.success], [400, false]);
    assert.match(body.errors[0].message, /no consumer that pulls/);
    assert.equal((await client.ask("POST", `queues/${"0".repeat(32)}/messages/${verb}`, { json: {} })).status, 404);
    for (const scope of ["read", "deploy", "read,deploy"]) {
      const other = new Client(who.server, token(data, `${verb} ${scope.replace(",", " ")}`, scope));
      assert.equal((await other.ask("POST", `queues/${queue.id}/messages/${verb}`, { json: {} })).status, 403, scope);
    }
  }
  for (const [verb, json] of [
    ["pull", { batch_size: 0 }], ["pull", { batch_size: 101 }], ["pull", { batch_size: "5" }], ["pull", { visibility_timeout_ms: -1 }], ["pull", { visibility_timeout_ms: 1e12 }], ["pull", []], ["pull", "x"],
    ["ack", { acks: "x" }], ["ack", { acks: [{}] }], ["ack", { acks: [{ lease_id: "" }] }], ["ack", { acks: [{ lease_id: "zz" }] }], ["ack", { acks: [{ lease_id: 5 }] }],
    ["ack", { retries: [{ lease_id: "1-1", delay_seconds: -1 }] }], ["ack", { acks: Array(101).fill({ lease_id: "1-1" }) }], ["ack", []],
  ]) {
    const { status, body } = await client.ask("POST", `queues/${queue.id}/messages/${verb}`, { json });
    assert.ok([400, 413].includes(status) && body.success === false, `${verb} ${JSON.stringify(json).slice(0, 60)}: ${status}`);
  }
  // Settings cannot be smuggled in, and a lease that nobody was given is none.
  const [message] = await queue.pull({ consumer: { max_retries: 0, dead_letter_queue: "plain" } });
  for (const lease of ["1-1", "2-1", "ffffffffffffffff-1", "0-0", `${message.lease_id}0`, "7fffffffffffffff-ffffffff"].filter((lease) => lease !== message.lease_id))
    assert.equal((await queue.ack([lease])).ackCount, 0, lease);
  assert.equal((await queue.ack([], [message.lease_id])).retryCount, 1);
  assert.deepEqual((await queue.pull()).map(({ attempts }) => attempts), [2], "three retries by default");
});

test("a queue has one consumer: a worker or whoever pulls; settings that are none are refused", async (t) => {
  const who = await start(t);
  const { client } = who;
  await client.deploy("w", hello("w"));
  const queue = await who.queue("jobs", { settings: { batch_size: 7 } });
  const consumers = `queues/${queue.id}/consumers`;
  const worker = { type: "worker", script_name: "w", settings: {} };
  assert.equal((await client.ask("POST", consumers, { json: worker })).status, 409);
  await client.result("PUT", `${consumers}/${queue.id}`, { json: { type: "http_pull", settings: { batch_size: 8 } } });
  assert.equal((await client.result("GET", consumers))[0].settings.batch_size, 8);
  for (const bad of [{ settings: { batch_size: 0 } }, { settings: { max_retries: 101 } }, { settings: { visibility_timeout_ms: 43_200_001 } }, { settings: { retry_delay: "1" } }, { dead_letter_queue: "jobs" }, { dead_letter_queue: "../x" }, { type: "r2_bucket" }])
    assert.equal((await client.ask("PUT", `${consumers}/${queue.id}`, { json: { type: "http_pull", ...bad } })).status, 400, JSON.stringify(bad));
  assert.equal((await client.result("GET", consumers))[0].settings.batch_size, 8);
  await client.result("DELETE", `${consumers}/${queue.id}`);
  assert.equal((await client.ask("DELETE", `${consumers}/${queue.id}`)).status, 404);
  assert.equal((await client.ask("POST", `queues/${queue.id}/messages/pull`, { json: {} })).status, 400);
  await client.deploy("w", "export default { fetch() { return new Response('w'); }, queue() {} };");
  await client.result("POST", consumers, { json: worker });
  assert.equal((await client.ask("POST", consumers, { json: { type: "http_pull" } })).status, 409);
  await client.result("DELETE", `${consumers}/${queue.id}`);
  // A queue that goes takes its consumer along; another of its name has none.
  await client.result("POST", consumers, { json: { type: "http_pull" } });
  await client.result("DELETE", `queues/${queue.id}`);
  const next = await who.queue("jobs");
  assert.deepEqual(await client.result("GET", `queues/${next.id}/consumers`), []);
});
