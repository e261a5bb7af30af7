// cloudflare:sockets on the real binary, against servers of Node's: plain, TLS, STARTTLS.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import tls from "node:tls";
import { project, serve, tempDir } from "../lib/server.mjs";

let server, echo, echoTls, mail, cert, key;
const listening = (s) => new Promise((resolve) => s.listen(0, "127.0.0.1", () => resolve(s.address().port)));
const quiet = (socket) => socket.on("error", () => {});

before(async () => {
  const dir = tempDir();
  cert = path.join(dir, "cert.pem");
  key = path.join(dir, "key.pem");
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", "/CN=test", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], { stdio: "ignore" });
  const credentials = { cert: readFileSync(cert), key: readFileSync(key) };
  echo = net.createServer({ allowHalfOpen: true }, (socket) => quiet(socket).pipe(socket));
  echoTls = tls.createServer({ ...credentials, allowHalfOpen: true }, (socket) => quiet(socket).pipe(socket));
  // A mail server's way: a greeting, STARTTLS, "go ahead", then TLS.
  mail = net.createServer((socket) => {
    quiet(socket).write("220 hello\r\n");
    socket.once("data", (line) => {
      if (String(line) !== "STARTTLS\r\n") return socket.destroy();
      return socket.write("220 go ahead\r\n", () => {
        const secure = new tls.TLSSocket(socket, { isServer: true, ...credentials });
        quiet(secure).on("data", (data) => secure.end(`secure ${data}`));
      });
    });
  });
  const ports = { ECHO: await listening(echo), ECHO_TLS: await listening(echoTls), MAIL: await listening(mail) };
  server = await serve(project({
    "wrangler.toml": `name = "sockets"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n[vars]\n${Object.entries(ports).map(([k, v]) => `${k} = ${v}`).join("\n")}\n`,
    "index.js": `
import { connect } from "cloudflare:sockets";
const encoder = new TextEncoder();
const text = async (stream) => await new Response(stream).text();
async function exchange(socket, message) {
  const writer = socket.writable.getWriter();
  await writer.write(encoder.encode(message));
  await writer.close();
  const answer = await text(socket.readable);
  await socket.closed;
  return answer;
}
const thrown = async (f) => { try { await f(); return "nothing"; } catch (e) { return e.name + ": " + e.message; } };
const tests = {
  async plain(env) {
    const socket = connect({ hostname: "127.0.0.1", port: env.ECHO });
    const info = await socket.opened;
    return [await exchange(socket, "hello"), info.remoteAddress === "127.0.0.1:" + env.ECHO, socket.secureTransport, socket.upgraded];
  },
  async byText(env) { return exchange(connect("localhost:" + env.ECHO), "hello"); },
  async secure(env) { return exchange(connect("localhost:" + env.ECHO_TLS, { secureTransport: "on" }), "hello"); },
  async starttls(env) {
    const socket = connect("localhost:" + env.MAIL, { secureTransport: "starttls" });
    const reader = socket.readable.getReader();
    const greeting = new TextDecoder().decode((await reader.read()).value);
    const writer = socket.writable.getWriter();
    await writer.write(encoder.encode("STARTTLS\\r\\n"));
    const answer = new TextDecoder().decode((await reader.read()).value);
    reader.releaseLock(); writer.releaseLock();
    const secure = socket.startTls();
    await secure.opened;
    const out = secure.writable.getWriter();
    await out.write(encoder.encode("mail"));
    return [greeting, answer, await text(secure.readable), secure.secureTransport, socket.upgraded];
  },
  async large(env) {
    const socket = connect("127.0.0.1:" + env.ECHO);
    const size = 5_000_000;
    const sending = (async () => {
      const writer = socket.writable.getWriter();
      for (let sent = 0; sent < size; sent += 50_000) await writer.write(new Uint8Array(50_000));
      await writer.close();
    })();
    let got = 0;
    for await (const chunk of socket.readable) got += chunk.byteLength;
    await sending;
    return got === size;
  },
  async refused() {
    const socket = connect("127.0.0.1:1");
    return [await thrown(() => socket.opened), await thrown(() => socket.closed), await thrown(() => socket.readable.getReader().read())];
  },
  async untrusted(env) { return thrown(() => connect("127.0.0.1:" + env.MAIL, { secureTransport: "on" }).opened); },
  async close(env) {
    const socket = connect("127.0.0.1:" + env.ECHO);
    await socket.opened;
    await socket.close();
    return [(await socket.readable.getReader().read()).done, await thrown(() => socket.writable.getWriter().write(new Uint8Array(1)))];
  },
  async arguments(env) {
    return [
      await thrown(() => connect("nonsense")), await thrown(() => connect("a:99999")), await thrown(() => connect({ hostname: "a" })),
      await thrown(() => connect("a:1", { secureTransport: "maybe" })),
      await thrown(() => connect("127.0.0.1:" + env.ECHO).startTls()),
      await thrown(() => connect("127.0.0.1:" + env.ECHO).writable.getWriter().write("text")),
    ];
  },
};
export default { async fetch(request, env) { return Response.json(await tests[new URL(request.url).pathname.slice(1)](env)); } };`,
  }), { env: { SSL_CERT_FILE: cert } });
});
after(async () => {
  await server?.stop();
  for (const s of [echo, echoTls, mail]) s?.close();
});

const ask = async (name) => {
  const response = await fetch(`${server.url}/${name}`, { signal: AbortSignal.timeout(60_000) });
  assert.equal(response.status, 200, server.output);
  return response.json();
};

test("plain sockets carry bytes both ways", async () => {
  assert.deepEqual(await ask("plain"), ["hello", true, "off", false]);
  assert.equal(await ask("byText"), "hello");
});

test("TLS sockets verify and carry bytes", async () => assert.equal(await ask("secure"), "hello"));

test("STARTTLS upgrades a socket", async () => {
  assert.deepEqual(await ask("starttls"), ["220 hello\r\n", "220 go ahead\r\n", "secure mail", "on", true]);
});

test("large transfers wait for whoever is slower", async () => assert.equal(await ask("large"), true));

test("a refused connection rejects opened, closed and reads", async () => {
  for (const error of await ask("refused")) assert.match(error, /^Error: 127\.0\.0\.1:1: no connection: connection refused/);
});

test("TLS to a plain server fails", async () => assert.match(await ask("untrusted"), /^Error: .*TLS failed/));

test("close() ends both sides", async () => {
  const [done, error] = await ask("close");
  assert.equal(done, true);
  assert.match(error, /TypeError: The socket is closed/);
});

test("bad arguments are TypeErrors", async () => {
  for (const error of await ask("arguments")) assert.match(error, /^TypeError: /);
});
