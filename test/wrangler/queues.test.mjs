// Consumers that pull over HTTP, made by the real wrangler (`make test-wrangler`) and used by the API's own client.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { dataFolder, empty, token } from "../integration/deploy/lib.mjs";
import { folder, wrangler } from "./lib.mjs";

const { Cloudflare } = createRequire(process.env.WRANGLER)("cloudflare");

test("wrangler adds a consumer that pulls, lists it and removes it; a queue has one consumer; purge empties it", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const who = token(data);
  const dir = folder(t, {
    "wrangler.toml": 'name = "w"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[[queues.producers]]\nbinding = "Q"\nqueue = "jobs"\n',
    "index.js": "export default { async fetch(request, env) { await env.Q.send({ from: 'worker' }); return new Response('sent'); }, queue() {} };",
  });
  const run = (...args) => wrangler(server, who, dir, args);
  await run("queues", "create", "jobs");
  await run("queues", "create", "dead");
  await run("deploy");
  await run("queues", "consumer", "http", "add", "jobs", "--batch-size", "2", "--message-retries", "1", "--dead-letter-queue", "dead", "--visibility-timeout-secs", "60", "--retry-delay-secs", "0");
  assert.match(await run("queues", "info", "jobs"), /HTTP Pull Consumer/);
  await assert.rejects(run("queues", "consumer", "add", "jobs", "w"), /has a consumer/);

  const client = new Cloudflare({ apiToken: who.token, baseURL: server.api, maxRetries: 0 });
  const account_id = who.account;
  const { queue_id } = (await client.queues.list({ account_id })).result.find(({ queue_name }) => queue_name === "jobs");
  const pull = async (options = {}) => (await client.queues.messages.pull(queue_id, { account_id, ...options }));
  const messages = (answer) => answer.messages ?? answer.result?.messages ?? answer.result;
  const [consumer] = (await client.queues.consumers.list(queue_id, { account_id })).result;
  assert.deepEqual([consumer.type, consumer.dead_letter_queue, consumer.settings.batch_size, consumer.settings.max_retries, consumer.settings.visibility_timeout_ms], ["http_pull", "dead", 2, 1, 60_000]);
  await server.text("/");
  await client.queues.messages.push(queue_id, { account_id, body: "text", content_type: "text" });
  await client.queues.messages.bulkPush(queue_id, { account_id, messages: [{ body: { n: 1 }, content_type: "json" }, { body: "more", content_type: "text" }] });
  const first = messages(await pull());
  assert.deepEqual(first.map(({ attempts, body, metadata }) => [attempts, metadata["CF-Content-Type"], body]), [[1, "json", Buffer.from('{"from":"worker"}').toString("base64")], [1, "text", "text"]]);
  const done = await client.queues.messages.ack(queue_id, { account_id, acks: [{ lease_id: first[0].lease_id }], retries: [{ lease_id: first[1].lease_id, delay_seconds: 0 }] });
  assert.deepEqual([done.ackCount, done.retryCount], [1, 1]);
  const rest = messages(await pull({ batch_size: 10 }));
  assert.deepEqual(rest.map(({ attempts, body }) => [attempts, body]), [[1, Buffer.from('{"n":1}').toString("base64")], [1, "more"], [2, "text"]]);
  // The last retry that it has: it goes to the dead letters, durably.
  await client.queues.messages.ack(queue_id, { account_id, acks: rest.slice(0, 2).map(({ lease_id }) => ({ lease_id })), retries: [{ lease_id: rest[2].lease_id }] });
  await run("queues", "consumer", "http", "add", "dead");
  const dead = (await client.queues.list({ account_id })).result.find(({ queue_name }) => queue_name === "dead").queue_id;
  let letters = [];
  await server.untilTrue(async () => (letters = messages(await client.queues.messages.pull(dead, { account_id }))).length > 0, "the dead letter");
  assert.deepEqual(letters.map(({ body }) => body), ["text"]);
  assert.deepEqual(messages(await pull()), []);
  await server.text("/");
  await run("queues", "purge", "jobs", "--force");
  assert.deepEqual(messages(await pull()), []);
  await run("queues", "consumer", "http", "remove", "jobs");
  await assert.rejects(pull(), /no consumer that pulls/);
  await run("queues", "consumer", "add", "jobs", "w");
  await run("queues", "delete", "dead");
});
