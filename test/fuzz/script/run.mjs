// The whole server against a script that is its enemy: hostile/index.js.
//
//     node test/fuzz/script/run.mjs SECONDS [--seed N] [--trace] [--only NATIVE] [--small] [--unaided]
//
// --small leaves out arrays of gigabytes, --unaided what was found once and is tried first. The binary is CAIRN (make fuzz: one with sanitizers, whose prelude lends its natives to the script). Each request
// makes some hundred calls that follow from its seed; another worker beside it must go on answering. The process is
// asked to reload now and then. What ends it is a finding: its seed is printed and can be given again. Because what a request
// leaves behind matters for the next ones, a finding may need those before it: they are printed too.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { brief } from "../server/lib.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "../../..");
const binary = process.env.CAIRN ?? path.join(root, "build/cairn");
const argument = (name) => { const i = process.argv.indexOf(name); return i < 0 ? undefined : process.argv[i + 1]; };
const seconds = Number(process.argv[2] ?? 10);
const first = Number(argument("--seed") ?? Date.now() % 2 ** 31);
const trace = process.argv.includes("--trace"), only = argument("--only");
const calls = Number(argument("--count") ?? 200);
const small = process.argv.includes("--small"), unaided = process.argv.includes("--unaided");
// Goes on after a finding, without what was called last.
const survey = process.argv.includes("--survey");
const skipped = [];

const data = mkdtempSync(path.join(os.tmpdir(), "cairn-fuzz-server-"));
const innocent = path.join(data, "innocent");
mkdirSync(innocent);
writeFileSync(path.join(innocent, "wrangler.toml"), 'name = "innocent"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[cairn]\nhosts = ["innocent"]\n[[durable_objects.bindings]]\nname = "OBJECT"\nclass_name = "Own"\n[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["Own"]\n');
// What it has is its own: an object that finds its storage and its memory as it left them.
writeFileSync(path.join(innocent, "index.js"), `import { DurableObject } from "cloudflare:workers";
export class Own extends DurableObject {
  count = 0;
  async fetch() {
    const { storage } = this.ctx, stored = (await storage.get("count")) ?? 0;
    if ([...(await storage.list()).keys()].some((key) => key !== "count")) return new Response("a key of somebody else", { status: 500 });
    if (stored < this.count) return new Response("a write is lost", { status: 500 });
    storage.sql.exec("CREATE TABLE IF NOT EXISTS t(a)");
    if (storage.sql.exec("SELECT * FROM sqlite_schema WHERE name NOT IN ('t', '_cf_KV')").toArray().length) return new Response("a table of somebody else", { status: 500 });
    await storage.put("count", (this.count = stored + 1));
    return new Response("fine");
  }
}
export default { fetch: (request, env) => env.OBJECT.getByName("own").fetch(request) };`);

class Server {
  constructor() {
    this.text = "";
    this.child = spawn(binary, ["serve", path.join(here, "hostile"), innocent, "--listen", "127.0.0.1:0", "--lanes", "1", "--data", path.join(data, "data")], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, CAIRN_ADMIN: "off", ASAN_OPTIONS: "detect_leaks=0:allow_user_segv_handler=1:abort_on_error=1:allocator_may_return_null=1", UBSAN_OPTIONS: "print_stacktrace=1:abort_on_error=1", Malloc: "1" },
    });
    this.ended = new Promise((resolve) => this.child.on("close", (code, signal) => resolve({ code, signal })));
    this.ready = new Promise((resolve, reject) => {
      const take = (bytes) => {
        this.text = (this.text + bytes).slice(-200_000);
        const match = /ready on (http\S+)/.exec(this.text);
        if (match) resolve((this.url = match[1]));
      };
      this.child.stdout.on("data", take);
      this.child.stderr.on("data", take);
      this.ended.then(() => reject(new Error(`the server did not start:\n${this.text}`)));
    });
  }
  /** `pieces`: of a body, sent one after the other; the last, null, never comes. */
  async ask(target, host = "hostile", wait = 60_000, pieces) {
    const timeout = AbortSignal.timeout(wait);
    return new Promise((resolve, reject) => {
      const request = http.request(this.url + target, { method: pieces ? "POST" : "GET", headers: { host }, signal: timeout }, (response) => {
        let text = "";
        response.on("data", (bytes) => (text += bytes));
        response.on("end", () => resolve({ status: response.statusCode, text }));
        response.on("error", reject);
      });
      request.on("error", reject);
      const send = () => {
        if (!pieces?.length) return void request.end();
        const piece = pieces.shift();
        if (piece !== null) request.write(piece, () => setTimeout(send, 3));
        return undefined;
      };
      send();
    });
  }
}
/** The body of every third request: small or not, in pieces, some of which come too late or never. */
function bodyOf(seed) {
  if (seed % 3 !== 1) return undefined;
  const pieces = Array.from({ length: seed % 5 }, (_, i) => Buffer.alloc([1, 100, 70_000][(seed + i) % 3], i));
  return seed % 7 === 0 ? [...pieces, null] : pieces;
}

const OWN_WAIT = 5_000, LARGE_WAIT = 10_000;
let largeTurn = 0, largeMs = 0; // calls with gigabytes: a quarter of the time at most
let hung = 0, broken = 0, executions = 0, requests = 0, refused = 0, restarts = 0;
let begin = Date.now();
const history = [];
function fail(server, seed, why) {
  console.log(`FOUND at seed ${seed}: ${why}`);
  console.log(`after ${executions} calls in ${requests} requests, ${Math.round((Date.now() - begin) / 1000)} s, at seed ${seed}`);
  console.log(`seeds before it: ${history.slice(-20).join(" ")}`);
  const at = server.text.search(/==\d+==ERROR|: runtime error: |cairn: assertion failed|terminate called|RELEASE_ASSERT|pthread_mutex_\w+ failed/);
  console.log(brief(at >= 0 ? server.text.slice(Math.max(0, at - 200), at + 6000) : server.text.slice(-6000), 6000));
  const last = server.text.split("\n").filter((line) => / \d+:\d+ /.test(line)).at(-1);
  if (last) console.log(`the last call: ${brief(last)}`);
  console.log(`again: node test/fuzz/script/run.mjs ${seconds} --seed ${seed}${small ? " --small" : ""}${unaided ? " --unaided" : ""}${only ? ` --only ${only}` : ""}`);
  server.child.kill("SIGKILL");
  if (survey) throw new Error("again");
  rmSync(data, { recursive: true, force: true });
  process.exit(1);
}

let server = new Server();
await server.ready;
if (!unaided) {
  const { status, text } = await server.ask("/found").catch(async (error) => ({ status: 0, text: `${error.message} ${JSON.stringify(await Promise.race([server.ended, new Promise((resolve) => setTimeout(resolve, 3000))]))}` }));
  if (status !== 200 || text !== "[]") fail(server, "what was found before", `${status} ${text}`);
  for (const kind of ["read", "collect", "pipe", "end"]) for (const rest of ["def", ""]) await foundBody(kind, rest);
  if (/found wrong: .*/.test(server.text)) fail(server, "what was found before", /found wrong: .*/.exec(server.text)[0]);
}
/** A request whose body is there in part; its rest comes, or its client leaves, as soon as somebody reads it. */
async function foundBody(kind, rest) {
  const socket = net.connect(Number(new URL(server.url).port), "127.0.0.1"), waits = kind === "read" || kind === "collect";
  socket.write(`POST /found-body?kind=${kind} HTTP/1.1\r\nHost: hostile\r\nContent-Length: ${waits ? 3 : 6}\r\n${waits ? "Expect: 100-continue\r\n\r\n" : "\r\nabc"}`);
  const over = new Promise((resolve) => socket.on("error", resolve).on("close", resolve));
  socket.once("data", () => { if (rest) socket.write(rest), socket.once("data", () => socket.destroy()).setTimeout(1000, () => socket.destroy()); else socket.destroy(); });
  socket.setTimeout(10_000, () => socket.destroy());
  await over;
  const answer = await server.ask("/ping").catch((error) => ({ text: error.message }));
  if (answer.text !== "pong") {
    await Promise.race([server.ended, new Promise((resolve) => setTimeout(resolve, 3000))]);
    fail(server, "what was found before", `a body, ${kind}: ${answer.text}`);
  }
}
begin = Date.now();
const end = begin + seconds * 1000;
for (let seed = first; Date.now() < end; seed++) {
  try {
    await step(seed);
  } catch (error) {
    if (!survey || error.message !== "again") throw error;
    const last = /.*\d+:\d+ (.*)/.exec(server.text.split("\n").filter((line) => / \d+:\d+ /.test(line)).at(-1))?.[1];
    console.log(`== last: ${last}\n`);
    skipped.push(last);
    rmSync(path.join(data, "data"), { recursive: true, force: true });
    server = new Server();
    await server.ready;
  }
}
/** It has ended, or something else is wrong. */
async function failEnded(seed, why) {
  const ended = await Promise.race([server.ended, new Promise((resolve) => setTimeout(resolve, 3000))]);
  fail(server, seed, ended ? `the process ended: ${JSON.stringify(ended)}` : why);
}
/**
 * The script has made that its own request is never answered: with natives in its hands it can lock its object and throw away the key.
 * Nobody else may notice, and with a deployment it is over.
 */
async function afresh(seed) {
  hung++;
  const ask = async (target, host, what) => {
    const answer = await server.ask(target, host).catch((error) => failEnded(seed, `${what}: ${error.message}`));
    if (answer.status !== 200) fail(server, seed, `${what}: ${answer.status} ${answer.text.slice(0, 200)}`);
  };
  await ask("/", "innocent", "a request hangs, and the other worker does not answer");
  server.child.kill("SIGHUP");
  restarts++;
  for (let i = 0; i < 20; i++) await ask("/", "innocent", "after a reload the other worker does not answer");
  const end = Date.now() + 60_000;
  let answer;
  while (Date.now() < end && answer?.status !== 200) answer = await server.ask("/ping", "hostile", 10_000).catch(() => undefined);
  if (answer?.status !== 200) fail(server, seed, "the script hangs, and a reload does not help");
}
async function step(seed) {
  history.push(seed);
  const where = seed % 2 === 1 ? "/object" : "/run", start = Date.now();
  const large = !small && largeMs <= (start - begin) / 4 ? `&large=${largeTurn++ >> 1}` : "";
  let answer;
  // In the middle of what it does.
  const reload = seed % 11 === 5 ? setTimeout(() => { server.child.kill("SIGHUP"), restarts++; }, seed % 40) : undefined;
  try {
    answer = await server.ask(`${where}?seed=${seed}&count=${calls}${trace || survey ? "&trace" : ""}${large}${skipped.length ? `&skip=${encodeURIComponent(skipped.join(","))}` : ""}${only ? `&only=${only}` : ""}`, "hostile", large ? LARGE_WAIT : OWN_WAIT, bodyOf(seed));
  } catch (error) {
    const late = error.name === "AbortError" || error.name === "TimeoutError";
    const ended = await Promise.race([server.ended, new Promise((resolve) => setTimeout(resolve, late ? 100 : 3000))]);
    if (ended) fail(server, seed, `the process ended: ${JSON.stringify(ended)}`);
    refused++; // a native of connections may have closed ours
    if (late) await afresh(seed);
    return;
  } finally {
    clearTimeout(reload);
    if (large) largeMs += Date.now() - start;
  }
  requests++;
  executions += calls;
  if (answer.status !== 200) refused++;
  // The script has broken itself for good: it starts afresh.
  broken = answer.status === 200 ? 0 : broken + 1;
  if (broken === 3) server.child.kill("SIGHUP"), restarts++;
  try {
    const beside = await server.ask("/", "innocent");
    if (beside.status !== 200 && beside.status !== 503) fail(server, seed, `the other worker answers ${beside.status}: ${beside.text.slice(0, 200)}`);
  } catch (error) {
    await failEnded(seed, `the other worker does not answer: ${error.message}`);
  }
  if (requests % 40 === 39) server.child.kill("SIGHUP"), restarts++;
}
if (requests > 20 && refused > requests / 2) fail(server, "the end", `${refused} of ${requests} requests were not answered with 200`);
server.child.kill("SIGTERM");
const ended = await Promise.race([server.ended, new Promise((resolve) => setTimeout(resolve, 60_000))]);
if (!ended) fail(server, "the end", "SIGTERM does not end the process");
if (ended.signal || ended.code !== 0) fail(server, "the end", `the process ended with ${JSON.stringify(ended)}`);
rmSync(data, { recursive: true, force: true });
console.log(`hostile script: ${executions} calls in ${requests} requests (${refused} without 200, ${hung} of them without an answer), ${restarts} reloads, seeds ${first} to ${history.at(-1)}: nothing found`);
