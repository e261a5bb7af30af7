// What may come to the port where nodes expect each other: who has no key, or an old one, is not answered; who has it and breaks a rule loses his
// connection, and nothing else happens; who is slow, deaf or many costs little. Beside each attack both nodes are called, and none of these calls fails.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import test from "node:test";
import { root } from "../../integration/lib/server.mjs";
import { Cluster, sanitized } from "./cluster.mjs";
import { absent, until } from "./postgres.mjs";

const program = path.join(root, "build/cluster/stranger");
const options = { skip: absent || (!existsSync(program) && "build/cluster/stranger is not built"), timeout: 600_000 };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Until the test is over, whatever becomes of it. */
function every(t, ms, what) {
  const timer = setInterval(() => {
    try {
      what();
    } catch (error) {
      if (error.code !== "ENOENT") throw error; // the server has ended: others tell
    }
  }, ms);
  t.after(() => clearInterval(timer));
}

// --- frames, as src/peer/frame.h has them ---------------------------------------------------

const HELLO = 1, BEAT = 2, MESSAGE = 3, COPY = 4, BODY_ASK = 16, PIPE = 32, WELCOME = 33, WHOLE = 34, LARGE = 35, PIECE = 37, CANCEL = 38;

function frame(kind, channel = 0, body = Buffer.alloc(0), { size = body.length, flags = 0 } = {}) {
  const head = Buffer.alloc(12);
  head.writeUInt32LE(size, 0);
  head.writeUInt16LE(kind, 4);
  head.writeUInt16LE(flags, 6);
  head.writeUInt32LE(channel, 8);
  return Buffer.concat([head, body]);
}

function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function varint(value) {
  const bytes = [];
  for (value = BigInt(value); ; value >>= 7n) {
    bytes.push(Number(value & 127n) | (value > 127n ? 128 : 0));
    if (value <= 127n) return Buffer.from(bytes);
  }
}

/** One who dials the port of a node's peers: stranger.c. */
class Stranger {
  constructor(t, address, key, { deaf = false } = {}) {
    const [host, port] = address.split(":");
    this.child = spawn(program, [host, port, key, ...(deaf ? ["deaf"] : [])], { stdio: ["pipe", "pipe", "pipe"] });
    t.after(() => this.child.kill("SIGKILL"));
    this.got = Buffer.alloc(0);
    this.told = "";
    this.child.stdin.on("error", () => {}).setMaxListeners(0);
    this.child.stdout.on("data", (bytes) => (this.got = Buffer.concat([this.got, bytes])));
    this.child.stderr.setEncoding("utf8").on("data", (text) => (this.told += text));
    this.exited = new Promise((resolve) => this.child.on("close", () => resolve(this.told)));
  }

  get secure() {
    return /^secure$/m.test(this.told);
  }

  get ended() {
    return /^ended: (.*)$/m.exec(this.told)?.[1];
  }

  /** Resolves when it was taken: false if the program has ended. */
  async send(...frames) {
    const bytes = Buffer.concat(frames);
    if (this.ended || this.child.exitCode !== null) return false;
    if (!this.child.stdin.write(bytes))
      await Promise.race([this.exited, new Promise((resolve) => this.child.stdin.once("drain", resolve)), pause(5000)]);
    return !this.ended;
  }

  over() {
    return until(() => this.ended, "the connection is closed", 60_000);
  }
}

class Attack {
  static async make(t, names = ["a", "b"]) {
    const attack = Object.assign(new Attack(), { t, cluster: await Cluster.make(t), failures: [], calls: 0 });
    for (const name of names) await attack.cluster.start(name);
    await attack.cluster.whole();
    await attack.know();
    return attack;
  }

  async know() {
    const rows = (await this.cluster.engine.ask("SELECT node || ' ' || id || ' ' || address FROM cairn.disk")).split("\n").map((row) => row.split(" "));
    this.disks = Object.fromEntries(rows.map(([node, disk]) => [node, BigInt.asUintN(64, BigInt(disk))]));
    this.addresses = Object.fromEntries(rows.map(([node, , address]) => [node, address]));
    [this.id, this.key] = (await this.cluster.engine.ask("SELECT id || ' ' || secret FROM cairn.cluster")).split(" ");
  }

  stranger(node, options, key = this.key) {
    return new Stranger(this.t, this.addresses[node], key, options);
  }

  hello(to, { disk = 77, life = 1, cluster = this.id, version = 1 } = {}) {
    return frame(HELLO, 0, Buffer.concat([Buffer.from("CNLK"), u32(version), Buffer.from(cluster), u64(disk), u64(life), u64(this.disks[to])]));
  }

  pipe(to, { disk = 77, life = 1, cluster = this.id, lane = 0 } = {}) {
    return frame(PIPE, 0, Buffer.concat([varint(1 << 2), varint(1), varint(2 << 2), varint(1), varint((3 << 2) | 1), varint(36), Buffer.from(cluster),
      varint(4 << 2), varint(disk), varint(5 << 2), varint(life), varint(6 << 2), varint(this.disks[to]), ...(lane ? [varint(7 << 2), varint(lane)] : [])]));
  }

  /** Calls of both nodes, one after the other, until it is ended: objects of either are among them. */
  begin() {
    this.going = true;
    this.load = (async () => {
      for (let i = 0; this.going; i++)
        for (const node of ["a", "b"]) {
          // (A node whose lease ran out, on a busy machine, says that nothing has happened: it is asked again.)
          let answer;
          for (let tries = 0; tries < 3 && answer?.status !== 200; tries++) answer = await this.cluster.try(node, `/add/n${i % 16}/${i}`, 30_000);
          this.calls++;
          if (answer.status !== 200) this.failures.push(`${node}: ${answer.status} ${answer.value}`);
        }
    })();
  }

  /** What was called meanwhile, and a while longer, was answered, by servers that did not end. */
  async end() {
    const enough = this.calls + 8;
    await until(() => this.calls >= enough, "calls", 120_000);
    this.going = false;
    await this.load;
    assert.deepEqual(this.failures, []);
    for (const server of this.cluster.nodes.values()) assert.equal(server.exit, undefined, server.output);
  }

  memory(node) {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.cluster.nodes.get(node).pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  }

  files(node) {
    return readdirSync(`/proc/${this.cluster.nodes.get(node).pid}/fd`).length;
  }
}

test("without the key nobody is answered, and a node with an old key is refused", options, async (t) => {
  const attack = await Attack.make(t);
  attack.begin();

  // Bytes that are no TLS, and TLS that has no key. All that comes back is an alert of TLS, or nothing.
  const plain = [Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n"), attack.hello("a"), attack.pipe("a"), Buffer.alloc(100_000, 0x16), Buffer.from("160301ffff01", "hex")];
  for (const bytes of plain) {
    const [host, port] = attack.addresses.a.split(":");
    const socket = net.connect(Number(port), host);
    let got = Buffer.alloc(0);
    socket.on("data", (data) => (got = Buffer.concat([got, data]))).on("error", () => {});
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.write(bytes);
    await closed; // at the latest when the time for a greeting is over
    assert.ok(got.length <= 7 && (got.length === 0 || got[0] === 21), `${got.length} bytes: ${got.toString("hex")}`);
  }
  const wrong = ["-", "00".repeat(32), attack.key.replace(/./, (digit) => (digit === "0" ? "1" : "0"))];
  for (const key of wrong) {
    const stranger = attack.stranger("a", {}, key);
    void stranger.send(attack.hello("a"));
    await stranger.over();
    assert.deepEqual([stranger.secure, stranger.got.length], [false, 0], stranger.told);
  }
  // The same with the key is answered: it is the key that was missing.
  const known = attack.stranger("a");
  await known.send(attack.pipe("a"));
  await until(() => known.got.length > 12, "the answer");
  assert.equal(known.got.readUInt16LE(4), WELCOME);
  known.child.kill("SIGKILL");
  // With the key, but of another cluster, or for another disk.
  for (const bytes of [attack.hello("a", { cluster: "0".repeat(36) }), attack.hello("b"), attack.hello("a", { disk: 0 }), attack.hello("a", { version: 99 }), attack.hello("a", { disk: attack.disks.a })]) {
    const stranger = attack.stranger("a");
    await stranger.send(bytes);
    await stranger.over();
    assert.deepEqual([stranger.secure, stranger.got.length], [true, 0], stranger.told);
  }
  await attack.end();

  // The key is changed: who has the old one is refused by a node that has the new one, and a node of the old is not answered by it.
  const old = attack.key;
  await attack.cluster.engine.ask(`UPDATE cairn.cluster SET secret = '${old.split("").reverse().join("")}'`);
  const b = attack.cluster.nodes.get("b");
  assert.deepEqual(await b.stop(), { code: 0, signal: null });
  await attack.cluster.start("b");
  await attack.know();
  const late = attack.stranger("b", {}, old);
  await late.over();
  assert.deepEqual([late.secure, late.got.length], [false, 0], late.told);
  const fresh = attack.stranger("b");
  await fresh.send(attack.pipe("b"));
  await until(() => fresh.got.length > 12, "the answer");
  fresh.child.kill("SIGKILL");
  // a has the old one: what it has, it answers for; b, which does not, cannot call it, and says so. Once a has the new one, all is well.
  const names = Array.from({ length: 16 }, (_, i) => `n${i}`);
  const refused = await until(async () => {
    for (const name of names) {
      if ((await attack.cluster.owner(name)) !== "a") continue;
      const answer = await attack.cluster.try("b", `/all/${name}`, 30_000);
      if ((await attack.cluster.owner(name)) === "a") return answer; // shards move for balance meanwhile: the engine knows how
    }
  }, "an object that stays with a", 120_000);
  assert.equal(refused.status, 503, refused.value);
  assert.deepEqual(await attack.cluster.nodes.get("a").stop(), { code: 0, signal: null });
  await attack.cluster.start("a");
  await attack.cluster.whole();
  for (const name of names) for (const node of ["a", "b"]) assert.equal((await attack.cluster.try(node, `/all/${name}`, 30_000)).status, 200);
});

test("malformed frames close their connection and nothing else", options, async (t) => {
  const attack = await Attack.make(t);
  attack.begin();
  const large = u32(1 << 20), noise = Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 151 + 7) % 256));
  const ofLinks = [
    frame(99), frame(MESSAGE, 0, Buffer.alloc(39)), frame(MESSAGE, 0, Buffer.alloc(41, 255)), frame(MESSAGE, 1, Buffer.alloc(40)), frame(MESSAGE, 0, Buffer.alloc(40), { flags: 1 }),
    frame(MESSAGE, 0, Buffer.alloc(0), { size: 0xffffffff }), frame(MESSAGE, 0, Buffer.alloc(0), { size: (1 << 20) + 1 }), frame(COPY, 0, noise), frame(BODY_ASK, 0, noise),
    frame(BODY_ASK, 0, Buffer.concat([u32(0), u32(1 << 30), Buffer.alloc(48)])), frame(BEAT, 0, noise), attack.hello("a"), attack.pipe("a"), frame(WHOLE, 1, noise), noise,
  ];
  const ofPipes = [
    frame(99), frame(HELLO, 0, noise), frame(MESSAGE, 0, Buffer.alloc(40)), frame(WHOLE, 0, noise), frame(WHOLE, 65_537, noise), frame(WHOLE, 1, Buffer.alloc(65_537)),
    frame(LARGE, 1, u32(1)), frame(LARGE, 1, u32(0xffffffff)), frame(LARGE, 1, Buffer.alloc(3)), frame(PIECE, 1, noise), frame(WELCOME), frame(BEAT, 1), frame(CANCEL, 0), noise,
    Buffer.concat([frame(LARGE, 1, large), frame(LARGE, 1, large)]), Buffer.concat([frame(LARGE, 1, large), frame(WHOLE, 1, noise)]),
  ];
  for (const [greeting, wrong] of [[attack.hello("a"), ofLinks], [attack.pipe("a"), ofPipes]])
    for (const bytes of wrong) {
      const stranger = attack.stranger("a");
      await stranger.send(greeting);
      await until(() => stranger.got.length > 12, "the greeting");
      await stranger.send(bytes);
      await stranger.over().catch((error) => assert.fail(`${bytes.subarray(0, 64).toString("hex")}: ${error.message}`));
    }
  // A question that cannot be read is answered with an error: it is the frames that are in order.
  const stranger = attack.stranger("a");
  await stranger.send(attack.pipe("a"));
  await until(() => stranger.got.length > 12, "the greeting");
  const had = stranger.got.length;
  await stranger.send(frame(WHOLE, 1, noise), frame(WHOLE, 2), frame(WHOLE, 3, Buffer.alloc(65_536, 255)));
  await until(() => (stranger.got.toString("latin1").match(/cannot read the question/g) ?? []).length === 3, "three answers");
  assert.ok(stranger.got.length > had && !stranger.ended);
  await attack.end();
});

test("thousands who never finish their greeting, byte by byte, cost little and keep nobody away", options, async (t) => {
  const attack = await Attack.make(t);
  attack.begin();
  const [host, port] = attack.addresses.a.split(":");
  const before = { memory: attack.memory("a"), files: attack.files("a") };
  let most = { memory: 0, files: 0 };
  every(t, 20, () => (most = { memory: Math.max(most.memory, attack.memory("a")), files: Math.max(most.files, attack.files("a")) }));
  // The beginning of a ClientHello that announces 512 bytes; one byte more now and then.
  const start = Buffer.from("1603010200010001fc0303", "hex");
  const sockets = new Set();
  let opened = 0;
  every(t, 500, () => {
    for (const socket of sockets) socket.write(Buffer.from([opened & 255]));
  });
  while (opened < 4000) {
    await Promise.all(Array.from({ length: 100 }, () => new Promise((resolve) => {
      const socket = net.connect(Number(port), host, () => {
        opened++;
        sockets.add(socket);
        socket.write(start);
        resolve();
      });
      socket.on("error", resolve).on("close", () => sockets.delete(socket));
    })));
  }
  // A node that comes now finds its way in between.
  await attack.cluster.start("c");
  await until(async () => (await attack.cluster.engine.tryAsk("SELECT count(DISTINCT owner) FROM cairn.shard")) === "3", "the new node owns something", 200_000);
  await until(() => sockets.size <= 64, "all but a few were closed", 60_000);
  await attack.end();
  await until(() => sockets.size === 0, "those, too: their time is over", 60_000);
  assert.ok(most.files - before.files < 64 + 2 * 64 + 100, `${before.files} files before, ${most.files} at most`); // and a backlog that was accepted at once
  assert.ok(most.memory - before.memory < (sanitized ? 600 : 60), `${before.memory} MB before, ${most.memory} MB at most`);
});

test("one who has the key, sends for ever and reads nothing costs little, and is closed", options, async (t) => {
  const attack = await Attack.make(t);
  attack.begin();
  const body = Buffer.alloc(60_000, 1);
  const before = attack.memory("a");
  let most = 0;
  every(t, 20, () => (most = Math.max(most, attack.memory("a"))));
  const floods = {
    "questions that he takes back": (i) => [frame(WHOLE, (i % 1000) + 1, Buffer.from("?")), frame(CANCEL, (i % 1000) + 1)],
    "large ones that he takes back": (i) => [frame(LARGE, (i % 1000) + 1, u32(1 << 20)), frame(CANCEL, (i % 1000) + 1)],
    "questions": (i) => [frame(WHOLE, (i % 65_536) + 1, body)],
    "large ones that never come": (i) => [frame(LARGE, (i % 65_536) + 1, u32(34 << 20))],
  };
  const enough = { "questions that he takes back": 3_000_000, "large ones that he takes back": 2_000_000, "questions": 5000, "large ones that never come": 5000 };
  for (const [what, flood] of Object.entries(floods)) {
    const stranger = attack.stranger("a", { deaf: true });
    await stranger.send(attack.pipe("a"));
    let sent = 0;
    for (const limit = Date.now() + 120_000; Date.now() < limit; ) {
      const frames = Array.from({ length: what === "questions" ? 10 : 1000 }, () => flood(sent++)).flat();
      if (!(await stranger.send(...frames))) break;
    }
    // A slow machine may not get there in the time: what the systems between keep is megabytes.
    assert.ok(stranger.ended || sent < enough[what], `${what}: ${sent} were sent, and he is still there`);
  }
  // Of a link what is to be sent is bounded by its queue, and what comes is thrown away; a stranger's link ends with the next map.
  const link = attack.stranger("a", { deaf: true });
  await link.send(attack.hello("a"));
  for (const limit = Date.now() + 10_000; Date.now() < limit; ) if (!(await link.send(...Array.from({ length: 1000 }, () => frame(BEAT))))) break;
  await attack.end();
  assert.ok(most - before < (sanitized ? 1000 : 250), `${before} MB before, ${most} MB at most`);
});
