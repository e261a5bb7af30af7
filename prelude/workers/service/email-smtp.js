// A message to a mail server: RFC 5321, with STARTTLS (3207), AUTH PLAIN and LOGIN (4954), SIZE (1870), 8BITMIME, SMTPUTF8.
//
// It is spoken over a socket of the lane's loop (sockets.js): nothing here waits but promises, names are looked up and
// certificates checked as for every connection, and [cairn.egress] decides about the address. One connection carries one message.
//
// S1  A message counts as sent when the server has answered its end with 250, and only then.
// S2  All recipients or none: if the server refuses one, nothing is sent.
// S3  After STARTTLS nothing that came before it is believed, and nothing may have come with its answer.
// S4  Without TLS no password is sent.
// S5  A line of the message that begins with a dot gets another one; lines end in CR LF; so nothing in it can be its end.
import { native } from "../../internal/native.js";
import { clearTimeout, setTimeout } from "../../web/timers.js";
import { EmailError } from "./email-mime.js";
import sockets from "part:../sockets.js";

const LINE_MAX = 4096;
const LINES_MAX = 200;
const PIECE_BYTES = 64 << 10;

const failed = (text) => new EmailError("E_DELIVERY_FAILED", text);

class Session {
  #server;
  #socket;
  #reader;
  #writer;
  #rest = "";
  #timedOut = false;

  constructor(server) {
    this.#server = server;
    const { host, port, secure } = server;
    this.#take(sockets().connect({ hostname: host, port }, { secureTransport: secure ? "on" : "starttls" }));
  }
  #take(socket) {
    this.#socket = socket;
    this.#reader = socket.readable.getReader();
    this.#writer = socket.writable.getWriter();
  }
  get #name() {
    return `${this.#server.host}:${this.#server.port}`;
  }

  /** Waits for a promise no longer than the server may take. */
  async #within(promise, what) {
    const timer = setTimeout(() => {
      this.#timedOut = true;
      this.close();
    }, this.#server.timeout);
    try {
      return await promise;
    } catch (error) {
      throw failed(this.#timedOut ? `${this.#name}: no answer within ${this.#server.timeout} ms while ${what}` : `${this.#name}: ${error.message}`);
    } finally {
      clearTimeout(timer);
    }
  }

  async #line(what) {
    while (this.#rest.indexOf("\n") < 0 && this.#rest.length <= LINE_MAX) {
      const { done, value } = await this.#within(this.#reader.read(), what);
      if (done) throw failed(this.#timedOut ? `${this.#name}: no answer within ${this.#server.timeout} ms while ${what}` : `${this.#name}: the connection was closed while ${what}`);
      this.#rest += native.latin1Slice(value, 0, value.length);
    }
    const end = this.#rest.indexOf("\n");
    if (end < 0 || end > LINE_MAX) throw failed(`${this.#name}: the answer has a line that is too long`);
    const line = this.#rest.slice(0, end).replace(/\r$/, "");
    this.#rest = this.#rest.slice(end + 1);
    return line;
  }

  /** The server's answer: {code, lines}. */
  async #answer(what) {
    const lines = [];
    for (;;) {
      const match = /^([2-5]\d\d)([ -]?)(.*)$/.exec(await this.#line(what));
      if (match === null) throw failed(`${this.#name}: what it says is not SMTP`);
      lines.push(match[3]);
      if (match[2] !== "-") return { code: Number(match[1]), lines };
      if (lines.length >= LINES_MAX) throw failed(`${this.#name}: the answer has too many lines`);
    }
  }
  async greeting() {
    await this.#expect("it greets", 2);
  }
  async #expect(what, kind) {
    const answer = await this.#answer(what);
    if (Math.floor(answer.code / 100) !== kind) {
      const error = failed(`${this.#name}: ${answer.code} ${answer.lines.join(" ").replace(/[^\x20-\x7e]/g, "?").slice(0, 500)}`);
      if (answer.code === 421 || answer.code === 450 || answer.code === 451 || answer.code === 452) error.retryable = true;
      if (answer.code === 552) error.code = "E_CONTENT_TOO_LARGE";
      throw error;
    }
    return answer;
  }
  async #write(text, what) {
    await this.#within(this.#writer.write(native.utf8Encode(text)), what);
  }
  async command(text, what, kind = 2) {
    await this.#write(`${text}\r\n`, what);
    return this.#expect(what, kind);
  }

  /** What the server can do: name -> the rest of its line. */
  async hello() {
    const { lines } = await this.command(`EHLO ${this.#server.hello}`, "EHLO was sent");
    const able = new Map();
    for (const line of lines.slice(1)) {
      const [name, ...rest] = line.trim().split(/\s+/);
      able.set(name.toUpperCase(), rest.join(" ").toUpperCase());
    }
    return able;
  }
  async startTls() {
    await this.command("STARTTLS", "STARTTLS was sent");
    if (this.#rest !== "") throw failed(`${this.#name}: it has sent more than the answer to STARTTLS`); // S3
    this.#reader.releaseLock();
    this.#writer.releaseLock();
    const socket = this.#socket.startTls();
    this.#take(socket);
    await this.#within(socket.opened, "TLS was begun");
  }
  async authenticate(able) {
    const { user, password } = this.#server;
    const ways = (able.get("AUTH") ?? "").split(" ");
    const base64 = (text) => {
      const bytes = native.utf8Encode(text);
      return native.base64Encode(native.latin1Slice(bytes, 0, bytes.length));
    };
    if (ways.includes("PLAIN")) {
      await this.command(`AUTH PLAIN ${base64(`\0${user}\0${password}`)}`, "AUTH was sent");
    } else if (ways.includes("LOGIN")) {
      await this.command("AUTH LOGIN", "AUTH was sent", 3);
      await this.command(base64(user), "AUTH was sent", 3);
      await this.command(base64(password), "AUTH was sent");
    } else {
      throw failed(`${this.#name}: it takes neither AUTH PLAIN nor AUTH LOGIN`);
    }
  }
  async data(bytes) {
    await this.command("DATA", "DATA was sent", 3);
    const lines = new Dotted();
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      await this.#within(this.#writer.write(lines.take(bytes.subarray(at, Math.min(bytes.length, at + PIECE_BYTES)))), "the message was sent");
    }
    await this.#within(this.#writer.write(lines.end()), "the message was sent");
    await this.#expect("the message was sent", 2); // S1
  }
  /** Says goodbye, and waits for nothing. */
  quit() {
    this.#writer.write(native.utf8Encode("QUIT\r\n")).then(() => this.close(), () => {});
  }
  close() {
    this.#socket.close().catch(() => {});
  }
}

/** Bytes of a message in any pieces as they go after DATA: S5. */
class Dotted {
  #last = 10; // the byte before: it begins a line
  take(bytes) {
    const out = new Uint8Array(bytes.length * 2 + 2);
    let at = 0;
    let last = this.#last;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i];
      if (last === 13 && byte !== 10) {
        out[at++] = 10; // a CR alone
        last = 10;
      }
      if (byte === 10 && last !== 13) out[at++] = 13; // an LF alone
      if (byte === 46 && last === 10) out[at++] = 46;
      out[at++] = byte;
      last = byte;
    }
    this.#last = last;
    return out.subarray(0, at);
  }
  end() {
    const text = this.#last === 10 ? ".\r\n" : this.#last === 13 ? "\n.\r\n" : "\r\n.\r\n";
    return native.utf8Encode(text);
  }
}

async function converse(session, server, { from, to, bytes }) {
  await session.greeting();
  let able = await session.hello();
  if (!server.secure && server.starttls !== "never") {
    if (able.has("STARTTLS")) {
      await session.startTls();
      able = await session.hello();
    } else if (server.starttls === "required") {
      throw failed(`${server.host}:${server.port}: it does not offer STARTTLS, which [cairn.email] starttls requires`);
    }
  }
  if (server.user !== undefined) await session.authenticate(able);
  const limit = Number(able.get("SIZE") ?? 0);
  if (limit > 0 && bytes.length > limit) throw new EmailError("E_CONTENT_TOO_LARGE", `The mail server takes messages of ${limit} bytes at most`);
  const international = [from, ...to].some((address) => /[^\x00-\x7f]/.test(address));
  if (international && !able.has("SMTPUTF8")) throw new EmailError("E_VALIDATION_ERROR", "The mail server does not take addresses that are not ASCII");
  const parameters = `${able.has("SIZE") ? ` SIZE=${bytes.length}` : ""}${able.has("8BITMIME") ? " BODY=8BITMIME" : ""}${international ? " SMTPUTF8" : ""}`;
  await session.command(`MAIL FROM:<${from}>${parameters}`, "MAIL was sent");
  for (const address of to) await session.command(`RCPT TO:<${address}>`, "RCPT was sent"); // S2
  await session.data(bytes);
}

/**
 * @param {{host: string, port: number, secure: boolean, starttls: "required" | "offered" | "never", user?: string, password?: string, hello: string, timeout: number}} server
 * @param {{from: string, to: string[], bytes: Uint8Array}} message whose addresses have been checked
 */
export async function sendMail(server, message) {
  const session = new Session(server);
  try {
    await converse(session, server, message);
  } catch (error) {
    session.close();
    throw error;
  }
  session.quit();
}
