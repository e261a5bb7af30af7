// A cluster whose nodes start empty and take deployments.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { Client } from "../../integration/deploy/lib.mjs";
import { Server, cairn } from "../../integration/lib/server.mjs";
import { Cluster } from "./cluster.mjs";

export const NAMES = ["a", "b", "c"];

/** {status, text}; fetch() does not let the host be chosen. */
export const get = (server, target, headers) => new Promise((resolve, reject) => {
  http.get({ host: "127.0.0.1", port: server.port, path: target, headers, agent: false, timeout: 30_000 }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (more) => (text += more)).on("end", () => resolve({ status: response.statusCode, text })).on("error", reject);
  }).on("error", reject);
});

/** A cluster whose nodes have no projects: everything is uploaded. */
export class Fleet extends Cluster {
  static async begin(t, names = NAMES, { shards = 16 } = {}) {
    const fleet = Object.setPrototypeOf(await Cluster.make(t), Fleet.prototype);
    fleet.made = [];
    fleet.empty = path.join(fleet.base, "empty");
    mkdirSync(fleet.empty);
    const made = await fleet.command("init", "--shards", String(shards));
    assert.equal(made.code, 0, made.stderr);
    for (const name of names) await fleet.up(name);
    return fleet;
  }

  async up(name, { args = [], wait = true, env = {} } = {}) {
    const data = `${this.base}/${name}`;
    const child = spawn("setpriv", ["--pdeathsig=KILL", cairn, "serve", "--listen", "127.0.0.1:0", "--lanes", "2", "--data", data, "--domain", "example.com",
      "--cluster", this.url(name), "--node", name, "--peer", "127.0.0.1:0", ...args],
    { stdio: ["ignore", "pipe", "pipe"], cwd: this.empty, env: { ...process.env, CAIRN_ADMIN: "127.0.0.1:0", ...env } });
    const server = new Server(child, data);
    server.ready.catch(() => {});
    this.nodes.set(name, server);
    if (wait) await this.ready(name);
    return server;
  }

  async ready(name) {
    const server = this.nodes.get(name);
    await server.ready;
    const [, url] = await server.until(/admin on (http:\S+)/);
    server.api = `${url}/client/v4`;
    server.admin = url;
    for (const clients of this.made) clients[name].server = server;
  }

  /** Runs a command of cairn; {code, stdout, stderr}. It must not block: the wires of the nodes are in this process. */
  async run(...args) {
    const child = spawn(cairn, args, { stdio: ["ignore", "pipe", "pipe"] });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) child[name].setEncoding("utf8").on("data", (text) => (result[name] += text));
    result.code = await new Promise((resolve) => child.on("close", resolve));
    return result;
  }

  /** A token made on one node, and a client of each with it. */
  async clients(name = "a", token = "test") {
    const made = await this.run("tokens", "create", token, "--json", "--data", `${this.base}/${name}`);
    assert.equal(made.code, 0, made.stderr);
    const who = JSON.parse(made.stdout);
    const clients = Object.fromEntries([...this.nodes].map(([node, server]) => [node, new Client(server, who)]));
    this.made.push(clients);
    return clients;
  }

  /** What each node that lives answers: {a: "one", ...}. */
  async answers(target = "/", host = "x.localhost") {
    const answers = {};
    for (const [name, server] of this.nodes) {
      if (server.exit) continue;
      answers[name] = await get(server, target, { host }).then(({ text }) => text, String);
    }
    return answers;
  }
}
