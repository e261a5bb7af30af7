// What comes back from stub.fetch() and from methods: redirects with a body, HEAD, what is thrown, bodies that fail, requests
// that are given up. What is expected is what workerd 1.20261104 answers to the same code.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { project, serve } from "../lib/server.mjs";

const echoed = (options) => `const answer = await o.fetch("http://a/redirect", ${options}); return [await answer.json(), answer.redirected];`;
const once = "TypeError: A request with a one-time-use body (it was initialized from a stream, not a buffer) encountered a redirect requiring the body to be " +
  "retransmitted. To avoid this error in the future, construct this request from a buffer-like body initializer.";
const caught = (call) => `try { return await ${call}; } catch (error) { return [error instanceof Error, error.name, error.message, error.remote]; }`;
const slow = (signal) => `try { await o.fetch("http://a/slow", { signal: ${signal} }); } catch (error) { return [error.name, error.retryable]; }`;

/** [what the worker does with the stub `o` of an object, what it answers or throws]. */
const cases = {
  "307 sends a text again": [echoed('{ method: "POST", body: "hello", headers: { "x-status": "307" } }'), [["POST", "hello", "text/plain;charset=UTF-8", "5"], true]],
  "308 sends bytes again": [echoed('{ method: "POST", body: new Uint8Array([65]), headers: { "x-status": "308" } }'), [["POST", "A", null, "1"], true]],
  "307 sends a form again": [echoed('{ method: "POST", body: new URLSearchParams({ a: 1 }), headers: { "x-status": "307" } }'),
    [["POST", "a=1", "application/x-www-form-urlencoded;charset=UTF-8", "3"], true]],
  "307 sends a Request again": ['const answer = await o.fetch(new Request("http://a/redirect", { method: "PUT", body: "r", headers: { "x-status": "307" } })); return answer.json();',
    ["PUT", "r", "text/plain;charset=UTF-8", "1"]],
  "301 sends a PUT again": [echoed('{ method: "PUT", body: "p", headers: { "x-status": "301" } }'), [["PUT", "p", "text/plain;charset=UTF-8", "1"], true]],
  "a stream cannot be sent again": [echoed('{ method: "POST", body: new Blob(["x"]).stream(), headers: { "x-status": "307" } }'), once],
  "HEAD has no body": ['const answer = await o.fetch("http://a/head", { method: "HEAD" }); return [answer.body, await answer.text(), answer.headers.get("content-length"), answer.headers.get("x-b")];',
    [null, "", "4", "1"]],
  "a text that is thrown": [caught('o.throws("text")'), [true, "Error", "t", true]],
  "a number": [caught('o.throws("number")'), [true, "Error", "5", true]],
  "null": [caught('o.throws("nothing")'), [true, "Error", "null", true]],
  "true, by fetch()": [caught('o.fetch("http://a/throw")'), [true, "Error", "true", true]],
  "of a getter": [caught("o.getter"), [true, "Error", "of a getter", true]],
  "of an entrypoint": [caught("env.DOOR.throws()"), [true, "Error", "of an entrypoint", true]],
  "an object stays one": ["try { await o.throws('object'); } catch (error) { return error.a; }", 1],
  "a body that fails half-way says why": [caught('(await o.fetch("http://a/fails")).text()'), [true, "RangeError", "the source", true]],
  "a stream says that it has ended": [caught("(async () => { for await (const each of await o.stream()); })()"),
    [true, "Error", "ReadableStream received over RPC disconnected prematurely.", null]],
  "a request that is aborted": [`const aborting = new AbortController(); setTimeout(() => aborting.abort(), 20); ${slow("aborting.signal")}`, ["AbortError", true]],
  "one that takes too long": [slow("AbortSignal.timeout(20)"), ["TimeoutError", true]],
  "one that was aborted before": [slow("AbortSignal.abort()"), ["AbortError", true]],
};

const source = `import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
const failing = (pulls = 0) => new ReadableStream({ pull(controller) {
  if (pulls++ === 0) controller.enqueue(new TextEncoder().encode("a")); else controller.error(new RangeError("the source"));
} });
export class Cell extends DurableObject {
  async fetch(request) {
    switch (new URL(request.url).pathname) {
      case "/redirect": return new Response(null, { status: Number(request.headers.get("x-status")), headers: { location: "/echo" } });
      case "/echo": return Response.json([request.method, await request.text(), request.headers.get("content-type"), request.headers.get("content-length")]);
      case "/head": return new Response("body", { headers: { "content-length": "4", "x-b": "1" } });
      case "/throw": throw true;
      case "/fails": return new Response(failing());
      case "/slow": await new Promise((resolve) => { setTimeout(resolve, 2000); }); return new Response("late");
    }
  }
  throws(what) { throw { text: "t", number: 5, nothing: null, object: { a: 1 } }[what]; }
  get getter() { throw "of a getter"; }
  stream() { return failing(); }
}
export class Door extends WorkerEntrypoint { throws() { throw "of an entrypoint"; } }
const cases = [
${Object.values(cases).map(([code]) => `  async (o, env) => { ${code} },`).join("\n")}
];
export default { async fetch(request, env) {
  const i = Number(new URL(request.url).pathname.slice(1));
  try { return Response.json(await cases[i](env.CELL.getByName("a"), env)); } catch (error) { return Response.json(String(error)); }
} };`;

describe("what comes back from stubs", () => {
  let server;
  before(async () => {
    server = await serve(project({ "index.js": source, "wrangler.json": JSON.stringify({
      name: "app", main: "index.js", compatibility_date: "2026-05-01",
      durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
      services: [{ binding: "DOOR", service: "app", entrypoint: "Door" }],
      migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    }) }), { nodes: 1 });
  });
  after(() => server.stop());
  Object.entries(cases).forEach(([name, [, expected]], i) => {
    test(name, async () => assert.deepEqual(await (await server.fetch(`/${i}`)).json(), expected));
  });
});
