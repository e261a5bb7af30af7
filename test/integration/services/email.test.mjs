// send_email by SMTP. S1 to S5 of prelude/workers/service/email-smtp.js, M1 and M2 of email-mime.js beside it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { project, run, serve } from "../lib/cairn.mjs";
import { mailServer } from "../lib/smtp.mjs";

const code = `
import { EmailMessage } from "cloudflare:email";
const told = async (work) => { try { return await work(); } catch (e) { return e.code === undefined ? e.name + ": " + e.message : e.code + ": " + e.message; } };
const raw = (from, body, more = "") => "From: Me <" + from + ">\\r\\nTo: you@example.com\\r\\nMessage-ID: <1@example.com>\\r\\n" + more + "Subject: s\\r\\n\\r\\n" + body;
const stream = (text, pieces) => new ReadableStream({ start(c) { const b = new TextEncoder().encode(text); for (let i = 0; i < b.length; i += pieces) c.enqueue(b.slice(i, i + pieces)); c.close(); } });
const me = "me@example.com", you = "you@example.com";
const plain = { from: me, to: you, subject: "Hello", text: "hi" };
const calls = {
  plain: ({ EMAIL }) => EMAIL.send(plain),
  raw: ({ EMAIL }) => EMAIL.send(new EmailMessage(me, you, raw(me, ".\\r\\n..\\r\\n.hidden\\r\\nQUIT\\r\\na\\nb\\rc\\n.\\nRCPT TO:<x@y>\\r\\n\\r\\nend"))),
  stream: ({ EMAIL }) => EMAIL.send(new EmailMessage(me, you, stream(raw(me, "x\\r\\n.\\r\\ny\\r\\n"), 1))),
  full: ({ EMAIL }) => EMAIL.send({ from: { email: me, name: 'Jürgen "J" Öß' }, to: ["A B <a@example.com>", you], cc: "c@example.com", bcc: ["d@example.com"], replyTo: { email: "r@example.com", name: "R" },
    subject: "Grüße ".repeat(20), text: "täxt\\n.\\nend", html: "<p>hü</p>", headers: { "X-One": "1", "List-Unsubscribe": "<https://example.com>" },
    attachments: [{ content: btoa("file content"), filename: "a b.txt", type: "text/plain", disposition: "attachment" }, { content: new Uint8Array(300).fill(7), filename: "ü.png", type: "image/png", disposition: "inline", contentId: "pic" }] }),
  many: async ({ EMAIL }) => (await Promise.all(Array.from({ length: 50 }, (_, i) => EMAIL.send({ ...plain, subject: "n" + i })))).length,
  flood: async ({ EMAIL }) => { const all = await Promise.allSettled(Array.from({ length: 300 }, () => EMAIL.send(plain))); return [...new Set(all.map((r) => r.reason?.code ?? "sent"))].sort(); },
  big: ({ EMAIL }) => EMAIL.send({ ...plain, text: "x".repeat(26 << 20) }),
  bigRaw: ({ EMAIL }) => EMAIL.send(new EmailMessage(me, you, stream(raw(me, "x".repeat(26 << 20)), 1 << 20))),
  large: ({ EMAIL }) => EMAIL.send({ ...plain, attachments: [{ content: new Uint8Array(3 << 20), filename: "z", type: "a/b", disposition: "attachment" }] }),
  async bad({ EMAIL }) {
    const out = [];
    for (const fields of [{ to: "a@b\\r\\nRCPT TO:<x@y.z>" }, { to: "a@b>\\r\\nDATA" }, { from: "no address" }, { to: "a@b, c@d" }, { to: "" }, { from: { email: me, name: "x\\r\\nBcc: y@z.a" } }, { subject: "a\\r\\nBcc: y@z.a" },
      { headers: { "X-A": "1\\r\\nBcc: y@z.a" } }, { headers: { "X-A\\r\\nBcc": "y@z.a" } }, { headers: { bcc: "y@z.a" } }, { headers: { "Message-ID": "<a@b>" } }, { headers: { "X-A": "y".repeat(3000) } },
      { attachments: [{ content: "AAAA", filename: "a\\r\\nX: y", type: "a/b" }] }, { attachments: [{ content: "AAAA", filename: "a", type: "a/b\\r\\nX: y" }] }, { attachments: [{ content: "?", filename: "a", type: "a/b" }] },
      { attachments: [{ content: "AAAA", filename: "a", type: "a/b", disposition: "inline", contentId: "a>\\r\\nX: y" }] },
      { to: Array(51).fill(you) }, { attachments: Array(33).fill({ content: "AAAA", filename: "a", type: "a/b" }) }, { text: undefined }, { subject: undefined }, { replyTo: "a\\nb@c" }]) out.push(await told(() => EMAIL.send({ ...plain, ...fields })));
    for (const message of [[me, you, raw("other@example.com", "x")], [me, you, raw(me, "x", "Received: by x\\r\\n")], [me, you, "From: " + me + "\\r\\n\\r\\nx"], [me, you, "no header\\r\\n\\r\\nx"], [me + "\\r\\nX", you, raw(me, "x")], [me, you, raw(me, "x", "From: a@b.c\\r\\n")]]) out.push(await told(() => EMAIL.send(new EmailMessage(...message))));
    out.push(await told(() => EMAIL.send()), await told(() => EMAIL.send("x")));
    return out;
  },
  async limits({ ONE, SOME, SENDER }) {
    return [await told(() => ONE.send({ ...plain, to: undefined })), await told(() => ONE.send(new EmailMessage(me, null, raw(me, "x")))), await told(() => ONE.send(plain)), await told(() => ONE.send({ ...plain, to: "one@example.com", bcc: you })),
      await told(() => SOME.send({ ...plain, to: ["a@example.com", "b@example.com"] })), await told(() => SOME.send({ ...plain, to: "a@example.com", cc: you })), await told(() => SENDER.send(plain)), await told(() => SENDER.send({ ...plain, from: "s@example.com" }))];
  },
};
export default { async fetch(request, env) {
  const name = new URL(request.url).pathname.slice(1);
  if (name === "ping") return new Response("pong");
  return Response.json((await told(() => calls[name](env))) ?? null);
} };`;

const config = (email, more = "") => `name = "w"
main = "index.js"
compatibility_date = "2026-01-01"
${more}
[[send_email]]
name = "EMAIL"
${email === null ? "" : `[cairn.email]\n${email}`}`;
const start = (t, email, { more, command, env } = {}) => serve(t, project(t, { "wrangler.toml": config(email, more), "index.js": code }), { command, env });
const ask = async (server, name) => (await server.fetch(`/${name}`)).json();
const to = (mail, more = "") => `url = "smtp://127.0.0.1:${mail.port}"\n${more}`;

/** A key and a certificate for 127.0.0.1 that signs itself. */
function certificate(t) {
  const dir = mkdtempSync(path.join(os.tmpdir(), "cairn-mail-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const [key, cert] = [path.join(dir, "key.pem"), path.join(dir, "cert.pem")];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1",
    "-addext", "subjectAltName=IP:127.0.0.1"], { stdio: "ignore" });
  return { file: cert, pair: { key: readFileSync(key), cert: readFileSync(cert) } };
}

test("a message of fields arrives whole, and the answer names it", async (t) => {
  const mail = await mailServer(t);
  const server = await start(t, to(mail));
  const { messageId } = await ask(server, "plain");
  assert.match(messageId, /^<\w+@example\.com>$/);
  const [message] = mail.messages;
  assert.match(message.from, /^MAIL FROM:<me@example\.com> SIZE=\d+ BODY=8BITMIME$/);
  assert.deepEqual(message.to, ["RCPT TO:<you@example.com>"]);
  const [head, body] = message.text.split("\r\n\r\n");
  assert.match(head, /^From: me@example\.com\r\nTo: you@example\.com\r\nSubject: Hello\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\r\nMessage-ID: <\w+@example\.com>\r\nMIME-Version: 1\.0\r\nContent-Type: text\/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit$/);
  assert.ok(head.includes(messageId));
  assert.equal(body, "hi");
});

test("S5, M2: dots, lines alone and commands in a message are its text", async (t) => {
  const mail = await mailServer(t);
  const server = await start(t, to(mail));
  assert.deepEqual(await ask(server, "raw"), { messageId: "<1@example.com>" });
  assert.deepEqual(await ask(server, "stream"), { messageId: "<1@example.com>" });
  assert.equal(mail.messages.length, 2);
  const [first, second] = mail.messages;
  assert.deepEqual(first.lines.slice(5), [".", "..", ".hidden", "QUIT", "a", "b", "c", ".", "RCPT TO:<x@y>", "", "end"]);
  assert.deepEqual(second.lines.slice(5), ["x", ".", "y"]);
  assert.equal(mail.connections, 2);
});

test("names, encodings, alternatives and attachments", async (t) => {
  const mail = await mailServer(t);
  const server = await start(t, to(mail));
  assert.match((await ask(server, "full")).messageId, /^</);
  const [message] = mail.messages;
  assert.deepEqual(message.to.map((line) => /<(.)/.exec(line)[1]), ["a", "y", "c", "d"]);
  const { text, lines } = message;
  assert.ok(!/[\s<,"]d@example/.test(text), "bcc is not in the message");
  assert.ok(lines.every((line) => line.length <= 78 && /^[\x20-\x7e\t]*$/.test(line)), lines.find((line) => line.length > 78));
  const words = (value) => value.replace(/\r\n /g, " ").replace(/\?= =\?/g, "?==?").replace(/=\?utf-8\?B\?([^?]*)\?=/g, (_, b) => Buffer.from(b, "base64").toString());
  const head = text.slice(0, text.indexOf("\r\n\r\n"));
  const field = (name) => words(new RegExp(`^${name}: ((?:.*)(?:\\r\\n .*)*)`, "m").exec(head)[1]);
  assert.equal(field("From"), 'Jürgen "J" Öß <me@example.com>');
  assert.equal(field("To"), '"A B" <a@example.com>, you@example.com');
  assert.equal(field("Subject"), "Grüße ".repeat(20));
  assert.equal(field("Reply-To"), '"R" <r@example.com>');
  assert.equal(field("X-One"), "1");
  assert.deepEqual([...text.matchAll(/Content-Type: (\S+?);?\s/g)].map((m) => m[1]), ["multipart/mixed", "multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png", "text/plain"]);
  const bodies = [...text.matchAll(/Transfer-Encoding: base64(?:\r\n\S.*|\r\n .*)*\r\n\r\n([A-Za-z0-9+/=\r\n]*)/g)].map((m) => Buffer.from(m[1], "base64"));
  assert.deepEqual(bodies.map((b) => b.toString("latin1").slice(0, 12)), ["t\xc3\xa4xt\r\n.\r\nen", "<p>h\xc3\xbc</p>", "\x07".repeat(12), "file content"]);
  assert.equal(bodies[2].length, 300);
  assert.match(text, /filename="a b\.txt"/);
  assert.match(text, /filename\*=utf-8''%C3%BC\.png\r\nContent-ID: <pic>/);
});

test("M1: nothing that could be two lines, or two addresses, is sent", async (t) => {
  const mail = await mailServer(t);
  const server = await start(t, to(mail));
  const answers = await ask(server, "bad");
  const codes = answers.map((text) => text.split(": ")[0]);
  assert.deepEqual(codes, [...Array(7).fill("E_VALIDATION_ERROR"), "E_HEADER_VALUE_INVALID", "E_HEADER_NAME_INVALID", "E_HEADER_USE_API_FIELD", "E_HEADER_NOT_ALLOWED", "E_HEADER_VALUE_TOO_LONG",
    ...Array(4).fill("E_VALIDATION_ERROR"), "E_TOO_MANY_RECIPIENTS", "E_TOO_MANY_ATTACHMENTS", "E_FIELD_MISSING", "E_FIELD_MISSING", "E_VALIDATION_ERROR", ...Array(6).fill("E_VALIDATION_ERROR"), "TypeError", "TypeError"]);
  assert.match(answers[21], /From: header does not match mail from/);
  assert.match(answers[22], /invalid headers set/);
  assert.match(answers[23], /invalid message-id/);
  assert.match(answers[24], /could not parse email/);
  assert.equal(mail.connections, 0);
});

test("a message past 25 MiB is refused, one of some goes through", async (t) => {
  const mail = await mailServer(t, { size: 50 << 20 });
  const server = await start(t, to(mail));
  assert.match(await ask(server, "big"), /^E_CONTENT_TOO_LARGE: /);
  assert.match(await ask(server, "bigRaw"), /^E_CONTENT_TOO_LARGE: /);
  assert.equal(mail.connections, 0);
  assert.match((await ask(server, "large")).messageId, /^</);
  assert.ok(mail.messages[0].text.length > 4 << 20);
});

test("addresses that a binding does not allow are refused, copies too", async (t) => {
  const mail = await mailServer(t);
  const more = `[[send_email]]\nname = "ONE"\ndestination_address = "one@example.com"\n[[send_email]]\nname = "SOME"\nallowed_destination_addresses = ["a@example.com", "b@example.com"]\n[[send_email]]\nname = "SENDER"\nallowed_sender_addresses = ["s@example.com"]`;
  const server = await start(t, to(mail), { more });
  const [one, oneRaw, other, bcc, some, cc, sender, allowed] = await ask(server, "limits");
  for (const answer of [one, oneRaw, some, allowed]) assert.match(answer.messageId ?? answer, /^</);
  assert.deepEqual([other, bcc, cc], Array(3).fill("E_RECIPIENT_NOT_ALLOWED: email to you@example.com not allowed"));
  assert.equal(sender, "E_SENDER_NOT_VERIFIED: email from me@example.com not allowed");
  assert.deepEqual(mail.messages.flatMap((m) => m.to), ["one", "one", "a", "b", "you"].map((n) => `RCPT TO:<${n}@example.com>`));
});

test("S1, S2: a refusal says what the server said, and nothing is sent", async (t) => {
  let refuse = /^RCPT/;
  const mail = await mailServer(t, { answer: (command) => (refuse.test(command) ? "550 5.1.1 no such \x07user" : undefined) });
  const server = await start(t, to(mail));
  for (const [pattern] of [[/^RCPT/], [/^MAIL/], [/^DATA/], [/^\.$/], [/^EHLO/], [/^CONNECT/]]) {
    refuse = pattern;
    assert.match(await ask(server, "plain"), /^E_DELIVERY_FAILED: 127\.0\.0\.1:\d+: 550 5\.1\.1 no such \?user$/, String(pattern));
  }
  assert.equal(mail.messages.length, 0);
  refuse = /^never$/;
  assert.match((await ask(server, "plain")).messageId, /^</);
});

test("S1: a server that closes in the middle, or says nothing, fails the message; the lane goes on", async (t) => {
  let at = /^CONNECT/, answer = "close";
  const mail = await mailServer(t, { answer: (command) => (at.test(command) ? answer : undefined) });
  const server = await start(t, to(mail, "timeout_ms = 500"));
  for (at of [/^CONNECT/, /^EHLO/, /^MAIL/, /^RCPT/, /^DATA/, /^\.$/]) {
    answer = "close";
    assert.match(await ask(server, "plain"), /^E_DELIVERY_FAILED: /, String(at));
    answer = null;
    const slow = ask(server, "plain");
    assert.equal(await server.text("/ping"), "pong");
    assert.match(await slow, /no answer within 500 ms/, String(at));
  }
  at = /^EHLO/;
  for (answer of ["250 " + "x".repeat(10000), "what?", "99 no"]) assert.match(await ask(server, "plain"), /^E_DELIVERY_FAILED: /);
  mail.close();
  assert.match(await ask(server, "plain"), /^E_DELIVERY_FAILED: /);
  assert.equal(mail.messages.length, 0);
});

test("STARTTLS, TLS from the start, and signing in", async (t) => {
  const { file, pair } = certificate(t);
  const env = { SSL_CERT_FILE: file, CAIRN_EMAIL_PASSWORD: "secret" };
  for (const [how, url, auth] of [[{ starttls: pair }, "smtp", "PLAIN"], [{ starttls: pair }, "smtp", "LOGIN"], [{ secure: pair }, "smtps", "PLAIN LOGIN"]]) {
    const mail = await mailServer(t, { ...how, auth });
    const server = await start(t, `url = "${url}://127.0.0.1:${mail.port}"\nuser = "me"`, { env });
    const answer = await ask(server, "plain");
    assert.match(answer.messageId ?? answer, /^</, `${url} ${auth}`);
    assert.deepEqual([mail.messages[0].secure, mail.messages[0].user], [true, "me"]);
    await server.stop();
  }
  // A secret of the project instead, and a wrong one.
  const mail = await mailServer(t, { starttls: pair, auth: "PLAIN" });
  const server = await start(t, `${to(mail)}user = "me"\npassword = "MAIL_PASSWORD"`, { more: '[vars]\nMAIL_PASSWORD = "wrong"', env: { SSL_CERT_FILE: file } });
  assert.match(await ask(server, "plain"), /^E_DELIVERY_FAILED: .*535 5\.7\.8 no$/);
});

test("S3, S4: no TLS, no password; nothing that came before TLS is believed; strangers' certificates are not", async (t) => {
  const { file, pair } = certificate(t);
  const plain = await mailServer(t, { auth: "PLAIN" });
  const env = { SSL_CERT_FILE: file, CAIRN_EMAIL_PASSWORD: "secret" };
  const one = await start(t, `${to(plain)}user = "me"`, { env });
  assert.match(await ask(one, "plain"), /does not offer STARTTLS/);
  const two = await start(t, `${to(plain)}starttls = "required"`);
  assert.match(await ask(two, "plain"), /does not offer STARTTLS/);
  const injecting = await mailServer(t, { starttls: pair, injects: "250 injected\r\n" });
  const three = await start(t, to(injecting), { env });
  assert.match(await ask(three, "plain"), /more than the answer to STARTTLS/);
  const stranger = await mailServer(t, { starttls: pair });
  const four = await start(t, to(stranger));
  assert.match(await ask(four, "plain"), /^E_DELIVERY_FAILED: /);
  const never = await start(t, `${to(stranger)}starttls = "never"`);
  assert.match((await ask(never, "plain")).messageId, /^</);
  for (const mail of [plain, injecting]) assert.equal(mail.messages.length, 0);
});

test("many at once: so many connections, the rest waits, past a bound it is refused", async (t) => {
  const mail = await mailServer(t);
  const server = await start(t, to(mail));
  assert.equal(await ask(server, "many"), 50);
  assert.equal(new Set(mail.messages.map((m) => /Subject: (\S+)/.exec(m.text)[1])).size, 50);
  assert.ok(mail.most <= 16, `${mail.most} connections`);
  assert.deepEqual(await ask(server, "flood"), ["E_RATE_LIMIT_EXCEEDED", "sent"]);
});

test("a reload in the middle: the message goes on, and the new code sends to the new server", async (t) => {
  let held = null;
  const slow = await mailServer(t, { answer: (command, session) => (command === "." && held === null ? ((held = session), null) : undefined) });
  const server = await start(t, to(slow, "timeout_ms = 20000"));
  const first = ask(server, "plain");
  await server.untilTrue(() => held !== null, "the message", 30_000);
  server.signal("SIGHUP");
  await server.reloaded();
  assert.match((await ask(server, "plain")).messageId, /^</);
  slow.close();
  assert.match(await first, /^E_DELIVERY_FAILED: .*closed/);
});

test("without [cairn.email]: a sentence in serve; in dev the message is kept in a file", async (t) => {
  const server = await start(t, null);
  assert.match(await ask(server, "plain"), /^Error: env\.EMAIL leads nowhere: .*\[cairn\.email\] url/);
  const dev = await start(t, null, { command: "dev" });
  const { messageId } = await ask(dev, "plain");
  const [, file] = await dev.until(/env\.EMAIL\.send\(\): from me@example\.com to you@example\.com, \d+ bytes; written to (\S+\.eml)/);
  assert.ok(readFileSync(file, "latin1").includes(messageId));
  assert.equal(readdirSync(path.dirname(file)).length, 1);
});

test("what is wrong in the configuration is told", (t) => {
  const cwd = project(t, { "wrangler.toml": config(null), "index.js": code });
  for (const [email, text] of [['url = "http://x"', /url must be smtp:/], ['url = "smtp://u:p@x"', /url must be smtp:/], ['url = "smtp://x:99999"', /url must be smtp:/], ['url = "smtp://x"\nuser = "me"', /a user needs a password/],
    ['url = "smtp://x"\nuser = "me"\npassword = "NONE"', /no variable or secret named NONE/], ['url = "smtp://x"\nuser = "me"\nstarttls = "never"', /not sent without TLS/], ['user = "me"', /url/], ['url = "smtp://x"\nstarttls = "maybe"', /starttls/]]) {
    writeFileSync(path.join(cwd, "wrangler.toml"), config(email));
    const { status, stderr } = run(["serve", ".", "--listen", "127.0.0.1:0"], { cwd });
    assert.notEqual(status, 0, email);
    assert.match(stderr, text, email);
  }
});
