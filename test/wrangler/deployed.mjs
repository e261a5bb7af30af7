// A server for the tests of the examples, applications and starters that begins empty and gets its projects by `wrangler deploy`, as one
// far away would: with CAIRN_TEST_DEPLOYED set, serve() of test/integration/lib/ is this one. What is deployed stays in the data
// directory; a server that is started again on it gets nothing anew unless something has changed.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { token } from "../integration/deploy/lib.mjs";
import { cairn, Server, tempDir } from "../integration/lib/server.mjs";
import { wrangler } from "./lib.mjs";

const known = new Map(); // by data directory: its token, and what was deployed

/** What a person creates before the first deployment: wrangler deploys nothing whose queues are not there. */
async function createQueues(server, who, project, home) {
  const config = readFileSync(path.join(project, "wrangler.toml"), "utf8");
  const names = new Set([...config.matchAll(/^(?:queue|dead_letter_queue) = "([^"]+)"/gm)].map(([, name]) => name));
  for (const name of names) await wrangler(server, who, project, ["queues", "create", name], { home });
}

/** Where one of several answers that has no host of its own. */
function routes(project, projects) {
  const config = readFileSync(path.join(project, "wrangler.toml"), "utf8");
  return projects.length > 1 && !/^hosts = /m.test(config) ? ["localhost/*", "127.0.0.1/*"].flatMap((route) => ["--route", route]) : [];
}

export async function serveDeployed(projects, { args = [], lanes = 2, command = "serve", env = {}, data }) {
  if (command !== "serve") throw new Error(`cairn ${command} runs a folder, it takes no deployments`);
  const vars = [], rest = [];
  for (let i = 0; i < args.length; i++) {
    if (args[i] === "--var") vars.push("--var", args[++i].replace("=", ":"));
    else rest.push(args[i]);
  }
  const argv = ["serve", "--listen", "127.0.0.1:0", "--lanes", String(lanes), "--data", data, ...rest];
  const child = spawn(cairn, argv, { stdio: ["ignore", "pipe", "pipe"], env: { CAIRN_SANDBOX: "", ...process.env, ...env, CAIRN_ADMIN: "127.0.0.1:0" } });
  const server = new Server(child, data);
  await server.ready;
  server.api = `${(await server.until(/admin on (http:\S+)/))[1]}/client/v4`;
  const state = known.get(data) ?? { who: token(data), home: tempDir(), done: new Map() };
  known.set(data, state);
  try {
    for (const project of projects) {
      const asked = vars.join("\n");
      if (state.done.get(project) === asked) continue;
      if (!state.done.has(project)) await createQueues(server, state.who, project, state.home);
      await wrangler(server, state.who, project, ["deploy", ...vars, ...routes(project, projects)], { home: state.home });
      state.done.set(project, asked);
    }
  } catch (error) {
    await server.kill();
    throw error;
  }
  return server;
}
