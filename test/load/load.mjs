// An hour's requests in minutes, against a real server, while things go wrong at random: the disk is
// full or slow, clients vanish, read or write slowly or not at all, ten times the load arrives.
//
//     node test/load/load.mjs [--seconds 180] [--seed N] [--lanes 2] [--sandbox]
//
// What is checked:
// L1  The server does not end, and stops in order when told to.
// L2  Its memory stays below a ceiling (RSS_MAX_MB).
// L3  Errors are of the kinds that docs/do/limits.md lists, and come only while (or shortly after)
//     their cause is there. Without a cause every request succeeds.
// L4  Every write that was acknowledged is there: at once, after a restart, and `cairn check` is content.
// L5  Once a disk has space again, all storage takes writes within seconds, without a restart.
// L6  After a failed sync reading goes on, writes are refused, and a restart brings everything back.
//
// The full disk is real: the data directory is on an ext4 of its own in a file, which needs root and a
// loop device; without them that fault is left out, and the table says so. Slow and failing syncs are
// made by slowdisk.c. The seed decides which faults come when, not how threads are scheduled.
import { execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { cairn, project, root, serve, tempDir } from "../integration/lib/server.mjs";
import { random } from "../lib/random.mjs";

const WebSocket = createRequire(import.meta.url)("ws");
const here = path.dirname(fileURLToPath(import.meta.url));
const CLIENTS = 24, SOCKETS = 8, CELLS = 50;
const RSS_MAX_MB = 900;
const GRACE_MS = 12_000; // for errors of a cause that has gone: a socket waits 8 s for its answer
const RECOVERY_MS = 6000;

const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : process.argv[at + 1];
};
const seconds = Number(option("seconds", 180)), lanes = Number(option("lanes", 2));
const seed = Number(option("seed", Date.now() % 1e9));
const onlyFaults = option("faults", null)?.split(",");

const pick = random(seed);
const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// --- the disk ----------------------------------------------------------------------------------

const folder = tempDir();
const image = path.join(folder, "image"), mount = path.join(folder, "disk"), filler = path.join(mount, "filler");
let realDisk = false;
mkdirSync(mount);
try {
  const fd = openSync(image, "w");
  ftruncateSync(fd, 4 * 2 ** 30); // sparse
  closeSync(fd);
  execFileSync("mkfs.ext4", ["-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image]);
  execFileSync("mount", ["-o", "loop", image, mount], { stdio: "pipe" });
  realDisk = true;
  process.prependListener("exit", () => execFileSync("umount", ["-l", mount]));
} catch (error) {
  console.log(`no disk of its own: ${String(error.message).split("\n")[0]}`);
}

function fillDisk() {
  const { bavail, bsize } = statfsSync(mount);
  execFileSync("fallocate", ["-l", String(Math.max(bavail * bsize - (2 << 20), 4096)), filler]);
  const fd = openSync(filler, "a");
  try {
    for (const block = Buffer.alloc(4096); ; ) writeSync(fd, block); // the rest
  } catch (error) {
    if (error.code !== "ENOSPC") throw error;
  } finally {
    closeSync(fd);
  }
}

const slowFile = path.join(folder, "slow");
/** {sync_ms, write_us, fail} of slowdisk.c. */
function setDisk(syncMs, writeUs, fail) {
  writeFileSync(slowFile, Buffer.from(Uint32Array.of(syncMs, writeUs, fail).buffer), { flag: "r+" });
}
writeFileSync(slowFile, Buffer.alloc(12));

// --- what happened -----------------------------------------------------------------------------

/** Errors that are documented, by what the client sees. `docs/do/limits.md` has the same list. */
const kinds = [
  { name: "full disk", causes: ["full"], test: (e) => e.status === 500 && /writes are refused: |no space|ENOSPC/i.test(e.text) },
  { name: "overloaded", causes: ["overload", "full", "slow"], test: (e) => e.status === 503 },
  { name: "socket closed", causes: ["full"], test: (e) => e.socket !== undefined && ["silent", 1006, 1011, 1012, 1013].includes(e.socket) },
];
const causes = new Map(); // of faults: until when their errors may come
const seen = { requests: 0, acknowledged: 0, kinds: new Map(), unexpected: [] };
const places = new Map(); // place -> ids that were acknowledged
const times = new Map(); // fault or "none" -> milliseconds of its requests
let active = "none", server, stopping = false, memoryMax = 0, final = false;

function note(error) {
  for (const kind of kinds) {
    if (!kind.test(error)) continue;
    if (!kind.causes.some((cause) => (causes.get(cause) ?? 0) > Date.now())) continue;
    seen.kinds.set(kind.name, (seen.kinds.get(kind.name) ?? 0) + 1);
    return;
  }
  if (seen.unexpected.length < 100) seen.unexpected.push({ at: Math.round(performance.now()), active, ...error });
}

function acknowledge(place, id) {
  if (!places.has(place)) places.set(place, new Set());
  places.get(place).add(id);
  seen.acknowledged++;
}

// --- clients -----------------------------------------------------------------------------------

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

/** {status, text}; rejects when the connection breaks. */
function request(method, target, body) {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ host: "127.0.0.1", port: server.port, method, path: target, agent, timeout: 60_000 }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("error", reject);
      response.on("aborted", () => reject(new Error("aborted")));
      response.on("end", () => resolve({ status: response.statusCode, text: parts.length ? Buffer.concat(parts).toString("latin1") : "" }));
    });
    outgoing.on("error", reject).on("timeout", () => outgoing.destroy(new Error("no answer within 60 s")));
    outgoing.end(body);
  });
}

let nextId = 0;
/** One request at random; whether it went well. */
const operations = [
  [20, () => ["GET", "/hello"]],
  [4, (n) => ["POST", "/echo", Buffer.alloc((n * 97) % 200_000)]],
  [3, () => ["GET", "/big/300000"]],
  [14, (n) => ["GET", `/read/cell${n % CELLS}`]],
  [14, (n, id) => ["POST", `/write/cell${n % CELLS}/${id}`, "", `cell${n % CELLS}`]],
  [6, (n, id) => ["POST", `/kv/x/${id}`, "", "kv"]],
  [8, (n) => ["GET", `/kvget/w${n}`]],
  [6, (n, id) => ["POST", `/d1/group${n % 7}/${id}`, "", "d1"]],
  [4, (n) => ["GET", `/d1get/group${n % 7}`]],
  [4, (n, id) => ["POST", `/r2/x/${id}`, Buffer.alloc((n * 31) % 200_000 + 1), "r2"]],
  [4, (n) => ["GET", `/r2get/w${n}`]],
  [4, (n, id) => ["POST", `/queue/x/${id}`, "", "sink"]],
];
const weights = operations.reduce((sum, [weight]) => sum + weight, 0);

async function operate(next) {
  let at = next() * weights;
  const [, make] = operations.find(([weight]) => (at -= weight) < 0);
  const id = `w${nextId++}`;
  const [method, target, body, place] = make(Math.floor(next() * nextId), id);
  const began = performance.now(), during = active;
  seen.requests++;
  try {
    const { status, text } = await request(method, target, body);
    if (status !== 200) note({ target: target.split("/")[1], status, text: text.slice(0, 300) });
    else if (place && text !== id) note({ target, status, text: `answered ${text.slice(0, 40)}` });
    else if (place) acknowledge(place, id);
  } catch (error) {
    note({ target, broken: `${error.code ?? ""} ${error.message}` });
  }
  if (!times.has(during)) times.set(during, []);
  times.get(during).push(performance.now() - began);
}

async function client(number) {
  const next = random(seed * 1000 + number);
  while (!stopping) await operate(next);
}

/** A WebSocket to an object that writes and waits for the acknowledgement, over and over. */
async function socketClient(number) {
  const cell = `cell${number}`;
  while (!stopping) {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/ws/${cell}`, { perMessageDeflate: false });
    await new Promise((resolve) => {
      let timer;
      // What was refused is not acknowledged, and nothing else comes in its place.
      const onSilence = () => { note({ target: "ws", socket: "silent" }); socket.terminate(); };
      const send = () => {
        if (stopping) return socket.terminate();
        timer = setTimeout(onSilence, 8000);
        seen.requests++;
        socket.send(JSON.stringify({ id: `s${nextId++}` }));
      };
      socket.on("open", send);
      socket.on("message", (data) => { clearTimeout(timer); acknowledge(cell, data.toString()); setTimeout(send, 5); });
      socket.on("unexpected-response", (_, response) => {
        note({ target: "ws", status: response.statusCode, text: "upgrade: writes are refused: see the others" });
        resolve();
      });
      socket.on("error", () => {}); // "close" follows
      socket.on("close", (code) => {
        clearTimeout(timer);
        if (!stopping) note({ target: "ws", socket: code });
        resolve();
      });
    });
    await sleep(50);
  }
}

// --- faults ------------------------------------------------------------------------------------

const connect = () => net.connect(server.port, "127.0.0.1").on("error", () => {});
const faults = {
  /** No space at all, for some seconds; then there is some again. */
  async full() {
    fillDisk();
    // The log has space ahead: large writes until it is used up, so that commits are refused too.
    let refused = 0;
    for (const until = Date.now() + 20_000; !refused && Date.now() < until; ) {
      const ends = await Promise.all([0, 1, 2, 3].map((i) => request("POST", `/fill/full${i}/400000`, "")));
      for (const { status, text } of ends) {
        if (status !== 200) refused++;
        if (status !== 200) note({ target: "fill", status, text: text.slice(0, 300) });
      }
    }
    if (!refused) note({ target: "fill", text: "commits were not refused though the disk is full" });
    await sleep(1000 + pick() * 2000);
    rmSync(filler);
    const freed = Date.now();
    for (const target of ["write/recovered", "kv/x", "d1/x", "r2/x", "queue/x"]) {
      for (;;) {
        const id = `r${nextId++}`, { status, text } = await request("POST", `/${target}/${id}`, "body");
        const place = target.startsWith("write") ? "recovered" : target.startsWith("queue") ? "sink" : target.split("/")[0];
        if (status === 200) { acknowledge(place, id); break; }
        if (Date.now() - freed > RECOVERY_MS) return note({ target, status, text: `not recovered after ${RECOVERY_MS} ms: ${text}` });
        await sleep(50);
      }
    }
    return `recovered after ${Date.now() - freed} ms`;
  },
  async slow() {
    const sync = 20 + Math.floor(pick() * 280);
    setDisk(sync, 500, 0);
    await sleep(4000);
    setDisk(0, 0, 0);
    return `${sync} ms per sync`;
  },
  /** Requests whose clients are gone before the answer, at any point. */
  async killed() {
    let count = 0;
    for (const until = Date.now() + 3000; Date.now() < until; count++) {
      const socket = connect(), target = ["/big/3000000", "/hello", `/write/cell${count % CELLS}/k${count}`, "/stream/100"][count % 4];
      const text = `${count % 3 ? "GET" : "POST"} ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${count % 3 ? 0 : 100}\r\n\r\n`;
      socket.write(text.slice(0, Math.ceil(pick() * text.length * 1.5)));
      setTimeout(() => (pick() < 0.5 ? socket.resetAndDestroy?.() ?? socket.destroy() : socket.destroy()), pick() * 20);
      await sleep(2);
    }
    return `${count} clients`;
  },
  /** Clients that ask for much and read little. */
  async slowReaders() {
    const sockets = [];
    for (let i = 0; i < 40; i++) {
      const socket = connect();
      socket.pause();
      socket.write(`GET ${i % 2 ? "/stream/400" : "/big/8000000"} HTTP/1.1\r\nHost: x\r\n\r\n`);
      sockets.push(socket);
    }
    for (let i = 0; i < 10; i++) {
      const socket = new WebSocket(`ws://127.0.0.1:${server.port}/ws/flood${i}`, { perMessageDeflate: false });
      socket.on("open", () => { socket._socket.pause(); socket.send(JSON.stringify({ flood: 600 })); }).on("error", () => {});
      sockets.push({ read() {}, destroy: () => socket.terminate() });
    }
    for (const until = Date.now() + 5000; Date.now() < until; await sleep(50)) for (const socket of sockets) socket.read(1024);
    for (const socket of sockets) socket.destroy();
    return `${sockets.length} clients`;
  },
  async slowWriters() {
    const sockets = [];
    for (let i = 0; i < 60; i++) {
      const socket = connect();
      socket.write(`POST ${i % 2 ? "/echo" : `/r2/x/slow${i}`} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`);
      sockets.push(socket);
    }
    for (const until = Date.now() + 5000; Date.now() < until; await sleep(50)) for (const socket of sockets) socket.write("x");
    for (const socket of sockets) socket.destroy();
    return `${sockets.length} clients`;
  },
  /** Connections that say nothing, or half of something. */
  async halfOpen() {
    const sockets = Array.from({ length: 300 }, (_, i) => {
      const socket = connect();
      if (i % 3) socket.write("GET /hello HTTP/1.1\r\nHost: x\r\nX-Some".slice(0, i % 40));
      return socket;
    });
    await sleep(5000);
    for (const socket of sockets) socket.destroy();
    return `${sockets.length} connections`;
  },
  /** Ten times the clients, and one object with more calls than it may keep waiting. */
  async overload() {
    const until = Date.now() + 5000;
    let refused = 0;
    const crowd = Array.from({ length: CLIENTS * 10 }, async (_, i) => {
      const next = random(seed + i);
      while (Date.now() < until) await operate(next);
    });
    const piles = Array.from({ length: 8 }, async () => {
      const { status, text } = await request("POST", "/pile/pile/2000", "");
      if (status === 200) refused += JSON.parse(text).refused;
      else note({ target: "pile", status, text: text.slice(0, 200) });
    });
    await Promise.all([...crowd, ...piles]);
    return `${CLIENTS * 11} clients; ${refused} of 16,000 calls of one object refused`;
  },
};

async function injectFaults(deadline, rows) {
  const names = Object.keys(faults).filter((name) => (realDisk || name !== "full") && (!onlyFaults || onlyFaults.includes(name)));
  if (!names.length) return;
  let order = [];
  while (Date.now() + 12_000 < deadline) {
    active = "none";
    await sleep(1500 + pick() * 1500);
    if (!order.length) order = names.map((name) => [pick(), name]).sort((a, b) => a[0] - b[0]).map(([, name]) => name);
    const name = order.pop();
    active = name;
    causes.set(name, Infinity);
    const result = await faults[name]();
    causes.set(name, Date.now() + GRACE_MS);
    rows.push([name, result ?? "failed"]);
  }
  active = "none";
}

// --- the run -----------------------------------------------------------------------------------

const dir = project({
  "worker.js": readFileSync(path.join(here, "worker.js"), "utf8"),
  "wrangler.json": JSON.stringify({
    name: "load", main: "worker.js", compatibility_date: "2026-01-01",
    durable_objects: { bindings: [{ name: "CELL", class_name: "Cell" }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["Cell"] }],
    kv_namespaces: [{ binding: "KV", id: "load" }],
    d1_databases: [{ binding: "DB", database_name: "load", database_id: "load" }],
    r2_buckets: [{ binding: "BUCKET", bucket_name: "load" }],
    queues: { producers: [{ binding: "QUEUE", queue: "load" }], consumers: [{ queue: "load", max_batch_timeout: 1, max_retries: 100, retry_delay: 1 }] },
  }),
});
const data = path.join(mount, "data");
mkdirSync(data, { mode: 0o700 });

async function start() {
  const env = { LD_PRELOAD: path.join(root, "build/load/slowdisk.so"), CAIRN_SLOWDISK: slowFile };
  server = await serve(dir, { lanes, data, env, args: process.argv.includes("--sandbox") ? ["--sandbox"] : [] });
  final = false;
  server.exited.then((exit) => {
    if (final) return;
    console.log(`FAILED (seed ${seed})\n  L1: the server ended by itself while ${active}: ${JSON.stringify(exit)}\n${server.output.slice(-4000)}`);
    process.exit(1);
  });
}

function rssMb() {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${server.pid}/status`, "utf8")) ?? [0, 0]; // 0: it has just ended
  return kilobytes / 1024;
}

async function missing() {
  const lost = [];
  for (const [place, ids] of places) {
    const { status, text } = await request("GET", `/ids/${place}`);
    if (status !== 200) throw new Error(`/ids/${place}: ${status} ${text}`);
    const there = new Set(JSON.parse(text));
    for (const id of ids) if (!there.has(id)) lost.push(`${place}/${id}`);
  }
  return lost;
}

/** Messages that were acknowledged arrive sooner or later. */
async function queueIsDelivered() {
  for (const until = Date.now() + 60_000; Date.now() < until; await sleep(300)) {
    const there = new Set(JSON.parse((await request("GET", "/ids/sink")).text));
    if ([...(places.get("sink") ?? [])].every((id) => there.has(id))) return true;
  }
  return false;
}

const failures = [];
const check = (good, text) => { if (!good) failures.push(text); };

console.log(`load: seed ${seed}, ${seconds} s, ${lanes} lanes, ${CLIENTS} clients and ${SOCKETS} sockets`);
await start();
await request("POST", "/setup", "");
const sampler = setInterval(() => { if (!server.exit) memoryMax = Math.max(memoryMax, rssMb()); }, 250);
const rows = [], began = Date.now();
const clients = [...Array(CLIENTS).keys()].map(client).concat([...Array(SOCKETS).keys()].map(socketClient));
await injectFaults(began + seconds * 1000, rows);
await sleep(Math.max(0, began + seconds * 1000 - Date.now()));
stopping = true;
await Promise.race([Promise.all(clients), sleep(70_000)]);
const elapsed = (Date.now() - began) / 1000;

check(!server.exit, `L1: the server ended: ${JSON.stringify(server.exit)}`);
if (!server.exit) {
  check(await queueIsDelivered(), "L4: messages of the queue did not arrive");
  const lost = await missing();
  check(!lost.length, `L4: ${lost.length} acknowledged writes are missing, e.g. ${lost.slice(0, 5)}`);

  // L6: the last fault, for it ends writing.
  setDisk(0, 0, 1);
  const refused = await request("POST", "/write/cell0/never", "").catch((error) => ({ status: 0, text: error.message }));
  check(refused.status !== 200, "L6: a write was acknowledged though its sync failed");
  setDisk(0, 0, 0);
  const still = await request("POST", "/write/cell1/never", "").catch((error) => ({ status: 0, text: error.message }));
  check(still.status === 500 && /writes are refused/.test(still.text), `L6: a write after a failed sync: ${still.status} ${still.text}`);
  check((await request("GET", "/hello")).status === 200 && (await request("GET", "/ids/cell2")).status === 200, "L6: reading does not go on");

  final = true;
  const exit = await server.stop();
  check(exit.code === 0, `L1: the server stopped with ${JSON.stringify(exit)}`);
  try {
    execFileSync(cairn, ["check", data], { stdio: "pipe" });
  } catch (error) {
    check(false, `L4: cairn check: ${error.stdout}${error.stderr}`);
  }
  await start();
  const later = await missing();
  check(!later.length, `L4: ${later.length} acknowledged writes are missing after a restart, e.g. ${later.slice(0, 5)}`);
  check((await request("POST", "/write/cell0/again", "")).status === 200, "L6: no writes after a restart");
  final = true;
  check((await server.stop()).code === 0, "L1: the second stop");
}
clearInterval(sampler);
agent.destroy();
check(memoryMax < RSS_MAX_MB, `L2: ${Math.round(memoryMax)} MB of memory, more than ${RSS_MAX_MB}`);
check(!seen.unexpected.length, `L3: ${seen.unexpected.length} unexpected errors, e.g.\n${seen.unexpected.slice(0, 12).map((error) => `    ${JSON.stringify(error)}`).join("\n")}`);

const percentile = (list, p) => list.length ? list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))].toFixed(1) : "-";
const line = (...cells) => console.log(cells.map((cell, i) => String(cell)[i ? "padStart" : "padEnd"](i ? 10 : 14)).join(""));
console.log("\nrequests while  count    p50 ms    p99 ms    max ms");
for (const [name, list] of times) line(name, list.length, percentile(list, 0.5), percentile(list, 0.99), percentile(list, 1));
console.log("\nfaults");
for (const [name, result] of rows) console.log(`  ${name.padEnd(14)}${result}`);
if (!realDisk) console.log("  full          left out: it needs root and a loop device");
console.log("\nerrors of documented kinds");
for (const [name, count] of seen.kinds) console.log(`  ${name.padEnd(14)}${count}`);
console.log(`
${seen.requests} requests in ${elapsed.toFixed(0)} s (an hour of ${(seen.requests / 3600).toFixed(0)} per second), ${seen.acknowledged} acknowledged writes, memory at most ${Math.round(memoryMax)} MB of ${RSS_MAX_MB}
${failures.length ? `FAILED (seed ${seed})\n${failures.map((text) => `  ${text}`).join("\n")}` : "load: ok"}`);
process.exitCode = failures.length ? 1 : 0;
process.exit();
