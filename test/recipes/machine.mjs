// Machines with a real systemd: Debian roots that systemd-nspawn starts, each with a network of its own on one bridge. Needs root, debootstrap and
// systemd-nspawn (packages debootstrap, systemd-container, iproute2).
//
// The root that all begin with is made once, in build/recipes/base, with the packages that recipes install in its cache: machines have no way out.
// For the same reason `npx wrangler` there is the wrangler of build/wrangler.
// Each machine has an overlay on it, which goes with the machine.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const out = path.resolve("build/recipes");
const base = path.join(out, "base");

/** What recipes install, beside the package. */
const CACHED = ["libpq5", "postgresql", "nginx", "caddy", "prometheus", "sqlite3", "gcc libc6-dev make pkg-config", "openssh-server openssh-client", "acl"];
/** `served`: what a reader has in another terminal. */
const SERVED = `#!/bin/sh
setsid cairn dev "$@" >/tmp/served 2>&1 </dev/null &
for i in $(seq 300); do grep -q 'ready on' /tmp/served && exit 0; sleep 0.1; done
cat /tmp/served; exit 1
`;
let networks = 0;

/** Why there can be none here; null: there can. */
export function absent() {
  if (process.getuid() !== 0) return "machines need root";
  for (const tool of ["debootstrap", "systemd-nspawn", "ip", "nsenter"])
    if (spawnSync("sh", ["-c", `command -v ${tool}`]).status !== 0) return `${tool} is missing (apt install debootstrap systemd-container iproute2)`;
  return null;
}

function must(program, ...args) {
  const done = spawnSync(program, args, { encoding: "utf8", maxBuffer: 64 << 20 });
  if (done.status !== 0) throw new Error(`${program} ${args.join(" ")}: ${done.stderr || done.stdout || done.error}`);
  return done.stdout;
}

function bootstrap() {
  rmSync(base, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const release = /VERSION_CODENAME=(\S+)/.exec(readFileSync("/etc/os-release", "utf8"))[1];
  const sources = "/etc/apt/sources.list.d", lists = existsSync(sources) ? readdirSync(sources).map((name) => path.join(sources, name)) : [];
  if (existsSync("/etc/apt/sources.list")) lists.push("/etc/apt/sources.list");
  const mirror = /^(?:deb|URIs:) *(?:\[[^\]]*\] *)?(https?:\S+)/m.exec(lists.map((file) => readFileSync(file, "utf8")).join("\n"))?.[1] ?? "http://deb.debian.org/debian";
  must("debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,iproute2,procps,ca-certificates,curl,sudo", release, base, mirror);
  rmSync(path.join(base, "etc/apt/sources.list"), { force: true });
  for (const file of lists) cpSync(file, path.join(base, file));
  cpSync("/etc/apt/apt.conf.d", path.join(base, "etc/apt/apt.conf.d"), { recursive: true });
  cpSync("/etc/resolv.conf", path.join(base, "etc/resolv.conf"));
  writeFileSync(path.join(base, "etc/apt/apt.conf.d/99keep"), 'APT::Keep-Downloaded-Packages "true";\nBinary::apt::APT::Keep-Downloaded-Packages "true";\nAPT::Get::Assume-Yes "true";\n');
  for (const file of readdirSync(path.join(base, "etc/apt/apt.conf.d"))) if (/docker|clean/.test(file)) rmSync(path.join(base, "etc/apt/apt.conf.d", file));
}

/** Makes the root that machines begin with: systemd, and in its cache what recipes install. */
export function prepare() {
  const ready = path.join(base, "ready");
  if (existsSync(ready) && readFileSync(ready, "utf8") === `${CACHED}`) return;
  if (!existsSync(ready)) bootstrap();
  // What the package asks for is downloaded with it (download()), the rest here.
  inBase("apt-get update -qq");
  for (const names of CACHED) inBase(`apt-get install -qq --download-only ${names}`);
  cpSync(process.execPath, path.join(base, "usr/local/bin/node"));
  mkdirSync(path.join(base, "usr/local/lib/wrangler"), { recursive: true });
  must("cp", "-aT", "build/wrangler/node_modules", path.join(base, "usr/local/lib/wrangler/node_modules"));
  writeFileSync(path.join(base, "usr/local/bin/npx"), '#!/bin/sh\n[ "$1" = wrangler ] && shift && exec node /usr/local/lib/wrangler/node_modules/wrangler/bin/wrangler.js "$@"\n', { mode: 0o755 });
  writeFileSync(path.join(base, "usr/local/bin/served"), SERVED, { mode: 0o755 });
  writeFileSync(ready, `${CACHED}`);
}

function inBase(script) {
  must("systemd-nspawn", "-q", "-D", base, "--register=no", "--keep-unit", "--pipe", "sh", "-ec", `export DEBIAN_FRONTEND=noninteractive; ${script}`);
}

/** Brings what a package needs into the cache. */
export function download(deb) {
  cpSync(deb, path.join(base, "package.deb"));
  inBase("apt-get install -qq --download-only /package.deb; rm /package.deb");
}

/** A bridge that machines are on, in a network namespace of its own: nothing of this host is reached by it. */
export class Network {
  constructor() {
    this.name = `cairn-recipes-${process.pid}-${++networks}`;
    must("ip", "netns", "add", this.name);
    must("ip", "-n", this.name, "link", "add", "bridge", "type", "bridge");
    must("ip", "-n", this.name, "link", "set", "bridge", "up");
    this.count = 0;
  }

  /** A namespace with this address; its name. */
  join(address) {
    const name = `${this.name}-${++this.count}`, port = `port${this.count}`;
    must("ip", "netns", "add", name);
    must("ip", "-n", this.name, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name);
    must("ip", "-n", this.name, "link", "set", port, "master", "bridge", "up");
    must("ip", "-n", name, "addr", "add", `${address}/24`, "dev", "eth0");
    for (const link of ["lo", "eth0"]) must("ip", "-n", name, "link", "set", link, "up");
    return name;
  }

  close() {
    for (let i = 1; i <= this.count; i++) spawnSync("ip", ["netns", "del", `${this.name}-${i}`]);
    spawnSync("ip", ["netns", "del", this.name]);
  }
}

export class Machine {
  /** Those that run. */
  static all = new Set();

  /** Starts it; resolves when its systemd has. */
  static async start(network, name, address) {
    const machine = new Machine();
    Object.assign(machine, { name, address, folder: mkdtempSync(path.join(out, `${name}-`)), output: "", said: "" });
    must("mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", machine.folder); // what packages sync goes to no disk
    for (const each of ["upper", "work", "root"]) mkdirSync(path.join(machine.folder, each));
    machine.root = path.join(machine.folder, "root");
    must("mount", "-t", "overlay", "overlay", "-o", `lowerdir=${base},upperdir=${machine.folder}/upper,workdir=${machine.folder}/work`, machine.root);
    rmSync(path.join(machine.root, "ready"));
    writeFileSync(path.join(machine.root, "root/.curlrc"), "silent\nshow-error\n"); // there is no terminal to draw a bar on
    writeFileSync(path.join(machine.root, "etc/hostname"), `${name}\n`);
    writeFileSync(path.join(machine.root, "etc/hosts"), `127.0.0.1 localhost\n127.0.1.1 ${name}\n`);
    // All system calls are the machine's own to filter: what a unit refuses must be what its recipe refuses.
    const args = ["-q", "-D", machine.root, "--boot", "--register=no", "--keep-unit", `--machine=${name}-${process.pid}`, "--console=pipe", "--system-call-filter=@known",
      `--network-namespace-path=/run/netns/${network.join(address)}`];
    machine.child = spawn("systemd-nspawn", args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    for (const stream of [machine.child.stdout, machine.child.stderr]) stream.on("data", (bytes) => (machine.output += bytes));
    machine.ended = new Promise((resolve) => machine.child.on("exit", resolve));
    for (let i = 0; i < 1500 && machine.child.exitCode === null; i++) { // its child may be one of nspawn's own at first
      machine.leader = readFileSync(`/proc/${machine.child.pid}/task/${machine.child.pid}/children`, "utf8").trim().split(" ")[0] || undefined;
      const state = machine.leader && (await machine.run("systemctl is-system-running")).stdout.trim();
      if (state === "running" || state === "degraded") {
        Machine.all.add(machine);
        return machine;
      }
      await sleep(200);
    }
    await machine.stop();
    throw new Error(`${name} does not start: ${machine.output}`);
  }

  /** Runs a script of bash in it, as root: {code, stdout, stderr}. */
  run(script, { seconds = 180, env = {} } = {}) {
    const child = this.spawn(script, { seconds, env });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
    return new Promise((resolve) => child.on("close", (code) => resolve({ ...result, code })));
  }

  spawn(script, { seconds = 180, env = {}, serves = false }) {
    const variables = Object.entries({ PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive", ...env }).map(([key, value]) => `${key}=${value}`);
    return spawn("nsenter", ["-t", this.leader, "-a", "env", "-i", "-C", "/root", ...variables, ...(serves ? ["setsid", "-w"] : ["timeout", String(seconds)]), "bash", "-ec", script], { stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Runs one that does not end, until it says that it is ready; what it says goes on into `said`. */
  async serve(script, seconds = 300) {
    await this.interrupt();
    this.said = "";
    this.serving = this.spawn(`echo $$ >/run/recipe.pid\n${script}`, { serves: true });
    for (const stream of [this.serving.stdout, this.serving.stderr]) stream.setEncoding("utf8").on("data", (text) => (this.said += text));
    const ended = new Promise((resolve) => this.serving.on("close", resolve));
    this.serving.over = ended;
    for (let i = 0; i < seconds * 10 && this.serving.exitCode === null; i++) {
      if (/ready on/.test(this.said)) return { code: 0, stdout: this.said, stderr: "" };
      await Promise.race([ended, sleep(100)]);
    }
    return { code: 1, stdout: this.said, stderr: "it has not said that it is ready" };
  }

  /** Ctrl-C for what serves. */
  async interrupt() {
    if (!this.serving) return;
    await this.run("kill -INT -- -$(cat /run/recipe.pid) || true");
    await this.serving.over;
    this.serving = null;
  }

  /** Where the page's shell is. */
  async cwd() {
    return (await this.run("[ ! -f /run/recipe.shell ] || . /run/recipe.shell; pwd")).stdout.trim();
  }

  async stop() {
    Machine.all.delete(this);
    if (this.leader && this.child.exitCode === null) process.kill(this.leader, "SIGKILL"); // its first process: all others go with it
    await this.ended;
    for (const each of [this.root, this.folder]) spawnSync("umount", ["-l", each]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
