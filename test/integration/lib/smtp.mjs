// A mail server for tests: speaks as much SMTP as they need and keeps what it was given.
import net from "node:net";
import tls from "node:tls";

/**
 * @param {object} [how]
 *   secure    TLS from the first byte: {key, cert}
 *   starttls  offered: {key, cert}
 *   auth      "PLAIN" or "LOGIN": offered, for user "me" and password "secret"
 *   answer    (command, session) => text instead of the usual answer; null: none at all; "close": the connection is closed
 *   size      the SIZE it tells
 */
export async function mailServer(t, how = {}) {
  const messages = [];
  const sockets = new Set();
  let connections = 0, busy = 0, most = 0; // busy: those whose message has not been taken
  const serve = (socket) => {
    connections++;
    sockets.add(socket);
    most = Math.max(most, ++busy);
    const session = { secure: how.secure !== undefined, over: () => { busy--; session.over = () => {}; } };
    socket.on("close", () => { sockets.delete(socket); session.over(); }).on("error", () => {});
    talk(socket, session);
  };
  function talk(socket, session) {
    let text = "";
    let data = null;
    let login = null;
    const say = (line) => socket.write(`${line}\r\n`);
    const custom = (command) => {
      const answer = how.answer?.(command, session);
      if (answer === undefined) return false;
      if (answer === "close") socket.destroy();
      else if (answer !== null) say(answer);
      return true;
    };
    if (!session.again && !custom("CONNECT")) say("220 test ESMTP");
    const command = (line) => {
      session.commands = [...(session.commands ?? []), line];
      if (login !== null) {
        login.push(Buffer.from(line, "base64").toString());
        if (login.length === 1) return say("334 UGFzc3dvcmQ6");
        const ok = login.join() === "me,secret";
        login = null;
        session.user = ok ? "me" : null;
        return say(ok ? "235 welcome" : "535 5.7.8 no");
      }
      const name = line.split(/[ :]/)[0].toUpperCase();
      if (custom(line)) {
        if (name === "DATA") data = [];
        return;
      }
      if (name === "EHLO") {
        const able = ["test", "8BITMIME", `SIZE ${how.size ?? 0}`, "SMTPUTF8"];
        if (how.starttls && !session.secure) able.push("STARTTLS");
        if (how.auth) able.push(`AUTH ${how.auth}`);
        return socket.write(able.map((each, i) => `250${i === able.length - 1 ? " " : "-"}${each}\r\n`).join(""));
      }
      if (name === "STARTTLS") {
        socket.write(`220 go ahead\r\n${how.injects ?? ""}`, () => {
          socket.removeAllListeners("data");
          const upgraded = new tls.TLSSocket(socket, { isServer: true, ...how.starttls });
          upgraded.on("error", () => {});
          talk(upgraded, { secure: true, again: true, over: session.over });
        });
        return;
      }
      if (name === "AUTH") {
        if (/^AUTH LOGIN$/i.test(line)) {
          login = [];
          return say("334 VXNlcm5hbWU6");
        }
        const ok = Buffer.from(line.split(" ")[2] ?? "", "base64").toString() === "\0me\0secret";
        session.user = ok ? "me" : null;
        return say(ok ? "235 welcome" : "535 5.7.8 no");
      }
      if (name === "MAIL") {
        session.from = line;
        session.to = [];
      }
      if (name === "RCPT") session.to.push(line);
      if (name === "DATA") {
        data = [];
        return say("354 go on");
      }
      if (name === "QUIT") {
        say("221 bye");
        return socket.end();
      }
      say("250 ok");
    };
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      for (let end; (end = text.indexOf("\r\n")) >= 0; ) {
        const line = text.slice(0, end);
        text = text.slice(end + 2);
        if (data === null) {
          command(line);
        } else if (line === ".") {
          const message = { from: session.from, to: session.to, user: session.user ?? null, secure: session.secure, commands: session.commands, lines: data, text: data.join("\r\n") };
          data = null;
          if (!custom(".")) {
            messages.push(message);
            session.over();
            say("250 queued");
          }
        } else {
          data.push(line.startsWith(".") ? line.slice(1) : line);
          if (/[\r\n]/.test(line)) messages.push({ smuggled: line });
        }
      }
    });
  }
  const server = how.secure ? tls.createServer(how.secure, serve) : net.createServer(serve);
  server.on("tlsClientError", () => {});
  await new Promise((ok) => server.listen(0, "127.0.0.1", ok));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  t.after(close);
  return { port: server.address().port, messages, close, get connections() { return connections; }, get most() { return most; } };
}
