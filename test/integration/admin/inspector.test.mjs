// The inspector of `cairn dev --inspector-port`: the DevTools Protocol over its WebSocket, and who may not use it (I1 to I3).
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import WebSocket from "ws";
import { project, serve, write } from "../lib/cairn.mjs";

const source = `
interface Env {}
export default {
  async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/throw") fail("from a handler");
    if (pathname === "/later") ctx.waitUntil(Promise.reject(new RangeError("later")));
    if (pathname === "/many") for (let i = 0; i < 3000; i++) console.log("line", i);
    if (pathname === "/values") values();
    if (pathname === "/work") return new Response(String(work(40)));
    console.log("hello", { from: pathname });
    console.warn("careful");
    return new Response("one");
  },
};
function values(): void {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  console.log("nested", { a: { b: { c: { d: 1 } } } });
  console.log("circular", circular);
  console.log("failure", new RangeError("in a value"));
  console.log("kinds", [1, "two", null, undefined, new Map([["k", "v"]]), Symbol("s"), 10n]);
  console.log("huge", Array.from({ length: 1_000_000 }, (_, i) => i));
  console.log("long text", "x".repeat(1_000_000));
}
function sieve(limit: number): number {
  const marks = new Uint8Array(limit);
  let count = 0;
  for (let i = 2; i < limit; i++) {
    if (marks[i]) continue;
    count++;
    for (let k = i * 2; k < limit; k += i) marks[k] = 1;
  }
  return count;
}
function work(rounds: number): number {
  let sum = 0;
  for (let i = 0; i < rounds; i++) sum += sieve(200_000);
  return sum;
}
function fail(why: string): never {
  throw new TypeError(why);
}
`;

async function start(t) {
  const dir = project(t, { "wrangler.toml": `name = "w"\nmain = "src/index.ts"\ncompatibility_date = "2026-01-01"\n`, "src/index.ts": source });
  const server = await serve(t, dir, { command: "dev", args: ["--inspector-port", "0"] });
  const [, url] = await server.until(/inspector on (http:\S+)/);
  return { dir, server, url };
}

/** What never comes is told by its name. */
function within(promise, what, milliseconds = 60_000) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what} did not come`)), milliseconds); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** One who speaks the protocol. */
class Client {
  #id = 0;
  #waiting = new Map();
  events = [];
  #told = () => {};
  constructor(t, url, options) {
    this.socket = new WebSocket(url, options);
    this.opened = within(new Promise((resolve, reject) => this.socket.on("open", resolve).on("error", reject)), "the connection");
    this.opened.catch(() => {}); // of those that nobody waits for
    this.socket.on("message", (data) => {
      const message = JSON.parse(data);
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
      else this.events.push(message);
      this.#told();
    });
    t.after(() => this.socket.terminate());
  }
  ask(method, params) {
    const id = ++this.#id;
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.socket.send(JSON.stringify({ id, method, params }));
    return within(answer, `the answer to ${method}`);
  }
  /** The first event with this name that fits, now or later. */
  async until(method, fits = () => true) {
    for (;;) {
      const found = this.events.find((event) => event.method === method && fits(event.params));
      if (found) return found.params;
      await within(new Promise((resolve) => { this.#told = resolve; }), method);
    }
  }
}

const target = async (url) => (await (await fetch(`${url}/json`)).json())[0];
const says = (text) => ({ args }) => args[0].value.includes(text);

test("console lines and exceptions, from before too, with the places of the project's files", async (t) => {
  const { server, url } = await start(t);
  assert.match((await (await fetch(`${url}/json/version`)).json()).Browser, /^cairn\//);
  const { webSocketDebuggerUrl, devtoolsFrontendUrl, type } = await target(url);
  assert.equal(type, "node");
  assert.ok(devtoolsFrontendUrl.endsWith(webSocketDebuggerUrl.replace("ws://", "ws=")));
  await server.fetch("/early");
  const client = new Client(t, webSocketDebuggerUrl);
  await client.opened;
  assert.deepEqual((await client.ask("Runtime.enable")).result, {});
  assert.equal((await client.until("Runtime.executionContextCreated")).context.name, "w");
  assert.equal((await client.until("Runtime.consoleAPICalled", says("/early"))).type, "log");
  await server.fetch("/now");
  const line = await client.until("Runtime.consoleAPICalled", says("/now"));
  assert.match(line.args[0].value, /^hello \{ from: '\/now' \}$/);
  assert.equal((await client.until("Runtime.consoleAPICalled", says("careful"))).type, "warning");
  await server.fetch("/throw");
  const { exceptionDetails } = await client.until("Runtime.exceptionThrown");
  assert.equal(exceptionDetails.url, "file:///w/src/index.ts");
  assert.equal(exceptionDetails.lineNumber, source.split("\n").findIndex((text) => text.includes("throw new")));
  assert.equal(exceptionDetails.stackTrace.callFrames[0].functionName, "fail");
  assert.equal(exceptionDetails.exception.className, "TypeError");
  assert.match(exceptionDetails.exception.description, /^TypeError: from a handler\n/);
  await server.fetch("/later");
  await client.until("Runtime.exceptionThrown", ({ exceptionDetails }) => exceptionDetails.exception.description.includes("later"));
});

test("scripts with their source maps, again after a reload; the heap; what cannot be had is refused with a sentence", async (t) => {
  const { dir, server, url } = await start(t);
  const client = new Client(t, (await target(url)).webSocketDebuggerUrl);
  await client.opened;
  await client.ask("Runtime.enable");
  assert.ok((await client.ask("Debugger.enable")).result.debuggerId);
  const parsed = await client.until("Debugger.scriptParsed");
  assert.equal(parsed.url, "file:///w/worker.js");
  const map = JSON.parse(Buffer.from(parsed.sourceMapURL.split("base64,")[1], "base64"));
  assert.deepEqual(map.sources, ["src/index.ts"]);
  assert.equal(map.sourcesContent[0], source);
  const { result } = await client.ask("Debugger.getScriptSource", { scriptId: parsed.scriptId });
  assert.match(result.scriptSource, /from a handler/);
  assert.equal(result.scriptSource.length, parsed.length);
  assert.match((await client.ask("Debugger.getScriptSource", { scriptId: "9.9" })).error.message, /no such script/);
  await server.fetch("/x");
  const heap = async () => (await client.ask("Runtime.getHeapUsage")).result;
  const until = Date.now() + 30_000;
  while ((await heap()).usedSize === 0) assert.ok(Date.now() < until, "a lane tells its heap");
  assert.ok((await heap()).totalSize >= (await heap()).usedSize / 2);
  for (const [method, pattern] of [["Debugger.setBreakpointByUrl", /no breakpoints and no stepping/], ["Debugger.pause", /no stepping/], ["Runtime.evaluate", /not evaluated/],
    ["Profiler.startPreciseCoverage", /does not count/], ["HeapProfiler.takeHeapSnapshot", /no snapshots/], ["Nobody.knows", /wasn't found/]])
    assert.match((await client.ask(method, { expression: "1" })).error.message, pattern);
  assert.deepEqual((await client.ask("Debugger.setPauseOnExceptions", { state: "none" })).result, {});
  write(dir, { "src/index.ts": source.replace('"one"', '"two"') });
  await client.until("Runtime.executionContextsCleared");
  const again = await client.until("Debugger.scriptParsed", ({ scriptId }) => scriptId !== parsed.scriptId);
  assert.match((await client.ask("Debugger.getScriptSource", { scriptId: again.scriptId })).result.scriptSource, /"two"/);
  // What is no command is told, and nothing ends.
  client.socket.send("{ broken");
  client.socket.send("[]");
  assert.deepEqual((await client.ask("Runtime.disable")).result, {});
});

test("I3: a flood of lines drops the oldest and says how many; clients that come and go leave nothing", async (t) => {
  const { server, url } = await start(t);
  const { webSocketDebuggerUrl } = await target(url);
  await server.fetch("/many");
  const late = new Client(t, webSocketDebuggerUrl);
  await late.opened;
  await late.ask("Runtime.enable");
  await late.until("Runtime.consoleAPICalled", says("line 2999"));
  const lines = late.events.filter(({ method }) => method === "Runtime.consoleAPICalled");
  assert.ok(lines.length <= 1001, String(lines.length));
  const clients = Array.from({ length: 7 }, () => new Client(t, webSocketDebuggerUrl));
  await Promise.all(clients.map(({ opened }) => opened));
  await assert.rejects(new Client(t, webSocketDebuggerUrl).opened, /503/);
  clients[0].socket.terminate();
  const until = Date.now() + 30_000;
  for (;;) {
    const next = new Client(t, webSocketDebuggerUrl);
    if (await next.opened.then(() => true, () => false)) break;
    assert.ok(Date.now() < until, "a place is free again");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(await server.text("/x"), "one");
  assert.deepEqual(await server.stop(), { code: 0, signal: null }); // with clients
});

test("I1: only this machine's DevTools: other hosts, pages and guesses are refused", async (t) => {
  const { url } = await start(t);
  const { webSocketDebuggerUrl } = await target(url);
  const { port } = new URL(url);
  const ask = (path, headers) => new Promise((resolve, reject) => {
    http.get({ port, host: "127.0.0.1", path, headers }, (response) => { response.resume(); resolve(response.statusCode); }).on("error", reject);
  });
  assert.equal(await ask("/json", {}), 200);
  assert.equal(await ask("/json", { host: `localhost:${port}` }), 200);
  for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "localhost.evil.example"]) assert.equal(await ask("/json", { host }), 403, host);
  for (const origin of ["http://evil.example", "null", `http://127.0.0.1:${port}`, "devtools", "https://devtools://x"]) {
    assert.equal(await ask("/json", { origin }), 403, origin);
    await assert.rejects(new Client(t, webSocketDebuggerUrl, { origin }).opened, /403/);
  }
  const good = new Client(t, webSocketDebuggerUrl, { origin: "devtools://devtools" });
  await good.opened;
  const wrong = webSocketDebuggerUrl.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  await assert.rejects(new Client(t, wrong).opened, /404/);
  await assert.rejects(new Client(t, `ws://127.0.0.1:${port}/`).opened, /404/);
  assert.equal(await ask("/nothing", {}), 404);
  good.socket.send("x".repeat(300_000)); // larger than a command can be
  await within(new Promise((resolve) => good.socket.on("close", resolve)), "the end of the connection");
});

test("a port that is none is refused, and serve has no inspector", async (t) => {
  const { run } = await import("../lib/cairn.mjs");
  const dir = project(t, { "index.js": "export default {};" });
  assert.match(run(["dev", dir, "--inspector-port", "x"]).stderr, /--inspector-port must be a number/);
  assert.match(run(["serve", dir, "--inspector-port", "0"]).stderr, /unknown option/);
});

test("I4: a CPU profile by sampling is a .cpuprofile with the functions and places of the project's files", async (t) => {
  const { server, url } = await start(t);
  const { webSocketDebuggerUrl } = await target(url);
  const client = new Client(t, webSocketDebuggerUrl), other = new Client(t, webSocketDebuggerUrl);
  await Promise.all([client.opened, other.opened]);
  assert.deepEqual((await client.ask("Profiler.enable")).result, {});
  assert.match((await client.ask("Profiler.stop")).error.message, /no profile was started/);
  assert.deepEqual((await client.ask("Profiler.start")).result, {});
  assert.match((await other.ask("Profiler.start")).error.message, /one at a time/);
  assert.match((await other.ask("Profiler.stop")).error.message, /no profile was started/);
  for (let i = 0; i < 20; i++) assert.equal(await server.text("/work"), String(40 * 17984));
  const { profile } = (await client.ask("Profiler.stop")).result;

  // The form that DevTools reads: a tree from the root, samples of it with the time between them.
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  assert.equal(nodes.size, profile.nodes.length);
  const reached = new Set();
  const reach = (id) => { assert.ok(!reached.has(id)); reached.add(id); nodes.get(id).children.forEach(reach); };
  reach(1);
  assert.equal(reached.size, nodes.size);
  assert.equal(nodes.get(1).callFrame.functionName, "(root)");
  assert.equal(profile.samples.length, profile.timeDeltas.length);
  assert.ok(profile.samples.every((id) => nodes.has(id)));
  assert.ok(profile.timeDeltas.every((delta) => Number.isInteger(delta) && delta >= 0));
  assert.ok(profile.endTime > profile.startTime);

  // The time is where it was spent, under whoever called it, in the file as it was written.
  const named = (name) => profile.nodes.filter(({ callFrame }) => callFrame.functionName === name);
  const hits = (list) => list.reduce((sum, { hitCount }) => sum + hitCount, 0);
  const all = hits(profile.nodes);
  assert.ok(all > 20, `${all} samples`);
  assert.ok(hits(named("sieve")) > all / 2, `${hits(named("sieve"))} of ${all} in sieve()`);
  const parent = profile.nodes.find(({ children }) => children.includes(named("sieve")[0].id));
  assert.equal(parent.callFrame.functionName, "work");
  const lines = source.split("\n");
  const from = lines.findIndex((line) => line.startsWith("function sieve")), to = lines.indexOf("}", from);
  const placed = named("sieve").filter(({ callFrame }) => callFrame.url !== ""); // a sample at its very beginning has no place
  assert.ok(hits(placed) > hits(named("sieve")) * 0.9, `${hits(placed)} of ${hits(named("sieve"))} have a place`);
  for (const { callFrame, positionTicks = [] } of placed) {
    assert.equal(callFrame.url, "file:///w/src/index.ts");
    assert.ok(callFrame.lineNumber >= from && callFrame.lineNumber <= to, `${callFrame.lineNumber}`);
    for (const { line } of positionTicks) assert.ok(line > from && line <= to + 1, `line ${line}`);
  }

  // Again, by another; one whose client goes in the middle ends with it.
  assert.deepEqual((await other.ask("Profiler.start")).result, {});
  other.socket.close();
  const deadline = Date.now() + 30_000;
  let again = await client.ask("Profiler.start");
  while (again.error && Date.now() < deadline) again = await client.ask("Profiler.start");
  assert.deepEqual(again.result, {});
  await server.text("/work");
  assert.ok((await client.ask("Profiler.stop")).result.profile.nodes.length >= 2);
});

test("I3: what is no message of the protocol is refused, and the next one is answered", async (t) => {
  const { url } = await start(t);
  const client = new Client(t, (await target(url)).webSocketDebuggerUrl);
  await client.opened;
  for (const garbage of ["", "{", "null", "[]", "7", '{"id":1}', '{"method":"Runtime.enable"}', '{"id":"x","method":"Runtime.enable"}', '{"id":1.5,"method":7}',
    "[".repeat(5000), `{"id":1,"method":"${"x".repeat(10_000)}"}`, '{"id":1,"method":"Debugger.getScriptSource","params":[]}', Buffer.from([0xff, 0xfe, 0])])
    client.socket.send(garbage);
  await client.ask("Schema.getDomains"); // the number of one above
  assert.ok((await client.ask("Schema.getDomains")).result.domains.length > 2);
  // More than a message may be ends the connection, and not the inspector.
  client.socket.on("error", () => {});
  client.socket.send("x".repeat(300 << 10));
  await within(new Promise((resolve) => client.socket.on("close", resolve)), "the end of the connection");
  const next = new Client(t, (await target(url)).webSocketDebuggerUrl);
  await next.opened;
  assert.ok((await next.ask("Schema.getDomains")).result.domains.length > 2);
});

test("objects come as text: nested, circular, errors with their stack, and huge ones within a bound", async (t) => {
  const { server, url } = await start(t);
  const client = new Client(t, (await target(url)).webSocketDebuggerUrl);
  await client.opened;
  await client.ask("Runtime.enable");
  await server.fetch("/values");
  const value = async (text) => (await client.until("Runtime.consoleAPICalled", says(text))).args[0].value;
  assert.match(await value("nested"), /nested \{ a: \{ b: \{ c: \[?\{?/);
  assert.match(await value("circular"), /circular <ref \*1> \{ self: \[Circular \*1\] \}/);
  assert.match(await value("failure"), /failure RangeError: in a value\n\s+at values \(src\/index.ts:\d+:\d+\)/);
  assert.match(await value("kinds"), /kinds \[ 1, 'two', null, undefined, Map\(1\) \{ 'k' => 'v' \}, Symbol\(s\), 10n \]/);
  const huge = await value("huge");
  assert.ok(huge.length < 65_537 && /more items/.test(huge), `${huge.length}`);
  assert.ok((await value("long text")).length <= 65_536);
});
