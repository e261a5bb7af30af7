// `make instructions`: how many instructions a lane needs for each of five hot paths, beside recorded numbers.
//
// Times say little on a machine that others use; instructions hardly depend on them. What would make them jump is kept away:
//   - one client, which sends when the last answer is there: how many requests a turn of the loop finds is no matter of luck;
//   - the lane's thread alone is counted, and not what it does by the clock (on_house here, noclock.c in the engine);
//   - the engine compiles on that thread, soon, during the warm-up, and not with its last tier, which would come too late for it;
//   - it collects no garbage: when it would is a matter of the heap's size;
//   - of several windows the least counts: whatever else happens in one adds to it.
// So the figures are for comparing with each other, and are not those of `make bench-instructions`.
//
// recorded.json has the numbers by what may change them with the same source: the engine, the libraries, the compiler, what
// valgrind shows of the processor. Where these are others than any that were recorded, that is said, and a wide bound applies.
// `make instructions RECORD=1` writes the numbers of this machine.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { freePort, root, Server, sleep, tempDir } from "../bench/lib.mjs";

const PATHS = ["hello", "do-mem", "do-sql", "ws-echo", "kv-get"];
const BOUND = 0.03;
const BOUND_UNKNOWN = 0.3;
const WARM = 3000; // requests of each path, in turns
const ROUNDS = 3;
const WINDOWS = 2;
const COUNT = 300; // requests in a window
const FRAME = Buffer.concat([Buffer.from([0x81, 0x80 | 32, 0, 0, 0, 0]), Buffer.alloc(32, "e")]);
const FRAME_BACK = 34;
const recordedFile = path.join(import.meta.dirname, "recorded.json");
const binary = process.env.CAIRN || path.join(root, "build/cairn");

const run = (name, ...args) => execFileSync(name, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

/** What may change the numbers although the source is the same. */
function key() {
  const flags = new Set(/^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1].trim().split(" "));
  const packages = ["libjavascriptcoregtk-4.1-0", "libc6", "libuv1", "libglib2.0-0", "libicu72", "libstdc++6", "valgrind"];
  return {
    processor: `${process.arch} ${["sse4_2", "avx", "avx2", "bmi1", "bmi2", "abm", "f16c", "fma", "rdrand", "rdseed"].filter((f) => flags.has(f)).join(" ")}`,
    compiler: run("cc", "--version").split("\n")[0],
    libraries: run("dpkg-query", "-W", "-f", "${Package} ${Version}\n", ...packages).split("\n").join(", "),
  };
}

/** One connection, whose requests or messages follow one another. */
class Client {
  static async open(port, name) {
    const client = new Client();
    client.socket = net.connect(port, "127.0.0.1").setNoDelay(true);
    client.request = `GET /${name} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    client.complete = client.hasResponse;
    if (name === "ws-echo") {
      client.request = `GET /${name} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;
      client.complete = (got) => got.includes("\r\n\r\n");
      await client.send(1);
      client.request = FRAME;
      client.complete = (got) => got.length >= FRAME_BACK;
    }
    return client;
  }
  hasResponse(got) {
    const end = got.indexOf("\r\n\r\n");
    if (end < 0 || got.length < end + 4 + Number(/content-length: (\d+)/i.exec(got)[1])) return false;
    if (!got.startsWith("HTTP/1.1 200")) throw new Error(got);
    return true;
  }
  send(count) {
    return new Promise((resolve, reject) => {
      let left = count, got = "";
      const end = (error) => {
        this.socket.removeAllListeners();
        if (error) reject(error);
        else resolve();
      };
      this.socket.on("error", end);
      this.socket.on("close", () => end(new Error("the server has closed the connection")));
      this.socket.on("data", (data) => {
        got += data.toString("latin1");
        try {
          if (!this.complete(got)) return;
        } catch (error) {
          return end(error);
        }
        got = "";
        if (--left > 0) this.socket.write(this.request);
        else end();
      });
      this.socket.write(this.request);
    });
  }
}

/** A dump of callgrind for one thread: its total, without what the lane does by the clock. */
function lane(text) {
  let total = Number(/^totals: (\d+)/m.exec(text)?.[1] ?? 0);
  const names = new Map();
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const [, id, name] = /^c?fn=\((\d+)\)(?: (.*))?/.exec(lines[i]) ?? [];
    if (name) names.set(id, name);
    if (id && lines[i].startsWith("cfn=") && names.get(id) === "on_house") total -= Number(lines[i + 2].split(" ")[1]);
  }
  return total;
}

/** dump() is the instructions of the lane since the dump before. */
class Counter {
  dumps = 0;
  constructor(pid, dir) {
    Object.assign(this, { pid, dir });
  }
  async dump() {
    run("callgrind_control", "--dump", String(this.pid));
    this.dumps++;
    for (let tries = 0; tries < 600; tries++) { // the server writes it when it next gets to it
      for (const name of readdirSync(this.dir)) {
        if (!name.startsWith(`out.${this.dumps}-`)) continue;
        const text = readFileSync(path.join(this.dir, name), "utf8");
        this.thread ??= text.includes("net/http_conn.c") ? name.split("-")[1] : undefined;
        if (name.split("-")[1] === this.thread && /^totals: \d/m.test(text)) return lane(text);
      }
      await sleep(50);
    }
    throw new Error("callgrind has counted nothing");
  }
}

async function measure() {
  const dir = path.join(root, "build/instructions/hot");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const port = await freePort();
  Object.assign(process.env, { JSC_useConcurrentJIT: "0", JSC_thresholdForJITAfterWarmUp: "500", JSC_useFTLJIT: "0", JSC_useGC: "0", JSC_useConcurrentGC: "0", JSC_numberOfGCMarkers: "1", LD_PRELOAD: process.env.NOCLOCK });
  const server = await new Server().start(["valgrind", "--tool=callgrind", "--smc-check=all-non-file", "--instr-atstart=no", "--separate-threads=yes",
    `--callgrind-out-file=${dir}/out`, binary, "serve", path.join(import.meta.dirname, "wrangler.jsonc"), "--listen", `127.0.0.1:${port}`,
    "--data", path.join(dir, "data"), "--lanes", "1"], port, "/hello", tempDir("instructions"), 120);
  try {
    await (await Client.open(port, "kv-put")).send(1);
    const clients = new Map();
    for (const name of PATHS) clients.set(name, await Client.open(port, name));
    for (let round = 0; round < ROUNDS; round++) {
      for (const client of clients.values()) await client.send(WARM / ROUNDS);
    }
    run("callgrind_control", "--instr=on", String(server.pid));
    for (const client of clients.values()) await client.send(20);
    const counter = new Counter(server.pid, dir);
    await counter.dump();
    const windows = Object.fromEntries(PATHS.map((name) => [name, []]));
    for (let i = 0; i < WINDOWS; i++) {
      for (const [name, client] of clients) {
        await client.send(COUNT);
        windows[name].push(Math.round((await counter.dump()) / COUNT));
      }
    }
    return windows;
  } finally {
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

const began = Date.now();
const here = key();
const recorded = JSON.parse(readFileSync(recordedFile, "utf8"));
const windows = await measure();
const counts = Object.fromEntries(PATHS.map((name) => [name, Math.min(...windows[name])]));
const same = (entry) => JSON.stringify(entry.key) === JSON.stringify(here);

if (process.env.RECORD) {
  const others = recorded.filter((entry) => !same(entry));
  writeFileSync(recordedFile, `${JSON.stringify([...others, { key: here, counts }], null, 2)}\n`);
}
const known = recorded.find(same);
const beside = known ?? recorded.at(-1) ?? { key: {}, counts };
const bound = known ? BOUND : BOUND_UNKNOWN;
if (!known) {
  const what = Object.keys(here).filter((part) => here[part] !== beside.key[part]);
  console.log(`Not comparable with what was recorded: another ${what.join(", another ")}. The bound is ${100 * BOUND_UNKNOWN} %; RECORD=1 records this machine's.`);
}
let failed = false;
console.log(`${"instructions".padEnd(14)}${"recorded".padStart(10)}${"now".padStart(10)}${"change".padStart(10)}   windows`);
for (const name of PATHS) {
  const change = counts[name] / beside.counts[name] - 1;
  const out = !(Math.abs(change) <= bound);
  failed ||= out;
  console.log(`${name.padEnd(14)}${String(beside.counts[name]).padStart(10)}${String(counts[name]).padStart(10)}` +
    `${`${change >= 0 ? "+" : ""}${(100 * change).toFixed(1)} %`.padStart(10)}   ${windows[name].join(" ")}${out ? "   <-- out of bounds" : ""}`);
}
console.log(`${((Date.now() - began) / 1000).toFixed(0)} s`);
if (failed && !process.env.RECORD) {
  console.log(`A hot path takes more or fewer instructions than recorded, by over ${100 * bound} %. What has become slower is to be mended;`);
  console.log("what is meant so, or has become faster, is recorded anew: make instructions RECORD=1, and say why in the commit.");
  process.exit(1);
}
