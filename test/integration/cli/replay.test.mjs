// `cairn replay`: recorded requests are sent again, whatever wrote them down, and compared.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { cairn, project, serve, tempDir } from "../lib/server.mjs";

const dir = project({
  "index.js": `const seen = [];
export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/seen") return Response.json(seen.splice(0));
    seen.push({ method: request.method, target: url.pathname + url.search, host: request.headers.get("host"), test: request.headers.get("x-test"), body: await request.text() });
    return new Response("answer", { status: Number(url.searchParams.get("status") ?? 200) });
  },
};`,
});
const files = tempDir();
let server;
before(async () => { server = await serve(dir); });
after(() => server.stop());

function replay(lines, ...args) {
  const file = path.join(files, "recording.jsonl");
  writeFileSync(file, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n") + "\n");
  return new Promise((resolve) => {
    execFile(cairn, ["replay", file, "--to", server.url, ...args], { timeout: 60_000 }, (error, stdout, stderr) => {
      let json;
      try { json = JSON.parse(stdout); } catch {}
      resolve({ status: error ? error.code : 0, stdout, stderr, json });
    });
  });
}
const seen = async () => (await server.fetch("/seen")).json();

test("plain lines: method, URL, headers, bodies", async () => {
  const { status, json } = await replay([
    { method: "GET", url: "https://example.com/a?b=c#d", headers: { "x-test": "1", host: "example.com" }, status: 200 },
    { url: "/only-a-path" },
    { method: "POST", url: "https://example.com/p", body: "text", headers: [["x-test", "2"]] },
    { method: "PUT", url: "https://example.com/q", body: { json: true } },
    { method: "POST", url: "https://example.com/r", bodyBase64: "AQID" },
    { method: "GET", url: "https://example.com/s?status=500", status: 500 },
  ], "--json", "--concurrency", "1");
  assert.equal(status, 0);
  const requests = await seen();
  assert.deepEqual(requests.map(({ method, target, body }) => [method, target, body]), [["GET", "/a?b=c", ""], ["GET", "/only-a-path", ""], ["POST", "/p", "text"], ["PUT", "/q", '{"json":true}'], ["POST", "/r", "\x01\x02\x03"], ["GET", "/s?status=500", ""]]);
  assert.deepEqual(requests.map(({ test }) => test), ["1", null, "2", null, null, null]);
  assert.equal(requests[0].host, new URL(server.url).host);
  assert.deepEqual(json.statuses, { 200: 5, 500: 1 });
  assert.deepEqual([json.sent, json.answered, json.compared, json.differing, json.failed], [6, 6, 2, 0, 0]);
  assert.ok(json.latencyMs.p50 > 0 && json.latencyMs.p50 <= json.latencyMs.p99 && json.latencyMs.p99 <= json.latencyMs.max);
  await replay([{ url: "https://example.com/a" }], "--keep-host");
  assert.equal((await seen())[0].host, "example.com");
});

test("lines of cairn tail, as it writes them", async () => {
  const tail = spawn(cairn, ["tail", "--data", server.data, "--format", "json"], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  tail.stdout.setEncoding("utf8").on("data", (part) => { text += part; });
  // It listens when a request shows up.
  await server.untilTrue(async () => { await server.text("/probe"); return text.includes("/probe"); }, "the tail");
  await server.text("/tailed?status=404");
  await server.text("/tailed", { method: "POST", body: "lost" });
  await server.untilTrue(() => /"POST"/.test(text), "the tail");
  tail.kill();
  await seen();
  const lines = text.split("\n").filter((line) => line.includes("/tailed"));
  const without = await replay([...lines, '{"level":"info","message":"no request","event":"deployed"}'], "--json");
  assert.deepEqual([without.json.sent, without.json.skippedBodies, without.json.otherLines, without.json.differing], [1, 1, 1, 0]);
  assert.deepEqual((await seen()).map(({ method, target }) => [method, target]), [["GET", "/tailed?status=404"]]);
  // What was answered is compared: the status of the tail's line, and another one.
  assert.equal(without.json.compared, 1);
  const other = await replay(lines.map((line) => line.replace('"status":404', '"status":200')), "--json", "--verify");
  assert.deepEqual([other.json.compared, other.json.differing, other.status], [1, 1, 1]);
  await seen();
  const table = await replay(lines);
  assert.match(table.stdout, /^skipped +1 whose bodies were not recorded \(--without-bodies/m);
  const all = await replay(lines, "--json", "--without-bodies", "--concurrency", "1");
  assert.deepEqual([all.json.sent, all.json.skippedBodies], [2, 0]);
});

test("lines of wrangler tail: bodies by their headers", async () => {
  await seen();
  const item = (url, method, headers, status) => ({ outcome: "ok", scriptName: "w", eventTimestamp: 1700000000000, event: { request: { url, method, headers, cf: {} }, response: { status } }, logs: [], exceptions: [] });
  const { json } = await replay([
    item("https://w.example/x?status=201", "GET", { "x-test": "t", "cf-ray": "1" }, 201),
    item("https://w.example/y", "POST", { "content-length": "0" }, 200),
    item("https://w.example/z", "POST", { "content-length": "5" }, 200),
    item("https://w.example/z", "DELETE", { "transfer-encoding": "chunked" }, 200),
    { outcome: "ok", event: { scheduledTime: 1, cron: "* * * * *" }, eventTimestamp: 1 },
  ], "--json", "--concurrency", "1");
  assert.deepEqual([json.sent, json.skippedBodies, json.otherLines, json.differing], [2, 2, 1, 0]);
  assert.deepEqual((await seen()).map(({ target, test }) => [target, test]), [["/x?status=201", "t"], ["/y", null]]);
});

test("a status that differs: told, and with --verify the exit code", async () => {
  const lines = [{ url: "/same", status: 200 }, { url: "/other?status=503", status: 200 }];
  const told = await replay(lines);
  assert.equal(told.status, 0);
  assert.match(told.stdout, /^differing +1 of 2 whose status was recorded\n {2}recorded 200, answered 503: GET \/other\?status=503$/m);
  assert.equal((await replay(lines, "--verify")).status, 1);
  assert.equal((await replay(lines.slice(0, 1), "--verify")).status, 0);
});

test("--rate and --speed set the pace", async () => {
  const rate = await replay(Array.from({ length: 11 }, () => ({ url: "/" })), "--json", "--rate", "20");
  assert.ok(rate.json.seconds >= 0.5, `${rate.json.seconds}`); // the eleventh is due after half a second
  const start = 1700000000000;
  const lines = [0, 400, 1200].map((ms) => ({ url: "/", time: start + ms }));
  const speed = await replay(lines.map((line, i) => (i === 2 ? { ...line, time: new Date(line.time).toISOString() } : line)), "--json", "--speed", "2");
  assert.ok(speed.json.seconds >= 0.6, `${speed.json.seconds}`);
});

test("--dry-run sends nothing; what cannot be read is counted; bad options are refused", async () => {
  await seen();
  const dry = await replay([{ url: "/a", status: 200 }, { method: "POST", url: "/b", body: "12345" }], "--dry-run");
  assert.match(dry.stdout, /^GET http:\S+\/a {2}recorded 200\nPOST http:\S+\/b {2}5 bytes\n/);
  assert.deepEqual(await seen(), []);
  const odd = await replay(["{not json", "", { url: "/ok" }, { url: "mailto:x" }, '{"url":"/cut'], "--json");
  assert.deepEqual([odd.json.sent, odd.json.unreadableLines], [1, 3]);
  assert.equal(odd.status, 0);
  for (const args of [["--rate", "0"], ["--rate", "1", "--speed", "1"], ["--concurrency", "x"], ["--concurrency", "5000"], ["--to", "ftp://x"]])
    assert.equal((await replay([{ url: "/" }], ...args)).status, 2, args.join(" "));
});

test("a server that is not there: exit code 1 and why", async () => {
  const { status, stdout } = await replay([{ url: "/" }], "--to", "http://127.0.0.1:1");
  assert.equal(status, 1);
  assert.match(stdout, /^failed +1 \(.*refused/m);
});

test("many at once", async () => {
  await seen();
  const { json } = await replay(Array.from({ length: 2000 }, (_, i) => ({ url: `/n${i}`, status: 200 })), "--json", "--concurrency", "50");
  assert.deepEqual([json.answered, json.differing], [2000, 0]);
  assert.equal(new Set((await seen()).map(({ target }) => target)).size, 2000);
});
