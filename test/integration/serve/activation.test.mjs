// A service manager's side of the bargain: a listening socket that is passed (LISTEN_FDS), and what
// the server says of itself (NOTIFY_SOCKET).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { Server, cairn, project, raw, tempDir } from "../lib/server.mjs";

const dir = project({ "index.js": 'export default { fetch() { return new Response("hello"); } };' });

/** Runs `cairn serve` with these sockets as descriptors 3, 4, ... */
function activate(listeners, env = {}) {
  // LISTEN_PID is known only to the process itself: a shell that becomes cairn.
  const child = spawn("/bin/sh", ["-c", `LISTEN_PID=$$ exec ${cairn} serve ${dir} --lanes 2 --data ${tempDir()}`], {
    stdio: ["ignore", "pipe", "pipe", ...listeners],
    env: { ...process.env, CAIRN_ADMIN: "off", LISTEN_FDS: String(listeners.length), LISTEN_FDNAMES: "http", ...env },
  });
  return new Server(child);
}

function listen() {
  return new Promise((resolve) => {
    const listener = net.createServer().listen(0, "127.0.0.1", () => resolve(listener));
  });
}

test("serves on the socket that was passed, and leaves it open for the next", async (t) => {
  // The manager: it listens, never accepts, and starts one server after the other. (Node.js would
  // accept; Perl is on every Debian.)
  const manager = `use Socket; use POSIX; $^F = 9;
    socket(S, PF_INET, SOCK_STREAM, 0) or die; bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die; listen(S, 100) or die;
    POSIX::dup2(fileno(S), 3);
    for (1, 2) {
      my $pid = fork();
      if (!$pid) { $ENV{LISTEN_PID} = $$; $ENV{LISTEN_FDS} = 1; exec @ARGV; }
      print STDERR "server $pid\n";
      waitpid($pid, 0);
      print STDERR "ended with $?\n";
    }`;
  const child = spawn("perl", ["-e", manager, cairn, "serve", dir, "--lanes", "2", "--data", tempDir()], {
    stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_ADMIN: "off" },
  });
  const server = new Server(child);
  t.after(() => server.kill());
  const ask = async () => {
    // Connections of their own: none is left over from the server before.
    const get = () => raw(server.port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (const answer of await Promise.all(Array.from({ length: 20 }, get))) assert.match(answer, /^HTTP\/1.1 200 [^]*hello$/);
  };
  await server.ready;
  await ask();
  process.kill(Number((await server.until(/^server (\d+)$/m))[1]), "SIGTERM");
  await server.until(/^ended with 0$/m);
  await ask(); // connections waited for the next one
  process.kill(Number((await server.until(/ended with 0[^]*^server (\d+)$/m))[1]), "SIGTERM");
  await server.until(/ended with 0[^]*ended with 0/);
});

test("two sockets, or what is no listening socket, are refused", async () => {
  const one = await listen(), two = await listen();
  await assert.rejects(activate([one._handle, two._handle]).ready, /passed 2 sockets: one is taken/);
  await assert.rejects(activate(["pipe"]).ready, /no listening TCP socket/);
  one.close();
  two.close();
});

test("sockets for another process are not ours", async (t) => {
  const child = spawn(cairn, ["serve", dir, "--listen", "127.0.0.1:0", "--data", tempDir()], {
    stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_ADMIN: "off", LISTEN_PID: "1", LISTEN_FDS: "1" },
  });
  const server = new Server(child);
  t.after(() => server.kill());
  await server.ready;
  assert.equal(await server.text("/"), "hello");
  await server.stop();
});

test("tells READY, RELOADING and STOPPING", async (t) => {
  const socket = path.join(tempDir(), "notify");
  // Node.js has no datagram sockets of this kind.
  const program = `use Socket; $| = 1;
    socket(S, PF_UNIX, SOCK_DGRAM, 0) or die; bind(S, sockaddr_un($ARGV[0])) or die; print "bound\\n";
    while (1) { recv(S, my $text, 4096, 0); $text =~ tr/\\n/ /; print "$text\\n"; }`;
  const manager = spawn("perl", ["-e", program, socket], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => manager.kill());
  let said = "";
  manager.stdout.setEncoding("utf8").on("data", (text) => { said += text; });
  const until = async (pattern) => {
    for (const deadline = Date.now() + 60_000; !pattern.test(said); await new Promise((resolve) => { setTimeout(resolve, 10); }))
      if (Date.now() > deadline) throw new Error(`${pattern} was not said: ${said}`);
  };
  await until(/bound/);
  const listener = await listen();
  const server = activate([listener._handle], { NOTIFY_SOCKET: socket });
  t.after(() => server.kill());
  await until(/^READY=1$/m);
  server.signal("SIGHUP");
  await until(/^RELOADING=1 MONOTONIC_USEC=\d+\nREADY=1$/m);
  await server.stop();
  await until(/^STOPPING=1$/m);
  listener.close();
});
