// What an uploaded worker can reach: nothing of the operator's comes to it by a name that the upload chose (H6 of src/deploy/hosted.h).
import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../admin/lib.mjs";
import { project, serve } from "../lib/cairn.mjs";
import { Client, dataFolder, empty, token } from "./lib.mjs";

const ID = "0123456789abcdef0123456789abcdef", OTHER = "f".repeat(32);
const MARK = "OPERATORS-OWN";
/** Values that an operator has around him, all with the mark in them. */
const around = {
  CAIRN_HYPERDRIVE_DB: `postgres://u:${MARK}@10.0.0.1/prod`,
  [`CAIRN_HYPERDRIVE_${ID}`]: `postgres://u:${MARK}@10.0.0.1/prod`,
  CLOUDFLARE_HYPERDRIVE_LOCAL_CONNECTION_STRING_DB: `postgres://u:${MARK}@10.0.0.1/prod`,
  WRANGLER_HYPERDRIVE_LOCAL_CONNECTION_STRING_DB: `postgres://u:${MARK}@10.0.0.1/prod`,
  CAIRN_AI_KEY: MARK, CAIRN_EMAIL_PASSWORD: MARK, CAIRN_S3_ACCESS_KEY_ID: `${MARK}1`, CAIRN_S3_SECRET_ACCESS_KEY: `${MARK}2`, CAIRN_VAR: `SECRET=${MARK}`, PGPASSWORD: MARK, SECRET: MARK,
};
/** Everything that it can find. */
const LOOK = `import process from "node:process";
const tried = async (f) => { try { return await f(); } catch (error) { return error.message; } };
export default { async fetch(request, env) {
  const all = { env: Object.entries(env).map(([k, v]) => [k, typeof v === "object" ? Object.getOwnPropertyNames(Object.getPrototypeOf(v)) : String(v)]), process: process.env, variables: Object.entries(globalThis).length };
  for (const key of ["connectionString", "password", "host"]) all[key] = await tried(() => env.DB[key]);
  all.ai = await tried(() => env.AI.run("m", { prompt: "x" }));
  all.mail = await tried(() => env.MAIL.send({ from: "a@b.c", to: "a@b.c", subject: "s", text: "t" }));
  return Response.json(all);
} };`;
const bindings = (id = ID) => [{ type: "hyperdrive", name: "DB", id }, { type: "ai", name: "AI" }, { type: "send_email", name: "MAIL" }, { type: "plain_text", name: "OWN", text: "own" }];
const metadata = (id) => ({ bindings: bindings(id), compatibility_flags: ["nodejs_compat", "nodejs_compat_populate_process_env"] });

test("an uploaded worker gets nothing of the process's environment by a name it chose", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data, { env: { ...around, [`CAIRN_HYPERDRIVE_ID_${OTHER}`]: "postgres://given:to-all@10.0.0.2/shared" } });
  const client = new Client(server, token(data, "d", "deploy"));
  for (const id of [ID, ID.toUpperCase(), "DB", "", `${OTHER} `, `../${OTHER}`, OTHER.slice(1)]) {
    await client.deploy("w", LOOK, { metadata: metadata(id) });
    const text = await server.text("/");
    assert.ok(!text.includes(MARK), `${id}: ${text}`);
    assert.match(JSON.parse(text).connectionString, /env\.DB has no database: .*CAIRN_HYPERDRIVE_ID_/);
    assert.deepEqual(JSON.parse(text).process, { OWN: "own" });
  }
  // What the operator gives by an id is for whoever may deploy.
  await client.deploy("w", LOOK, { metadata: metadata(OTHER) });
  const given = JSON.parse(await server.text("/"));
  assert.deepEqual([given.connectionString, given.password], ["postgres://given:to-all@10.0.0.2/shared", "to-all"]);
});

test("beside projects on the server's disk: theirs stay theirs, and names of the server's own lead nowhere", async (t) => {
  const data = dataFolder(t);
  const dir = project(t, {
    "wrangler.json": JSON.stringify({
      name: "local", main: "index.js", compatibility_date: "2026-01-01", vars: { V: MARK }, hyperdrive: [{ binding: "DB", id: ID }], r2_buckets: [{ binding: "B", bucket_name: "b" }],
      cairn: { hosts: ["local.test"], ai: { url: `http://127.0.0.1:9/${MARK}` }, email: { url: "smtps://127.0.0.1:9", user: MARK, password: "V" }, s3: { host: "s3.test" } },
    }),
    "index.js": "export default { fetch(request, env) { return new Response(env.DB.connectionString + env.SECRET + env.FILE); } };", ".dev.vars": `FILE=${MARK}\n`,
  });
  const server = await serve(t, dir, { args: ["--data", data, "--lanes", "1"], env: { ...around, CAIRN_ADMIN: "127.0.0.1:0", CAIRN_SANDBOX: "" } });
  const [, url] = await server.until(/admin on (http:\S+)/);
  server.api = `${url}/client/v4`;
  const client = new Client(server, token(data, "d", "deploy"));
  await client.deploy("w", LOOK, { metadata: metadata() });
  const at = async (host) => (await ask({ port: server.port }, "GET", "/", { headers: { host } })).text;
  const seen = await at("w.localhost");
  assert.ok(!seen.includes(MARK) && JSON.parse(seen).process.OWN === "own", seen);
  assert.equal(await at("local.test"), `${around.CAIRN_HYPERDRIVE_DB}${MARK}${MARK}`);
  for (const binding of [
    { type: "service", name: "X", service: "$s3" }, { type: "durable_object_namespace", name: "X", class_name: "b", script_name: "$r2" },
    { type: "durable_object_namespace", name: "X", class_name: "x", script_name: "$kv" }, { type: "secret_text", name: "X" }, { type: "mtls_certificate", name: "X", certificate_id: "/etc/passwd" },
    { type: "secrets_store_secret", name: "X", store_id: "x", secret_name: "SECRET" }, { type: "inherit", name: "DB", old_name: "V" },
  ]) {
    const { status, body } = await client.script("v", LOOK, { metadata: { bindings: [binding] } });
    assert.equal(status, 400, JSON.stringify([binding, body]));
    assert.ok(!JSON.stringify(body).includes(MARK));
  }
});
