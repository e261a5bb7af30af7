// What the tests of path-stats share: a server with fresh databases, events, waiting for counts.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { run } from "../lib/cairn.mjs";
import { clustered, root, serve, tempDir, withoutTriggers } from "../lib/server.mjs";

export const app = path.join(root, "apps/path-stats");
export const token = "a-token-for-tests";
export const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
export const DAY = 86_400_000;
export const HOUR = 3_600_000;
export const dateOf = (time) => new Date(time).toISOString().slice(0, 10);
// The tests' today: the day on which they began, also when midnight passes under them. The cron handler is told so (cron()).
const today = Math.floor(Date.now() / DAY) * DAY;
/** How long counts may take. What fails in a batch because its object's node was killed, and not the batch's own, comes again after two minutes: the application's own back-off. */
export const PATIENCE = clustered ? 400_000 : 60_000;
/** Midnight, so many days ago. */
export const daysAgo = (days) => today - days * DAY;

const hex = (n, length) => Math.imul(n + 1, 0x9e3779b1).toString(16).replace("-", "").padStart(8, "0").repeat(4).slice(0, length);

/** A recorded request: the same numbers give the same one. `every`: milliseconds between two; `n` makes it unique. */
export function event(n, at, { every = 1, paths = 20 } = {}) {
  const timestamp = at + Math.floor(n * every);
  return {
    version: 1, id: `${timestamp}-${n.toString(16).padStart(8, "0")}`, path: `/p/${n % paths}`, method: "GET", status: n % 10 === 0 ? 500 : 200, responseTime: 5 + (n % 200),
    clientIpHash: `hash:${hex(n % 777, 32)}`, timestamp, requestId: `r${n}`, meta: { country: "NO", userAgent: `agent ${n % 7}` },
  };
}

/** A server with the application and databases of its own. */
export class PathStats {
  constructor(vars = {}) {
    this.vars = { ADMIN_TOKEN: token, ...vars };
    this.data = tempDir();
  }

  async start({ vars = {}, command = "serve", env } = {}) {
    const isNew = !this.server, isNode = clustered && command === "serve"; // whose databases are there when it is
    const migrate = () => {
      for (const name of ["path-stats", "path-stats-2"]) {
        const applied = run(["d1", "migrations", "apply", name, "--data", this.data], { cwd: app });
        assert.equal(applied.status, 0, applied.stderr);
      }
    };
    if (isNew && !isNode) migrate();
    const all = { ...this.vars, ...vars };
    this.server = await serve(withoutTriggers(app, [[/^max_batch_timeout = 5$/m, "max_batch_timeout = 1"]]), { data: this.data, lanes: 2, command, env, args: Object.entries(all).flatMap(([name, value]) => ["--var", `${name}=${value}`]) });
    if (isNew && isNode) migrate();
    return this;
  }

  async restart(options) {
    await this.server.stop();
    return this.start(options);
  }

  stop() {
    return this.server?.stop();
  }

  async fetch(target, init) {
    try {
      return await this.server.fetch(target, { headers, ...init });
    } catch (error) {
      if (this.server.exit) error.message += `; cairn has ended (${JSON.stringify(this.server.exit)}):\n${this.server.output.slice(-2000)}`;
      throw error;
    }
  }

  async json(target, init) {
    const answer = await this.fetch(target, init);
    const text = await answer.text();
    assert.ok(answer.ok, `${target}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  post(target, value) {
    return this.fetch(target, { method: "POST", body: JSON.stringify(value) });
  }

  /** Runs a cron handler, today: `cairn dev` only. */
  async cron(pattern = "* * * * *") {
    const time = Math.min(Date.now(), today + DAY - 1);
    const answer = await this.fetch(`/cdn-cgi/handler/scheduled?cron=${encodeURIComponent(pattern)}&time=${time}`);
    assert.equal(answer.status, 200, await answer.text());
  }

  async send(events) {
    for (let at = 0; at < events.length; at += 100) {
      const answer = await this.post("/admin/events", { events: events.slice(at, at + 100) });
      assert.equal(answer.status, 202, await answer.text());
    }
  }

  /** The same for up to a hundred while the server may be killed under them: until they are acknowledged, after `restarting()`. */
  async sendThroughKills(events, restarting) {
    for (;;) {
      await restarting(); // fails if the server does not come back
      try {
        const answer = await this.post("/admin/events", { events });
        assert.equal(answer.status, 202, await answer.text());
        return;
      } catch (error) {
        if (error.code === "ERR_ASSERTION") throw error;
        await new Promise((resolve) => setTimeout(resolve, 20)); // killed under the request: send the same again
      }
    }
  }

  counts(time) {
    return this.json(`/admin/counts?date=${dateOf(time)}`);
  }

  /** Waits until a day has so many, kept and counted. */
  async untilCounted(time, kept, counted = kept, milliseconds = PATIENCE) {
    await this.server.untilTrue(async () => {
      const now = await this.counts(time);
      return now.events >= kept && now.counted >= counted;
    }, `${kept} events of ${dateOf(time)}, ${counted} counted`, milliseconds);
    assert.deepEqual(await this.counts(time).then(({ events, counted }) => [events, counted]), [kept, counted]);
  }

  /** Waits until the queue is empty and nothing is under way. */
  async untilQuiet(milliseconds = PATIENCE) {
    let calm = 0;
    await this.server.untilTrue(async () => {
      calm = (await this.json("/paths/metrics")).queue.backlog === 0 ? calm + 1 : 0;
      return calm > 3;
    }, "an empty queue", milliseconds);
  }

  /** Archives a day and waits for the end of it. */
  async archive(date, milliseconds = PATIENCE) {
    const answer = await this.json("/admin/archive/trigger", { method: "POST", body: JSON.stringify({ date }) });
    assert.equal(answer.status, "pending");
    let job;
    await this.server.untilTrue(async () => ["done", "failed"].includes((job = await this.json(`/admin/archive/status?date=${answer.date}`)).state), `the archive of ${date}`, milliseconds);
    assert.deepEqual([job.state, job.error], ["done", null]);
    return job;
  }

  /** Runs one of the application's tools: {status, output}. */
  tool(name, ...args) {
    const child = spawn(process.execPath, [path.join(app, "tools", name), ...args, "--url", this.url ?? this.server.url, "--token", token], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { output += text; });
    return new Promise((resolve) => child.on("close", (status) => resolve({ status, output })));
  }
}
