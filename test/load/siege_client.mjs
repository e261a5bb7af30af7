// The other side of siege.mjs, in processes of their own so that none of them delays another: `echo` is a bare server,
// `probe` measures, `attack` attacks. They talk with siege.mjs by messages.
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { readFileSync } from "node:fs";

const [role, given] = process.argv.slice(2);
const options = given ? JSON.parse(given) : {};
const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
let stopping = false, go;
const going = new Promise((resolve) => { go = resolve; });

/** {status, text} */
function request(agent, port, host, target, { method = "GET", timeout = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ host: "127.0.0.1", port, path: target, method, agent, timeout, headers: { host } }, (response) => {
      let text = "";
      response.setEncoding("latin1").on("data", (part) => { text += part; }).on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode, text }));
    });
    outgoing.on("error", reject).on("timeout", () => outgoing.destroy(new Error(`no answer within ${timeout} ms`)));
    outgoing.end();
  });
}

// --- echo ----------------------------------------------------------------------------------------

function echo() {
  const server = http.createServer((_, response) => response.end("hello"));
  server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
}

// --- probe ---------------------------------------------------------------------------------------

/** [nanoseconds it ran, nanoseconds it was ready and waited] of a thread of the server. */
const timesOf = (thread) => readFileSync(`/proc/${options.pid}/task/${thread}/schedstat`, "utf8").split(" ").map(Number);

/** The thread that answers on a connection: the one that runs when it is asked a thousand times. */
async function laneOf(agent) {
  const before = options.threads.map((thread) => timesOf(thread)[0]);
  for (let i = 0; i < 300; i++) await request(agent, options.port, "ledger.test", "/hello");
  const ran = options.threads.map((thread, i) => timesOf(thread)[0] - before[i]);
  return options.threads[ran.indexOf(Math.max(...ran))];
}

/** Asks the innocent and the bare server by turns, at a steady pace, on connections that stay; and writes. */
async function probe() {
  const { port, echoPort, connections } = options;
  const report = { echo: [], hello: [], besides: [], write: [], refused: 0, failed: [], born: {}, acknowledged: { book: [], kv: [], sink: [] } };
  const note = (error) => { if (report.failed.length < 20) report.failed.push(error); };
  let serial = 0;
  const timed = async (list, send, besides) => {
    const began = performance.now();
    try {
      const answer = await send();
      if (answer.status === 503) { report.refused++; await sleep(50); return null; }
      const milliseconds = performance.now() - began;
      list.push(milliseconds);
      besides?.(milliseconds);
      if (answer.status !== 200) note(`${answer.status} ${answer.text.slice(0, 200)}`);
      return answer.status === 200 ? answer.text : null;
    } catch (error) {
      note(String(error.message));
      return null;
    }
  };
  const agents = Array.from({ length: connections }, () => new http.Agent({ keepAlive: true, maxSockets: 1 })), lanes = [];
  for (const agent of agents) lanes.push(await laneOf(agent));
  process.send({ lanes: new Set(lanes).size });
  await going;
  const loop = async (number) => {
    const agent = agents[number], bare = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (!stopping) {
      await timed(report.echo, () => request(bare, echoPort, "x", "/"));
      const [, before] = timesOf(lanes[number]);
      const born = await timed(report.hello, () => request(agent, port, "ledger.test", "/hello"),
        (milliseconds) => report.besides.push(Math.max(0, milliseconds - (timesOf(lanes[number])[1] - before) / 1e6)));
      if (born !== null) report.born[born] = (report.born[born] ?? 0) + 1;
      const id = `${number}-${serial++}`, kind = serial % 4;
      const [target, place] = kind === 0 ? [`/kv/x/${id}`, "kv"] : kind === 1 ? [`/queue/x/${id}`, "sink"] : [`/write/book/${id}`, "book"];
      if (await timed(report.write, () => request(agent, port, "ledger.test", target, { method: "POST" })) === id) report.acknowledged[place].push(id);
      await sleep(20);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, number) => loop(number)));
  process.send(report, () => process.exit());
}

// --- attack --------------------------------------------------------------------------------------

const { port } = options;
const counts = { sockets: 0, closed: 0, uploads: 0, refusedUploads: 0, hogged: 0, spun: 0, readers: 0, broadcasts: 0 };
const connect = () => net.connect(port, "127.0.0.1").on("error", () => {});

/** A WebSocket that never reads; when the server closes it, another takes its place. */
async function slowSocket(target) {
  while (!stopping) {
    const socket = connect();
    socket.write(`GET ${target} HTTP/1.1\r\nHost: room.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`);
    const closed = once(socket, "close").catch(() => {});
    const [head] = await Promise.race([once(socket, "data").catch(() => [""]), closed.then(() => [""])]);
    if (String(head).startsWith("HTTP/1.1 101")) {
      counts.sockets++;
      socket.pause();
      // A socket that does not read does not see its end either: writing shows it.
      const timer = setInterval(() => socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0])), 2000);
      await Promise.race([closed, untilStopping()]);
      clearInterval(timer);
      counts.closed++;
    }
    socket.destroy();
    await sleep(200 + Math.random() * 300);
  }
}

let stopped;
const stopPromise = new Promise((resolve) => { stopped = resolve; });
const untilStopping = () => stopPromise;

/** A body that is sent in large part and never ended. */
async function slowUpload(number) {
  const part = Buffer.alloc(65536, 1);
  while (!stopping) {
    const socket = connect();
    const target = ["/bytes", "/text", "/clone", "/stream", "/form"][options.uploads === "every" ? number % 5 : 0];
    const chunked = options.chunked && number % 2;
    const type = target === "/form" ? "Content-Type: multipart/form-data; boundary=b\r\n" : "";
    socket.write(`POST ${target} HTTP/1.1\r\nHost: taker.test\r\n${type}${chunked ? "Transfer-Encoding: chunked" : `Content-Length: ${95 << 20}`}\r\n\r\n`);
    if (type) socket.write(`${chunked ? "39\r\n" : ""}--b\r\nContent-Disposition: form-data; name="a"; filename="f"\r\n\r\n`.slice(0));
    let over = false;
    const closed = once(socket, "close").catch(() => {}).then(() => { over = true; });
    socket.on("data", (bytes) => { if (String(bytes).startsWith("HTTP/1.1 503") || String(bytes).startsWith("HTTP/1.1 413")) counts.refusedUploads++; over = true; });
    counts.uploads++;
    for (let i = 0; i < 1400 && !over && !stopping; i++) {
      const framed = chunked ? [Buffer.from("10000\r\n"), part, Buffer.from("\r\n")] : [part];
      let room = true;
      for (const piece of framed) room = socket.write(piece);
      if (!room) await Promise.race([once(socket, "drain").catch(() => {}), closed, untilStopping()]);
      await sleep(250);
    }
    while (!over && !stopping) await sleep(200);
    socket.destroy();
    await sleep(2000);
  }
}

async function slowReader(number) {
  while (!stopping) {
    const socket = connect();
    socket.pause();
    socket.write(`GET ${number % 2 ? "/big" : "/stream"} HTTP/1.1\r\nHost: room.test\r\n\r\n`);
    counts.readers++;
    for (let i = 0; i < 100 && !stopping && !socket.destroyed; i++) { socket.read(512); await sleep(100); }
    socket.destroy();
  }
}

async function caller(host, targets, pause, count) {
  const agent = new http.Agent({ keepAlive: false });
  for (let i = 0; !stopping; i++) {
    await request(agent, port, host, targets[i % targets.length], { method: "POST" }).then(() => counts[count]++, () => {});
    await sleep(pause);
  }
}

async function attack() {
  const tasks = [];
  for (let i = 0; i < options.sockets; i++) {
    const kind = options.socketKind === "both" ? ["hibernated", "accepted"][i % 2] : options.socketKind;
    tasks.push(slowSocket(`/socket/room${i % options.rooms}/${kind}`));
    if (i % 50 === 49) await sleep(50);
  }
  for (let i = 0; i < options.rooms && options.sockets; i++) tasks.push(caller("room.test", [`/broadcast/room${i}/1/${options.messageBytes}`], 50 * options.rooms, "broadcasts"));
  for (let i = 0; i < options.uploadCount; i++) tasks.push(slowUpload(i));
  for (let i = 0; i < options.readers; i++) tasks.push(slowReader(i));
  for (let i = 0; i < options.hogs; i++) tasks.push(caller("hog.test", options.forms, 2, "hogged"));
  for (let i = 0; i < options.spinners; i++) tasks.push(caller("spin.test", options.spins, options.spinPause, "spun"));
  process.send({ begun: true });
  await Promise.race([Promise.all(tasks), stopPromise.then(() => sleep(1000))]);
  process.send(counts, () => process.exit());
}

process.on("message", (what) => {
  if (what === "go") return go();
  stopping = true;
  stopped();
});
process.on("disconnect", () => process.exit());
await { echo, probe, attack }[role]();
