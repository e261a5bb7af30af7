// A request that is passed on is the request that came: what is made only when it is asked for (`cf`, `signal`, headers,
// the body) goes with every copy of a request that nobody has asked yet, by every way that a request can go.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";

/** How `request` becomes what is looked at; each is given a request that nothing was read of. */
const ways = {
  "itself": "request",
  "new Request(request)": "new Request(request)",
  "a copy of a copy": "new Request(new Request(request))",
  "new Request(url, request)": "new Request(request.url, request)",
  "a copy with headers": "new Request(request, { headers: { 'x-a': '1' } })",
  "clone()": "request.clone()",
  "a clone of a copy": "new Request(request).clone()",
  "structuredClone()": "structuredClone(request)",
};
/** Who gets it: gives [httpProtocol, clientAcceptEncoding, whether its signal is one]. */
const receivers = {
  "the script": "facts(passed)",
  "an object": "env.CELL.getByName('a').fetch(passed).then((answer) => answer.json())",
  "an object's method": "env.CELL.getByName('a').take(passed)",
  "an entrypoint": "env.DOOR.fetch(passed).then((answer) => answer.json())",
};
const cases = Object.entries(ways).flatMap(([way, code]) =>
  Object.entries(receivers).map(([receiver, ask]) => [`${way} to ${receiver}`, `const passed = ${code}; return ${ask};`]));

const source = `import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
const facts = ({ cf, signal, headers }) => [cf?.httpProtocol, cf?.clientAcceptEncoding, signal instanceof AbortSignal, headers.get("user-agent")];
const cases = [
${cases.map(([, code]) => `  async (request, env) => { ${code} },`).join("\n")}
];
export class Cell extends DurableObject {
  fetch(request) { return Response.json(facts(request)); }
  take(request) { return facts(request); }
}
export class Door extends WorkerEntrypoint {
  fetch(request) { return Response.json(facts(request)); }
}
const own = {
  owner: (request) => { const { cf } = new Request(request); cf.mine = 1; return [request.cf.mine ?? null, Object.isFrozen(request.cf)]; },
  given: () => { const cf = { a: [1] }; const made = new Request("http://a/", { cf }); cf.a.push(2); return [made.cf, new Request(made).cf === made.cf]; },
  city: (request) => [typeof request.cf.city, typeof request.cf.latitude, typeof request.cf.timezone, request.cf.country],
};
export default { async fetch(request, env) {
  const at = request.headers.get("x-case");
  return Response.json(await (own[at] ?? cases[at])(request, env));
} };`;

const files = { "index.js": source, "wrangler.json": JSON.stringify({
  name: "app", main: "index.js", compatibility_date: "2026-05-01",
  durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
  services: [{ binding: "DOOR", service: "app", entrypoint: "Door" }],
  migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
}) };
const ask = async (server, at) => {
  const answer = await server.fetch("/", { headers: { "x-case": `${at}`, "accept-encoding": "br, x-own", "user-agent": "forwarder" } });
  return answer.json();
};

describe("a request that is passed on", () => {
  let server;
  before(async () => { server = await serve(project(files), { nodes: 1 }); });
  after(() => server.stop());
  cases.forEach(([name], i) => {
    const agent = name.startsWith("a copy with headers") ? null : "forwarder";
    test(name, async () => assert.deepEqual(await ask(server, i), ["HTTP/1.1", "br, x-own", true, agent]));
  });
  test("cf of a copy is its own, of what came it cannot be changed", async () => assert.deepEqual(await ask(server, "owner"), [null, true]));
  test("cf that is given is copied", async () => assert.deepEqual(await ask(server, "given"), [{ a: [1] }, false]));
  test("a server says nothing of places that it does not know", async () => assert.deepEqual(await ask(server, "city"), ["undefined", "undefined", "undefined", "XX"]));
});

describe("cf in development", () => {
  let server;
  before(async () => { server = await serve(project(files), { nodes: 1, command: "dev" }); });
  after(() => server.stop());
  test("has a place, as wrangler's", async () => assert.deepEqual(await ask(server, "city"), ["string", "string", "string", "US"]));
});
