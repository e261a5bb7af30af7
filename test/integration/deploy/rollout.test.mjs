// Two versions of a worker serve at the same time (src/worker/script.h R1 to R4): shares, keys, overrides, objects, restarts.
import assert from "node:assert/strict";
import test from "node:test";
import { Client, dataFolder, empty, hello, tally, token } from "./lib.mjs";

const counter = (name) => `
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
export class Counter extends DurableObject {
  async next() {
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    await this.ctx.storage.put("n", n);
    return "${name} " + n;
  }
}
export class Own extends WorkerEntrypoint { which() { return "${name}"; } }
export default { async fetch(request, env, ctx) {
  const url = new URL(request.url);
  if (url.pathname === "/object") return new Response(await env.COUNTER.getByName(url.searchParams.get("name")).next());
  if (url.pathname === "/own") return new Response("${name} " + await ctx.exports.Own.which());
  return new Response("${name}");
} };`;
const bindings = [{ type: "durable_object_namespace", name: "COUNTER", class_name: "Counter" }];
const metadata = { bindings, compatibility_flags: ["enable_ctx_exports"] };

/** Uploads a version that is not deployed: its id. */
async function upload(client, name, source, more = {}) {
  const { status, body } = await client.script(name, source, { metadata: { ...metadata, ...more } }, "POST", `workers/scripts/${name}/versions`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.result.id;
}
const deploy = (client, name, shares) => client.ask("POST", `workers/scripts/${name}/deployments`, {
  json: { strategy: "percentage", versions: Object.entries(shares).map(([version_id, percentage]) => ({ version_id, percentage })) },
});

test("10 and 90 percent of 10,000 requests; keys, objects and a restart stay with their version", async (t) => {
  const data = dataFolder(t);
  let server = await empty(t, data);
  const who = token(data);
  let client = new Client(server, who);
  await client.deploy("w", counter("one"), { metadata: { ...metadata, migrations: { new_tag: "v1", steps: [{ new_sqlite_classes: ["Counter"] }] } } });
  const { items: [{ id: one }] } = await client.result("GET", "workers/scripts/w/versions");
  const two = await upload(client, "w", counter("two"));
  assert.deepEqual(await tally(server, 50), { one: 50 });
  assert.equal((await deploy(client, "w", { [two]: 10, [one]: 90 })).status, 200);

  const seen = await tally(server, 10_000);
  assert.equal(seen.one + seen.two, 10_000);
  assert.ok(seen.two > 850 && seen.two < 1150, `${seen.two} of 10,000 came to the version with 10 %`); // five standard deviations

  const key = (i) => ({ headers: { "Cloudflare-Workers-Version-Key": `user-${i}` } });
  const of = {};
  for (let i = 0; i < 60; i++) {
    const [[answer, count], ...others] = Object.entries(await tally(server, 5, () => key(i)));
    assert.deepEqual([count, others], [5, []]);
    of[i] = answer;
  }
  assert.ok(Object.values(of).includes("two"), "no key of 60 is of the new version"); // the same in every run
  const override = (id) => () => ({ headers: { "Cloudflare-Workers-Version-Overrides": `other="x", w="${id}"` } });
  assert.deepEqual(await tally(server, 20, override(two)), { two: 20 });
  assert.deepEqual(await tally(server, 20, override(one)), { one: 20 });
  const unknown = await tally(server, 20, override("no-such-version"));
  assert.equal((unknown.one ?? 0) + (unknown.two ?? 0), 20);

  // An object runs one version, whichever worker calls it.
  const objectOf = async (name) => {
    const answers = Object.keys(await tally(server, 6, (i) => ({ path: `/object?name=${name}`, ...override(i % 2 ? one : two)() })));
    assert.equal(new Set(answers.map((text) => text.split(" ")[0])).size, 1, answers.join());
    return answers[0].split(" ")[0];
  };
  const objects = {};
  for (let i = 0; i < 200; i++) objects[i] = await objectOf(i);
  assert.ok(Object.values(objects).includes("one") && Object.values(objects).includes("two"), JSON.stringify(objects));
  // A version that calls its own worker gets itself (R4).
  assert.deepEqual(await tally(server, 30, () => ({ path: "/own", ...override(two)() })), { "two two": 30 });
  assert.deepEqual(await tally(server, 30, () => ({ path: "/own", ...override(one)() })), { "one one": 30 });

  // After a crash all of it is the same, and more for the new version takes nothing from it.
  await server.kill();
  server = await empty(t, data, { env: { CAIRN_BUNDLER: "/nonexistent" } });
  client = new Client(server, who);
  for (let i = 0; i < 200; i += 5) assert.equal(await objectOf(i), objects[i]);
  for (let i = 0; i < 60; i += 5) assert.deepEqual(await tally(server, 2, () => key(i)), { [of[i]]: 2 });
  assert.equal((await deploy(client, "w", { [one]: 50, [two]: 50 })).status, 200);
  for (let i = 0; i < 60; i++) {
    if (of[i] === "two") assert.deepEqual(await tally(server, 2, () => key(i)), { two: 2 });
  }
  for (let i = 0; i < 200; i++) if (objects[i] === "two") assert.equal(await objectOf(i), "two");
  const { deployments } = await client.result("GET", "workers/scripts/w/deployments");
  assert.deepEqual(deployments[0].versions, [{ version_id: two, percentage: 50 }, { version_id: one, percentage: 50 }]);
  assert.deepEqual(deployments[1].versions, [{ version_id: two, percentage: 10 }, { version_id: one, percentage: 90 }]);

  // Without a share it serves those who ask for it; then all.
  assert.equal((await deploy(client, "w", { [one]: 100, [two]: 0 })).status, 200);
  assert.deepEqual(await tally(server, 100), { one: 100 });
  assert.deepEqual(await tally(server, 10, override(two)), { two: 10 });
  assert.equal((await deploy(client, "w", { [two]: 100 })).status, 200);
  assert.deepEqual(await tally(server, 100), { two: 100 });
  assert.deepEqual(await tally(server, 10, override(one)), { two: 10 });
});

test("a roll-out that cannot be is refused, and what served serves on", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const client = new Client(server, token(data));
  await client.deploy("w", counter("one"), { metadata: { ...metadata, migrations: { new_tag: "v1", steps: [{ new_sqlite_classes: ["Counter"] }] } } });
  const { items: [{ id: one }] } = await client.result("GET", "workers/scripts/w/versions");
  const two = await upload(client, "w", counter("two")), three = await upload(client, "w", counter("three"));
  const bare = await upload(client, "w", hello("bare"), { bindings: [] }), broken = await upload(client, "w", `${counter("x")}\nthrow new Error("at start");`);
  const refused = async (shares, pattern) => {
    const { status, body } = await deploy(client, "w", shares);
    assert.ok(status >= 400 && status < 500, `${status}`);
    assert.match(body.errors[0].message, pattern);
    assert.deepEqual(await tally(server, 20), { one: 20 });
  };
  await refused({ [one]: 50, [two]: 49 }, /100/);
  await refused({ [one]: 150, [two]: -50 }, /percentage/);
  await refused({ [one]: 100, "11111111-1111-4111-8111-111111111111": 0 }, /no such version/);
  await refused({ [one]: 30, [two]: 30, [three]: 40 }, /at most 2/);
  await refused({}, /100/);
  await refused({ [one]: 50, [bare]: 50 }, /Counter/); // lacks the class
  await refused({ [one]: 99.99, [broken]: 0.01 }, /at start/);
  const twice = await client.ask("POST", "workers/scripts/w/deployments",
    { json: { versions: [{ version_id: one, percentage: 50 }, { version_id: one, percentage: 50 }] } });
  assert.equal(twice.status, 400);
  // A secret would change one version of two.
  assert.equal((await deploy(client, "w", { [one]: 50, [three]: 50 })).status, 200);
  const secret = await client.ask("PUT", "workers/scripts/w/secrets", { json: { name: "K", text: "v", type: "secret_text" } });
  assert.equal(secret.body.errors[0].code, 10215);
});
