// What the fuzzers of the whole server share: bytes at random, a server under sanitizers, and the end of a run.
import { spawnSync } from "node:child_process";
import net from "node:net";
import { random as numbers, seedOfRun } from "../../lib/random.mjs";
import { project, serve } from "../../integration/lib/server.mjs";

export class Random {
  constructor(seed) {
    this.next = numbers(seed);
  }
  below(bound) {
    return Math.floor(this.next() * bound);
  }
  one(list) {
    return list[this.below(list.length)];
  }
  chance(percent) {
    return this.next() * 100 < percent;
  }
  bytes(size) {
    const out = Buffer.allocUnsafe(size);
    for (let i = 0; i < size; i++) out[i] = this.next() * 256;
    return out;
  }
}

/** Changes of bytes as a fuzzer makes them: flipped, replaced, cut, repeated, and words put in. */
export function mutate(random, bytes, words) {
  let out = Buffer.from(bytes);
  for (let i = random.below(5); i >= 0; i--) {
    const at = random.below(out.length + 1), size = random.chance(80) ? random.below(8) : random.below(out.length + 1);
    const splice = (middle, skip = 0) => (out = Buffer.concat([out.subarray(0, at), middle, out.subarray(Math.min(out.length, at + skip))]));
    switch (random.below(7)) {
      case 0: if (out.length) out[at % out.length] ^= 1 << random.below(8); break;
      case 1: if (out.length) out[at % out.length] = random.one([0, 10, 13, 32, 34, 44, 58, 59, 61, 127, 128, 255, random.below(256)]); break;
      case 2: splice(Buffer.alloc(0), size); break;
      case 3: splice(out.subarray(at, at + size)); break;
      case 4: splice(Buffer.from(random.one(words), "latin1"), random.chance(50) ? size : 0); break;
      case 5: splice(random.bytes(size)); break;
      default: splice(Buffer.alloc(random.below(300), random.below(256))); break;
    }
    if (out.length > 200_000) out = out.subarray(0, 200_000);
  }
  return out;
}

/** A text for a person: what is repeated or long is said, not shown. */
export const brief = (text, most = 1500) => {
  const told = `${text}`.replace(/(.)\1{30,}/gsu, (run, each) => `${each}{${run.length}}`).replace(/[^\s"']{300,}/g, (word) => `${word.slice(0, 100)}...(${word.length})`);
  return told.length > most ? `${told.slice(0, most / 2)}\n... ${told.length - most} more ...\n${told.slice(-most / 2)}` : told;
};

/** Sends bytes in pieces and gives what comes until the peer is done or silent. */
export function exchange(port, pieces, { silence = 60, most = 1 << 20, onData } = {}) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: "127.0.0.1", port });
    const parts = [];
    let size = 0, over = false;
    const done = () => {
      if (over) return;
      over = true;
      socket.destroy();
      resolve(Buffer.concat(parts));
    };
    socket.setTimeout(silence, done);
    socket.on("error", done).on("close", done).on("data", (part) => {
      parts.push(part);
      onData?.(part, socket);
      if ((size += part.length) > most) done();
    });
    socket.on("connect", () => {
      for (const piece of pieces) socket.write(piece);
    });
  });
}

/**
 * A fuzz target: `files` and `options` make the server, `once` is one execution. Finds what ends the server or what `once` throws.
 * Arguments: how long, in seconds, or as "400n" in executions; a seed.
 */
export async function main({ name, files, options, once, width = 8 }) {
  const [length = "10", given] = process.argv.slice(2);
  const counted = length.endsWith("n"), share = counted ? Math.ceil(parseInt(length) / width) : Infinity;
  const seed = Number(given ?? seedOfRun());
  const dir = project(files);
  const sanitized = {
    ASAN_OPTIONS: "detect_leaks=0:allow_user_segv_handler=1:abort_on_error=0:exitcode=99", UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1:exitcode=99", Malloc: "1",
  };
  const { env = {}, ...more } = options ?? {};
  const server = await serve(dir, { lanes: 1, ...more, env: { CAIRN_ADMIN: "off", ...(process.env.CAIRN?.includes("san-") ? sanitized : {}), ...env } });
  const began = Date.now(), until = counted ? Infinity : began + Number(length) * 1000;
  let count = 0, found = null;
  const kinds = {};
  const worker = async (index) => {
    const random = new Random(seed + index * 7919);
    for (let i = 0; i < share && Date.now() < until && found === null && server.exit === undefined; i++) {
      try {
        const kind = await once(server, random);
        if (kind !== undefined) kinds[kind] = (kinds[kind] ?? 0) + 1;
      } catch (error) {
        if (server.exit === undefined) found ??= error;
      }
      count++;
    }
  };
  await Promise.all(Array.from({ length: width }, (_, index) => worker(index)));
  // It must still answer.
  if (found === null && server.exit === undefined) {
    const answer = await exchange(server.port, ["GET /alive HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"], { silence: 20_000 });
    if (!answer.toString().startsWith("HTTP/1.1 ")) found = new Error(`the server does not answer any more: ${brief(answer)}`);
  }
  if (server.exit !== undefined) found = new Error(`the server ended: ${JSON.stringify(server.exit)}\n${brief(server.output.slice(-20_000), 8000)}`);
  if (server.exit === undefined) await server.stop();
  if (server.exit && server.exit.code !== 0 && found === null) found = new Error(`the server ended with ${JSON.stringify(server.exit)}\n${brief(server.output.slice(-20_000), 8000)}`);
  const seen = Object.entries(kinds).map(([kind, times]) => `${kind}: ${times}`).join(", ");
  console.log(`${name}: ${count} executions in ${Math.round((Date.now() - began) / 1000)} s, seed ${seed}${seen ? ` (${seen})` : ""}${found ? `: ${brief(found.stack ?? found, 12_000)}` : ""}`);
  process.exit(found ? 1 : 0);
}

/** Everything in one go, one target after the other: run.mjs. */
export const runFile = (file, seconds, seed) => spawnSync(process.execPath, [file, String(seconds), ...(seed === undefined ? [] : [String(seed)])], { stdio: "inherit", timeout: seconds * 1000 + 120_000 }).status;
