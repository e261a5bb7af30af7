// Bindings that lead to servers elsewhere: `ai`, `hyperdrive`; and keys of older configurations.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import test from "node:test";
import { project, run, serve } from "../lib/cairn.mjs";

const config = (more) => `{ "name": "w", "main": "index.js", "compatibility_date": "2026-01-01", ${more} }`;
const run_it = `
const say = async (f) => { try { return await f(); } catch (e) { return e.name + ": " + e.message; } };
export default { async fetch(request, env) { const { f } = await request.json(); return Response.json((await say(() => calls[f](env))) ?? null); } };
`;
const ask = async (server, f) => (await server.fetch("/", { method: "POST", body: JSON.stringify({ f }) })).json();

/** A server that speaks as much of OpenAI's API as the tests need; it keeps what it was asked. */
async function upstream(t) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = text ? JSON.parse(text) : null;
    asked.push({ path: request.url, key: request.headers.authorization ?? null, body });
    const json = (value, status = 200) => response.writeHead(status, { "content-type": "application/json", "x-request-id": "r1" }).end(JSON.stringify(value));
    if (request.url === "/v1/models") return json({ data: [{ id: "llama" }] });
    if (request.url === "/v1/embeddings") return json({ data: [].concat(body.input).map((x, i) => ({ index: i, embedding: [i, 0.5] })) });
    if (request.url === "/v1/responses") return json({ output: [{ type: "message", model: body.model }] });
    if (body.model === "broken") return json({ error: { message: "no such model" } }, 404);
    if (body.stream) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const part of ["data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\nda", "ta: {\"choices\":[{\"delta\":{\"content\":\"gr\\u00fc", "\\u00df\"}}]}\r\n\r\n",
        ": a comment\n\n", "data: {\"choices\":[{\"delta\":{\"content\":\" dich\"}}]}\n\n", "data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\ndata: [DONE]\n\n"]) {
        response.write(part);
        await new Promise((ok) => setImmediate(ok));
      }
      return response.end();
    }
    const message = body.tools
      ? { content: null, tool_calls: [{ id: "1", type: "function", function: { name: body.tools[0].function.name, arguments: "{\"n\":1}" } }] }
      : { content: body.response_format ? "{\"a\":[1]}" : `you said ${body.messages.at(-1).content}` };
    json({ choices: [{ message }], usage: { total_tokens: 7 } });
  });
  await new Promise((ok) => server.listen(0, "127.0.0.1", ok));
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${server.address().port}/v1`, asked };
}

const calls = `
const read = (stream) => new Response(stream).text();
const calls = {
  messages: (env) => env.AI.run("@cf/meta/llama", { messages: [{ role: "user", content: "hi" }], max_tokens: 5 }),
  prompt: (env) => env.AI.run("@cf/other", { prompt: "ho" }),
  tools: (env) => env.AI.run("@cf/meta/llama", { prompt: "x", tools: [{ name: "add", description: "d", parameters: { type: "object" } }] }),
  json: (env) => env.AI.run("@cf/meta/llama", { prompt: "x", response_format: { type: "json_object" } }),
  stream: async (env) => read(await env.AI.run("@cf/meta/llama", { prompt: "x", stream: true })),
  embed: (env) => env.AI.run("@cf/baai/bge", { text: ["a", "b"] }),
  input: (env) => env.AI.run("@cf/meta/llama", { input: "x" }),
  raw: async (env) => { const r = await env.AI.run("@cf/meta/llama", { prompt: "x" }, { returnRawResponse: true }); return [r instanceof Response, r.status]; },
  models: async (env) => (await env.AI.models()).map((m) => m.name),
  broken: (env) => env.AI.run("broken", { prompt: "x" }),
  picture: (env) => env.AI.run("@cf/flux", { image: [1], width: 5 }),
  gateway: (env) => env.AI.gateway("x"),
  after: async (env) => { await env.AI.run("@cf/meta/llama", { prompt: "x" }); return [env.AI.lastRequestId, env.AI.lastRequestHttpStatusCode, JSON.stringify(env.AI).includes("secret")]; },
};` + run_it;

test("ai leads to a server that speaks OpenAI's API, with its names of models and its key", async (t) => {
  const { url, asked } = await upstream(t);
  const dir = project(t, {
    "wrangler.jsonc": config(`"ai": { "binding": "AI" }, "cairn": { "ai": { "url": "${url}/", "key": "MODEL_KEY", "models": { "@cf/meta/llama": "llama", "broken": "broken", "*": "any" } } }`),
    "index.js": calls, ".dev.vars": "MODEL_KEY=secret\n",
  });
  const server = await serve(t, dir);
  assert.deepEqual(await ask(server, "messages"), { response: "you said hi", usage: { total_tokens: 7 } });
  assert.deepEqual(asked[0], { path: "/v1/chat/completions", key: "Bearer secret", body: { model: "llama", messages: [{ role: "user", content: "hi" }], max_tokens: 5 } });
  assert.equal((await ask(server, "prompt")).response, "you said ho");
  assert.equal(asked[1].body.model, "any");
  assert.deepEqual((await ask(server, "tools")).tool_calls, [{ name: "add", arguments: { n: 1 } }]);
  assert.deepEqual((await ask(server, "json")).response, { a: [1] });
  assert.equal(await ask(server, "stream"),
    `data: {"response":"grüß"}\n\ndata: {"response":" dich"}\n\ndata: {"response":"","usage":{"total_tokens":3}}\n\ndata: [DONE]\n\n`);
  assert.deepEqual(await ask(server, "embed"), { shape: [2, 2], data: [[0, 0.5], [1, 0.5]], pooling: "mean" });
  assert.deepEqual(await ask(server, "input"), { output: [{ type: "message", model: "llama" }] });
  assert.deepEqual(await ask(server, "raw"), [true, 200]);
  assert.deepEqual(await ask(server, "models"), ["@cf/meta/llama", "broken", "llama"]);
  assert.equal(await ask(server, "broken"), "InferenceUpstreamError: 404: no such model");
  assert.match(await ask(server, "picture"), /\[cairn\.ai\] has no way to run @cf\/flux with \{image, width\}/);
  assert.match(await ask(server, "gateway"), /env\.AI\.gateway\(\) is not there/);
  assert.deepEqual(await ask(server, "after"), ["r1", 200, false]);
});

test("ai without [cairn.ai] is there, and its use says what is missing; a key that is not there is refused", async (t) => {
  const dir = project(t, { "wrangler.jsonc": config(`"ai": { "binding": "AI", "remote": true }`), "index.js": calls });
  const server = await serve(t, dir);
  assert.match(await ask(server, "prompt"), /env\.AI leads nowhere: name a server that speaks OpenAI's API in the configuration, \[cairn\.ai\] url/);
  const wrong = project(t, { "wrangler.jsonc": config(`"ai": { "binding": "AI" }, "cairn": { "ai": { "url": "http://127.0.0.1:1", "key": "NOPE" } }`), "index.js": calls });
  await assert.rejects(serve(t, wrong), /\[cairn\.ai\]: the project has no variable or secret named NOPE/);
});

test("hyperdrive: the parts of the connection string, and a socket to the database", async (t) => {
  const database = net.createServer((socket) => socket.end("hello from the database"));
  await new Promise((ok) => database.listen(0, "127.0.0.1", ok));
  t.after(() => database.close());
  const { port } = database.address();
  const index = `
const calls = {
  parts: ({ DB }) => [DB.connectionString, DB.host, DB.port, DB.user, DB.password, DB.database],
  plain: ({ OTHER }) => [OTHER.host, OTHER.port, OTHER.database],
  none: ({ NONE }) => NONE.connectionString,
  connect: async ({ DB }) => new Response(DB.connect().readable).text(),
};` + run_it;
  const text = `postgres://me:p%40ss@127.0.0.1:${port}/shop?sslmode=disable`;
  const dir = project(t, {
    "wrangler.jsonc": config(`"hyperdrive": [{ "binding": "DB", "id": "1", "localConnectionString": "mysql://not/this" },
      { "binding": "OTHER", "id": "2", "localConnectionString": "mysql://u@db.example/x" }, { "binding": "NONE", "id": "3" }]`), "index.js": index,
  });
  const server = await serve(t, dir, { env: { WRANGLER_HYPERDRIVE_LOCAL_CONNECTION_STRING_DB: text } });
  assert.deepEqual(await ask(server, "parts"), [text, "127.0.0.1", port, "me", "p@ss", "shop"]);
  assert.deepEqual(await ask(server, "plain"), ["db.example", 3306, "x"]);
  assert.match(await ask(server, "none"), /env\.NONE has no database: give its connection string in the variable CAIRN_HYPERDRIVE_NONE/);
  assert.equal(await ask(server, "connect"), "hello from the database");
  await assert.rejects(serve(t, dir, { env: { CAIRN_HYPERDRIVE_DB: "http://x" } }), /connection string of DB must begin with postgres/);
});

test("rate limits of unsafe.bindings; what else is unsafe is refused; access is a warning", async (t) => {
  const limit = (more = "") => `"unsafe": { "bindings": [{ "name": "LIMIT", "type": "ratelimit", "namespace_id": "7", "simple": { "limit": 2, "period": 60 } }${more}] }`;
  const index = `export default { async fetch(request, env) { const list = []; for (let i = 0; i < 3; i++) list.push((await env.LIMIT.limit({ key: "k" })).success); return Response.json(list); } };`;
  const server = await serve(t, project(t, { "wrangler.jsonc": config(limit() + `, "access": { "dev": { "aud": "x" } }`), "index.js": index }));
  assert.deepEqual(await (await server.fetch("/")).json(), [true, true, false]);
  await server.until(/warn .*"access": nobody is authenticated by cairn/);
  const other = run(["build", project(t, { "wrangler.jsonc": config(limit(`, { "name": "X", "type": "metric" }`)), "index.js": index })]);
  assert.match(other.stderr, /"unsafe" is a key of wrangler that cairn does not run yet/);
  const wrong = run(["build", project(t, { "wrangler.jsonc": config(limit().replace("60", "30")), "index.js": index })]);
  assert.match(wrong.stderr, /"unsafe\.bindings: simple\.period" of LIMIT must be 10 or 60/);
});
