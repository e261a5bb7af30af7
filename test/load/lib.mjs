// What the programs of this folder that watch a server's memory share.
import { readFileSync } from "node:fs";
import http from "node:http";

export const MB = 1 << 20;
export const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
export const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : process.argv[at + 1];
};

const agent = new http.Agent({ keepAlive: false });
/** A request to a worker: {status, text}. */
export function ask(server, host, target, timeout = 30_000) {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ host: "127.0.0.1", port: server.port, path: target, agent, headers: { host }, timeout }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part)).on("error", reject).on("end", () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
    });
    outgoing.on("error", reject).on("timeout", () => outgoing.destroy(new Error(`${host}${target}: no answer within ${timeout} ms`))).end();
  });
}

/** Bytes of a process: its own, which memory_bytes is about, and all that is resident. */
export function memoryOf(pid) {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  const of = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1] ?? 0) * 1024;
  return { own: of("RssAnon") + of("RssShmem"), all: of("VmRSS") };
}
