// A client of WebSockets that keeps what it got, and the project of these tests.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { project } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

export const WebSocket = createRequire(import.meta.url)("ws");
export const worker = readFileSync(new URL("worker.js", import.meta.url), "utf8");
export const config = (date, more = "") => `name = "sockets"
main = "index.js"
compatibility_date = "${date}"
${objects({ ROOM: "Room", PLAIN: "Plain" })}
${more}`;
export const makeProject = (date = "2026-05-01", more = "") => project({ "wrangler.toml": config(date, more), "index.js": worker });

/** An open socket with a queue of what came. */
export class Client {
  static open(server, target, protocols, options = {}) {
    const client = new Client();
    client.socket = new WebSocket(server.url.replace("http", "ws") + target, protocols, { perMessageDeflate: false, ...options });
    client.messages = [];
    client.waiting = [];
    client.socket.on("message", (data, binary) => {
      client.messages.push(binary ? data : data.toString());
      client.wake();
    });
    client.closed = new Promise((resolve) => client.socket.on("close", (code, reason) => {
      client.over = [code, reason.toString()];
      client.wake();
      resolve(client.over);
    }));
    return new Promise((resolve, reject) => {
      client.socket.on("open", () => resolve(client));
      client.socket.on("error", (error) => { client.error = error; reject(error); });
    });
  }
  wake() {
    for (const check of this.waiting.splice(0)) check();
  }
  /** The next message. */
  async next() {
    const timer = setTimeout(() => { this.late = true; this.wake(); }, 60_000);
    try {
      for (;;) {
        if (this.messages.length > 0) return this.messages.shift();
        if (this.over) throw new Error(`closed (${this.over}) while a message was awaited`);
        if (this.late) throw new Error("no message came");
        await new Promise((resolve) => { this.waiting.push(resolve); });
      }
    } finally {
      clearTimeout(timer);
    }
  }
  send(message) {
    this.socket.send(message);
  }
  async ask(message) {
    this.send(message);
    return this.next();
  }
  async json(message) {
    return JSON.parse(await this.ask(message));
  }
  close(code, reason) {
    this.socket.close(code, reason);
    return this.closed;
  }
}
