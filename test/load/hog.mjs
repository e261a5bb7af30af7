// Every API and every route of the administration, asked for as much memory as it gives, under a small memory_bytes.
//
//     node test/load/hog.mjs [--short] [--part routes|apis] [--only TEXT] [--memory 384] [--ms 300] [--seed 1] [--list]
//
// Nothing is named here that could be forgotten: APIs are found by hog/index.js (globals, bindings, an object's state, modules; with a
// binary that lends its natives, cairn-open, the whole border), routes are those of openapi.json and of the table of src/v4/v4.c. A service
// whose binding is not in the configuration below is an error. --short takes one API in twelve, by the seed, and each route once.
//
// What is checked, for each by itself:
// G1  The memory of the process stays below memory_bytes and a tenth: its own, looked at every 5 ms.
// G2  The process does not end nor start itself anew, and nobody is restarted but the hog.
// G3  The neighbour is answered again within 15 s of the end.
// G4  What requests and calls of the administration held is given back by then: the account is even.
import http from "node:http";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { project, root, serve, tempDir } from "../integration/lib/server.mjs";
import { MB, ask, memoryOf, option, sleep } from "./lib.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const short = process.argv.includes("--short"), only = option("only", ""), memory = Number(option("memory", 384)) * MB;
const ms = Number(option("ms", 300)), seed = Number(option("seed", 1)), TOKEN = "operator-of-the-hogs-0123456789";
const text = (file) => readFileSync(path.join(root, file), "utf8");

// --- the server ----------------------------------------------------------------------------------

/** The bindings of each service that has a border or an object; the name is that of its folder. */
const bindings = {
  kv: '[[kv_namespaces]]\nbinding = "KV"\nid = "kv"\n',
  r2: '[[r2_buckets]]\nbinding = "R2"\nbucket_name = "bucket"\n',
  d1: '[[d1_databases]]\nbinding = "DB"\ndatabase_id = "database"\ndatabase_name = "database"\n',
  queue: '[[queues.producers]]\nbinding = "QUEUE"\nqueue = "queue"\n',
  analytics: '[[analytics_engine_datasets]]\nbinding = "POINTS"\ndataset = "points"\n',
  ratelimit: '[[ratelimits]]\nname = "RATE"\nnamespace_id = "1"\nsimple = { limit = 100, period = 10 }\n',
  email: '[[send_email]]\nname = "EMAIL"\n',
  cache: "", // a global
};

function makeProjects() {
  for (const name of readdirSync(path.join(root, "src/service")))
    if (existsSync(path.join(root, `src/service/${name}/border.ts`)) && !(name in bindings)) throw new Error(`hog.mjs: the service ${name} has no binding`);
  const modules = JSON.parse(text("prelude/node/names.json"));
  const dir = project({
    "hog/wrangler.toml": `name = "hog"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\ncompatibility_flags = ["nodejs_compat"]\nroutes = ["hog.test/*"]\nlimits = { cpu_ms = 3000 }
[[durable_objects.bindings]]\nname = "BOX"\nclass_name = "Box"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Box"]\n[[services]]\nbinding = "SELF"\nservice = "hog"
${Object.values(bindings).join("")}[cairn.limits]\nmemory_bytes = ${memory}\nheap_bytes = ${Math.round(memory / 4)}\n`,
    "hog/index.js": readFileSync(path.join(here, "hog/index.js")),
    "hog/modules.js": `${modules.map((name, i) => `import * as m${i} from "${name}";\n`).join("")}export default { ${modules.map((name, i) => `"${name}": m${i}`).join(", ")} };\n`,
    "neighbour/wrangler.toml": 'name = "neighbour"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nroutes = ["neighbour.test/*"]\n',
    "neighbour/index.js": "export default { fetch: () => new Response('here') };",
  });
  return [path.join(dir, "hog"), path.join(dir, "neighbour")];
}

const projects = makeProjects();
let server, peak = 0;
async function start() {
  server = await serve(projects, { lanes: 2, data: tempDir(), env: { CAIRN_ADMIN: "127.0.0.1:0", CAIRN_ADMIN_TOKEN: TOKEN } });
  server.admin = Number(new URL((await server.until(/admin on (http:\S+)/))[1]).port);
}
setInterval(() => {
  if (!server || server.exit) return;
  try { peak = Math.max(peak, memoryOf(server.pid).own); } catch { return; }
  if (peak > 4 * memory) server.child.kill("SIGKILL"); // the machine is not to suffer
}, 5).unref();
process.on("exit", () => server?.child.kill("SIGKILL"));

// --- one hog -------------------------------------------------------------------------------------

const failures = [];
let count = 0;

/** The neighbour is there. Whether it was restarted for its memory, the log says (G2): a route may deploy. */
async function neighbourAnswers() {
  for (const until = Date.now() + 15_000; Date.now() < until && !server.exit; await sleep(100)) {
    const answer = await ask(server, "neighbour.test", "/", 5000).catch(() => null);
    if (answer?.status === 200) return null;
  }
  return "G3: the neighbour is not answered";
}

/** What requests and calls held is given back: the account says so. */
async function accountIsEven() {
  let account;
  for (const until = Date.now() + 15_000; Date.now() < until && !server.exit; await sleep(100)) {
    account = await fetch(`http://127.0.0.1:${server.admin}/api/memory`, { headers: { authorization: `Bearer ${TOKEN}` } }).then((response) => response.json()).catch(() => null);
    server.account_text = JSON.stringify(account?.kinds);
    if (account?.kinds?.bodies === 0 && account.level !== "requests" && account.level !== "reset") return null;
  }
  return `G4: ${JSON.stringify(account)}`;
}

async function check(name, hog) {
  const from = server.output.length;
  peak = 0;
  count++;
  const result = await hog().catch((error) => error.message);
  const problems = [await neighbourAnswers(), await accountIsEven()];
  const said = server.output.slice(from);
  if (peak > memory * 1.1) problems.push(`G1: ${Math.round(peak / MB)} MB of ${memory / MB}`);
  if (server.exit || /starts itself anew/.test(said)) problems.push(`G2: the server ended: ${JSON.stringify(server.exit)} ${/assertion failed.*/.exec(said) ?? ""}`);
  for (const [, who] of said.matchAll(/worker (\w+) held \d+ MB and is restarted/g)) if (who !== "hog") problems.push(`G2: ${who} was restarted`);
  const bad = problems.filter(Boolean);
  if (bad.length) failures.push(`${name}: ${bad.join("; ")}`);
  if (bad.length || process.argv.includes("--verbose")) console.log(`${bad.length ? "FAILED" : "ok    "} ${name}: ${bad.join("; ")} (${result}, ${Math.round(peak / MB)} MB, now ${server.account_text})`);
  if (bad.length && process.argv.includes("--log")) console.log(said.split("\n").map((line) => `    | ${line.slice(0, 200)}`).slice(-30).join("\n"));
  if (server.exit || bad.some((each) => /^G[34]/.test(each))) { await server.kill(); await start(); }
  else await ask(server, "hog.test", "/forget", 5000).catch(() => null);
}

// --- the APIs ------------------------------------------------------------------------------------

/** The same choice for the same seed, spread over the list. */
const chosen = (list, share) => list.filter((name, i) => only ? name.includes(only) : !short || (i * 2654435761 + seed * 40503 >>> 16) % share === 0);

async function apis() {
  const names = JSON.parse((await ask(server, "hog.test", "/list")).text);
  const natives = [text("src/bindings/border.ts"), ...Object.keys(bindings).map((name) => `src/service/${name}/border.ts`).filter((file) => existsSync(path.join(root, file))).map(text)]
    .flatMap((table) => [...table.matchAll(/^\s+(\w+)\(.*\): .*;$/gm)].map(([, name]) => name));
  const open = names.some((name) => name.startsWith("global.__native."));
  const missing = open ? natives.filter((name) => !names.includes(`global.__native.${name}`)) : [];
  if (missing.length) failures.push(`natives that are not tried: ${missing.join(" ")}`);
  const list = chosen(names, 12);
  if (process.argv.includes("--list")) return console.log(list.join("\n"));
  for (const name of list) await check(name, async () => (await ask(server, "hog.test", `/run?name=${encodeURIComponent(name)}&ms=${ms}`, 20_000)).text.slice(0, 60));
  console.log(`APIs: ${list.length} of ${names.length}${open ? `, the ${natives.length} natives of the border among them` : ""}`);
}

// --- the routes ----------------------------------------------------------------------------------

const filled = { namespace: "hog/Box", object: "box", ns: "kv", key: "key1", database: "database", queue: "queue", bucket: "bucket", worker: "hog", token: "x" };
/** What a segment that stands for anything follows, in the table of the platform's API. */
const after = { accounts: () => server.account, namespaces: () => "kv", database: () => "database", buckets: () => "bucket", queues: () => "queue", scripts: () => "hog", services: () => "hog", workers: () => "hog", zones: () => server.account };

function routes() {
  const list = [];
  for (const [target, methods] of Object.entries(JSON.parse(text("build/openapi.json")).paths))
    for (const [method, about] of Object.entries(methods)) {
      if (method === "parameters") continue;
      const query = (about.parameters ?? []).filter((each) => each.in === "query" && each.name === "limit").map(() => "limit=1000");
      list.push({ method: method.toUpperCase(), target: target.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(filled[name] ?? "x")) + (query.length ? `?${query}` : "") });
    }
  const prefixes = { V4: ["client", "v4"], ACCOUNT: ["client", "v4", "accounts", "*"], SCRIPT: ["client", "v4", "accounts", "*", "workers", "scripts", "*"] };
  for (const [, method, kind, rest] of text("src/v4/v4.c").matchAll(/\{"([A-Z]+)",\s*(V4|ACCOUNT|SCRIPT)\(([^)]*)\)/g)) {
    const segments = [...prefixes[kind], ...[...rest.matchAll(/"([^"]*)"/g)].map(([, name]) => name)];
    list.push({ method, target: `/${segments.map((name, i) => name === "**" ? "key1" : name === "*" ? after[segments[i - 1]]?.() ?? "x" : name).join("/")}?limit=1000&per_page=1000` });
  }
  return list.sort((a, b) => order.indexOf(a.method) - order.indexOf(b.method));
}
const order = ["HEAD", "GET", "POST", "PATCH", "PUT", "DELETE"]; // what is there goes last

const sql = "SELECT a, a AS b FROM t", keys = Array.from({ length: 30 }, (_, i) => `key${i}`), large = "\0".repeat(2 * MB); // twelve as JSON
const bodies = [
  { keys }, { sql }, [{ sql }, { sql }], { query: sql }, keys, { batch_size: 100, visibility_timeout_ms: 1000 }, { messages: Array.from({ length: 100 }, () => ({ body: "x".repeat(1000) })) },
  Array.from({ length: 4 }, (_, i) => ({ key: `new${i}`, value: large })), { a: large }, { output_format: "polling" },
].map((body) => ["application/json", Buffer.from(JSON.stringify(body))]);
bodies.push(["text/plain", "SELECT * FROM points"], ["application/octet-stream", Buffer.alloc(24 * MB)], ["application/sql", "SELECT 1;".repeat(100_000)]);

let refusal = "";
/** One request; `reads`: whether its answer is read. */
function request({ method, target }, [type, body], reads) {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body ? { "content-type": type, "content-length": Buffer.byteLength(body) } : {}) };
    const outgoing = http.request({ host: "127.0.0.1", port: server.admin, method, path: target, headers, agent: false, timeout: 20_000 }, (response) => {
      const done = () => resolve(response.statusCode);
      if (reads) response.once("data", (part) => { if (response.statusCode >= 500) refusal = part.toString().slice(0, 150); }).on("data", () => {}).on("end", done).on("error", done);
      setTimeout(() => { outgoing.destroy(); done(); }, reads ? 5000 : 700); // a tail never ends
    });
    outgoing.on("error", () => resolve("cut")).on("timeout", () => { outgoing.destroy(); resolve("late"); }).end(body);
  });
}

async function administration() {
  const answer = await fetch(`http://127.0.0.1:${server.admin}/client/v4/accounts`, { headers: { authorization: `Bearer ${TOKEN}` } }).then((response) => response.json());
  server.account = answer.result[0].id;
  const list = routes().filter((route) => !only || `${route.method} ${route.target}`.includes(only));
  if (process.argv.includes("--list")) return console.log(list.map((route) => `${route.method} ${route.target}`).join("\n"));
  if (list.length) await ask(server, "hog.test", "/fill", 60_000);
  for (const route of list) {
    const sent = ["GET", "HEAD", "DELETE"].includes(route.method) ? [["", undefined]] : bodies;
    const times = short ? 4 : 14;
    await check(`${route.method} ${route.target}`, async () => {
      const seen = new Set();
      for (const body of sent) for (const status of await Promise.all(Array.from({ length: times }, (_, i) => request(route, body, i % 2 === 0)))) seen.add(status);
      return `${[...seen].join(" ")} ${refusal}`;
    });
  }
  console.log(`routes: ${list.length}`);
}

const part = option("part", "routes,apis");
await start();
if (part.includes("routes")) await administration();
if (part.includes("apis")) await apis();
console.log(`hog: ${count} tried, memory_bytes ${memory / MB} MB: ${failures.length ? `${failures.length} FAILED\n  ${failures.join("\n  ")}` : "ok"}`);
process.exit(failures.length ? 1 : 0);
