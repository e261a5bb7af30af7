// A WebSocket client that costs little, for thousands in one process: text messages of servers that send no compressed frames.
//
//     new Thin({ port, target, host }, { open(), message(text), close(code, reason), })
//
// `close` is called once, whatever has happened: the code that the server sent, 1006 for a connection that was lost, or 0 for one that was never open;
// then `reason` tells why: the status of the refusal, or the system's error.
import net from "node:net";

const TEXT = 1, CLOSE = 8, PING = 9, PONG = 10;

/** A frame as clients send it; the mask is all zeros, so that nothing has to be changed. */
function frame(opcode, payload) {
  const size = payload.length, long = size > 125;
  if (size > 0xffff) throw new Error("too long for this client");
  const head = Buffer.alloc(long ? 8 : 6);
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | (long ? 126 : size);
  if (long) head.writeUInt16BE(size, 2);
  return Buffer.concat([head, payload]);
}

export class Thin {
  #events;
  #left = null; // bytes that are no whole frame yet
  #parts = []; // of a message in several frames
  #isOpen = false;
  #code = 0;
  #reason = "";
  #isOver = false;

  constructor({ port, target, host = "localhost" }, events) {
    this.#events = events;
    this.socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    this.socket.on("connect", () => this.socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`));
    this.socket.on("data", (bytes) => this.#take(bytes));
    this.socket.on("error", (error) => (this.#reason ||= error.code ?? String(error)));
    this.socket.on("close", () => {
      if (this.#isOver) return;
      this.#isOver = true;
      events.close(this.#code || (this.#isOpen ? 1006 : 0), this.#reason);
    });
  }

  send(text) {
    this.socket.write(frame(TEXT, Buffer.from(text)));
  }

  /** Says good bye; the server's answer ends it. */
  close(code = 1000) {
    this.#code = code;
    this.socket.write(frame(CLOSE, Buffer.from([code >> 8, code & 255])));
    this.socket.setTimeout(10_000, () => this.socket.destroy());
  }

  destroy(reason) {
    this.#reason ||= reason;
    this.socket.destroy();
  }

  #take(bytes) {
    if (this.#left) bytes = Buffer.concat([this.#left, bytes]);
    this.#left = null;
    let at = 0;
    if (!this.#isOpen) {
      const end = bytes.indexOf("\r\n\r\n");
      if (end < 0) {
        this.#left = bytes;
        return;
      }
      const status = bytes.toString("latin1", 9, 12);
      if (status !== "101") return this.destroy(status);
      at = end + 4;
      this.#isOpen = true;
      this.#events.open?.();
    }
    while (!this.#isOver && bytes.length - at >= 2) {
      let size = bytes[at + 1] & 127, from = at + 2;
      if (size === 126) {
        if (bytes.length - at < 4) break;
        size = bytes.readUInt16BE(at + 2);
        from = at + 4;
      } else if (size === 127) {
        if (bytes.length - at < 10) break;
        size = Number(bytes.readBigUInt64BE(at + 2));
        from = at + 10;
      }
      if (bytes.length < from + size) break;
      this.#frame(bytes[at], bytes.subarray(from, from + size));
      at = from + size;
    }
    if (at < bytes.length) this.#left = at === 0 ? bytes : Buffer.from(bytes.subarray(at)); // a copy: the rest can go
  }

  #frame(first, payload) {
    const opcode = first & 15;
    if (first & 0x70) return this.destroy("a frame with an extension");
    if (opcode === PING) return void this.socket.write(frame(PONG, payload));
    if (opcode === PONG) return;
    if (opcode === CLOSE) {
      if (!this.#code) this.#code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
      this.#reason ||= payload.toString("utf8", 2);
      this.socket.end(frame(CLOSE, payload.subarray(0, 2)));
      this.socket.setTimeout(5_000, () => this.socket.destroy());
      return;
    }
    if (!(first & 0x80) || opcode === 0) {
      this.#parts.push(Buffer.from(payload));
      if (!(first & 0x80)) return;
      payload = Buffer.concat(this.#parts.splice(0));
    }
    this.#events.message(payload.toString());
  }
}
