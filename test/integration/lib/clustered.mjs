// A cluster in the place of a server: with CAIRN_TEST_CLUSTER=3 set, serve() of this folder starts three nodes on a database of their own
// (`make integration CLUSTER=3 TEST=objects`). `url` and `port` are those of the next node each time they are read, so requests go round robin;
// what nodes print is one output; signals go to all of them. The engine is one for the whole run: test/cluster/server/engine.mjs starts it.
// Every node owns a third of the shards from the beginning, so two calls of three cross a link, whichever node is the first to join.
import { execFile, spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { psql } from "../../cluster/server/postgres.mjs";
import { Server, cairn } from "./server.mjs";

const databases = new Map(); // by data directory: a server that is started again on it is the same cluster
const names = "abcdefghijklmnopqrstuvwxyz";

const exec = promisify(execFile);

async function ask(name, sql) {
  return (await exec(psql, ["-X", "-A", "-t", "-q", "-h", process.env.CAIRN_TEST_ENGINE, "-U", "cairn", "-d", name, "-c", sql])).stdout.trim();
}

// The first claim of a shard is refused to all but one node, as if that one had been before the others; later ones are as ever.
const evenly = (count) => `ALTER FUNCTION cairn.claim(bigint, bigint, bigint, int[], bigint[]) RENAME TO claim_any;
  CREATE FUNCTION cairn.claim(_s bigint, _l bigint, _d bigint, _ids int[], _epochs bigint[]) RETURNS cairn.answer LANGUAGE sql AS $$
    SELECT cairn.claim_any(_s, _l, _d, coalesce(array_agg(i.id ORDER BY i.id), '{}'), coalesce(array_agg(i.epoch ORDER BY i.id), '{}'))
    FROM unnest(_ids, _epochs) AS i(id, epoch)
    WHERE i.epoch > 0 OR i.id % ${count} = (SELECT ascii(node) - ${names.charCodeAt(0)} FROM cairn.disk WHERE id = _d) $$`;

const engine = (name) => `host=${process.env.CAIRN_TEST_ENGINE} user=cairn dbname=${name}`;

async function database(data, count) {
  if (databases.has(data)) return databases.get(data);
  const name = `t${process.pid}_${databases.size}`;
  databases.set(data, name);
  await ask("postgres", `CREATE DATABASE ${name}`);
  await exec(cairn, ["cluster", "init", "--cluster", engine(name), "--shards", String(8 * count)]);
  await ask(name, evenly(count));
  return name;
}

/** Several processes as one: what they print, their end when the last has ended, with the first code that is not 0. */
class Together extends EventEmitter {
  constructor(children) {
    super();
    this.children = children;
    this.pid = children[0].pid;
    for (const name of ["stdout", "stderr"]) {
      this[name] = new PassThrough();
      for (const child of children) child[name].on("data", (bytes) => this[name].write(bytes));
    }
    let left = children.length, end = [0, null];
    for (const child of children)
      child.on("close", (code, signal) => {
        if (code !== 0 && end[0] === 0) end = [code, signal];
        if (--left === 0) setImmediate(() => this.emit("close", ...end));
      });
  }

  kill(name) {
    for (const child of this.children) child.kill(name);
  }
}

/** `spawned(name, more)` starts a node with these arguments more, and returns its process. */
export async function serveNodes(data, spawned, count = Number(process.env.CAIRN_TEST_CLUSTER)) {
  const name = await database(data, count);
  const nodes = [...names.slice(0, count)], directories = nodes.map((node, i) => (i ? `${data}.${node}` : data));
  const children = nodes.map((node, i) => spawned(node, ["--cluster", engine(name), "--node", node, "--peer", "127.0.0.1:0", "--data", directories[i]]));
  const servers = children.map((child) => new Server(child, data));
  const server = new Server(new Together(children), data);
  server.ready.catch(() => {});
  try {
    await Promise.all(servers.map((each) => each.ready));
    await server.ready;
    await server.untilTrue(async () => (await ask(name, "SELECT bool_and(EXISTS (SELECT 1 FROM cairn.session x WHERE x.live AND x.id = s.owner)) FROM cairn.shard s")) === "t", "an owner for every shard");
  } catch (error) {
    await server.kill();
    throw error;
  }
  let next = 0;
  const turn = (of) => ({ configurable: true, get: () => of(servers[next++ % count]) });
  Object.defineProperties(server, { url: turn((each) => each.url), port: turn((each) => each.port) });
  server.nodes = servers;
  server.directories = directories;
  server.stay = () => Object.defineProperties(server, { url: { value: servers[0].url }, port: { value: servers[0].port } });
  return server;
}

export function serveClustered(projects, { args, lanes, env, data, nodes }) {
  return serveNodes(data, (name, more) =>
    spawn(cairn, ["serve", ...projects, "--listen", "127.0.0.1:0", "--lanes", String(lanes), ...args, ...more], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { CAIRN_ADMIN: "off", CAIRN_STRICT: "1", CAIRN_SANDBOX: "", ...process.env, ...env },
    }), nodes);
}
