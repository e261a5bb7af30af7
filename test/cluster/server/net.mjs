// Machines for a test: network namespaces that are joined by a hub, in which this process is. What goes between two of them can be cut, in one
// direction or both, while clients (here) still reach each.
//
//     place a            hub (this process, clients)            place pg0
//     10.77.1.2  ──veth── 10.77.1.1 forwards 10.77.9.1 ──veth── 10.77.9.2
//
// Namespaces have no names and processes a pid namespace of their own, so all of it goes when the process goes that began it, whatever ends that:
// nothing is left on the machine. inside() runs the program anew in there; it needs root, iproute2 and util-linux, and says what is missing.
import { spawn, spawnSync } from "node:child_process";
import { readlinkSync, rmSync, writeFileSync } from "node:fs";

const MARK = "CAIRN_TEST_HUB";

/** Whether this process is in a hub of its own. */
export const inHub = process.env[MARK] === "1";

/** Why there can be none, or false. */
export function noHub() {
  if (process.getuid() !== 0) return "network namespaces need root";
  if (spawnSync("ip", ["-V"]).error) return "the package iproute2 is missing";
  const tried = spawnSync("unshare", ["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "ip", "link", "add", "x0", "type", "veth", "peer", "name", "x1"], { encoding: "utf8" });
  return tried.status === 0 ? false : `network namespaces do not work here: ${(tried.stderr ?? String(tried.error)).trim()}`;
}

/** Runs this program again, in a hub, with the same arguments; resolves with its exit code. `base` is removed in the end. */
export function inside(base) {
  // bash is the first process in there: it waits for those that lost their parent.
  const argv = ["--pdeathsig=KILL", "unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", '"$@"; exit $?', "bash", process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn("setpriv", argv, { stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, [MARK]: "1", TMPDIR: base } });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => child.kill("SIGKILL"));
  process.on("exit", () => {
    child.kill("SIGKILL");
    rmSync(base, { recursive: true, force: true });
  });
  return new Promise((resolve) => child.on("close", (code) => resolve(code ?? 1)));
}

function ip(...args) {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

export class Net {
  places = new Map();
  #cuts = new Map();

  static make() {
    const net = new Net();
    ip("link", "set", "lo", "up");
    writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    return net;
  }

  /** A machine: {address, prefix}, what is run with the prefix before it is there. */
  async place(name) {
    if (this.places.has(name)) return this.places.get(name);
    const number = this.places.size + 1;
    if (number > 250) throw new Error("too many places");
    const holder = spawn("unshare", ["--net", "sleep", "infinity"], { stdio: "ignore" });
    const here = readlinkSync("/proc/self/ns/net");
    const of = () => {
      try {
        return readlinkSync(`/proc/${holder.pid}/ns/net`);
      } catch {
        return here;
      }
    };
    while (of() === here) await new Promise((resolve) => setTimeout(resolve, 2));
    const place = { name, number, address: `10.77.${number}.2`, hub: `10.77.${number}.1`, prefix: ["nsenter", `--net=/proc/${holder.pid}/ns/net`], holder };
    ip("link", "add", `v${number}`, "type", "veth", "peer", "name", "eth0", "netns", String(holder.pid));
    ip("address", "add", `${place.hub}/30`, "dev", `v${number}`);
    ip("link", "set", `v${number}`, "up");
    for (const args of [["link", "set", "lo", "up"], ["address", "add", `${place.address}/30`, "dev", "eth0"], ["link", "set", "eth0", "up"], ["route", "add", "default", "via", place.hub]]) {
      const { status, stderr } = spawnSync(place.prefix[0], [...place.prefix.slice(1), "ip", ...args], { encoding: "utf8" });
      if (status !== 0) throw new Error(`ip ${args.join(" ")} in ${name}: ${stderr}`);
    }
    this.places.set(name, place);
    return place;
  }

  /** What is sent from one to the other is swallowed, or no longer. Cuts count: each is ended once. */
  #one(from, to, on) {
    const key = `${from} ${to}`, count = (this.#cuts.get(key) ?? 0) + (on ? 1 : -1);
    if (count < 0) throw new Error(`${key} is not cut`);
    this.#cuts.set(key, count);
    if (count !== (on ? 1 : 0)) return;
    const a = this.places.get(from), b = this.places.get(to);
    ip("rule", on ? "add" : "del", "pref", String(1000 + a.number * 256 + b.number), "from", a.address, "to", b.address, "blackhole");
  }

  /** `way`: "both", "out" (nothing from ones to others) or "in". */
  cut(ones, others, on, way = "both") {
    for (const one of ones)
      for (const other of others) {
        if (one === other) continue;
        if (way !== "in") this.#one(one, other, on);
        if (way !== "out") this.#one(other, one, on);
      }
  }
}
