// Names that a project imports from the platform: what is there, what fails and when, and what an alias changes.
import assert from "node:assert/strict";
import test from "node:test";
import { project, run, serve } from "../lib/cairn.mjs";

const config = (more = "") => `name = "w"\nmain = "index.js"\ncompatibility_date = "2026-09-01"\n${more}`;

test("cloudflare:email, cloudflare:pipelines, cloudflare:workflows, tracing of cloudflare:workers", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config(),
    "index.js": `
import { EmailMessage } from "cloudflare:email";
import { PipelineTransformationEntrypoint } from "cloudflare:pipelines";
import { retryable } from "cloudflare:durable-objects";
import { NonRetryableError } from "cloudflare:workflows";
import { env, tracing, WorkerEntrypoint } from "cloudflare:workers";
const thrown = (f) => { try { f(); } catch (e) { return e.name; } };
export default {
  async fetch(request, given) {
    const message = new EmailMessage("a@example.com", "b@example.com", "Subject: x\\r\\n\\r\\ny");
    const error = new NonRetryableError("no");
    env.ADDED = "here";
    return Response.json({
      from: message.from, to: message.to, fixed: thrown(() => { "use strict"; message.from = "c"; }), few: thrown(() => new EmailMessage("a", "b")),
      kind: thrown(() => new EmailMessage("a", "b", 3)), class: Object.prototype.toString.call(message),
      pipeline: PipelineTransformationEntrypoint.prototype instanceof WorkerEntrypoint,
      error: [error instanceof Error, error.name, error.message], added: given.ADDED,
      mark: [retryable(() => {}, class {}), thrown(() => retryable(() => {}, 1))],
      span: await tracing.enterSpan("x", async (span, n) => [span.isTraced, span.setAttribute("a", 1) === span, n], 7),
    });
  },
};`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), {
    from: "a@example.com", to: "b@example.com", fixed: "TypeError", few: "TypeError", kind: "TypeError",
    class: "[object EmailMessage]", pipeline: true, error: [true, "NonRetryableError", "no"], added: "here", mark: [null, "TypeError"], span: [false, true, 7],
  });
});

test("a module that is not there fails the build when it is imported, and only its use when that is dynamic", async (t) => {
  const missing = (source) => run(["build", project(t, { "wrangler.toml": config(), "index.js": source })]);
  const tested = missing(`import { env } from "cloudflare:test"; export default { fetch: () => new Response(env.X) };`);
  assert.equal(tested.status, 1);
  assert.match(tested.stderr, /Could not resolve "cloudflare:test"/);
  assert.match(tested.stderr, /a module of the test runner/);
  assert.match(missing(`import "cloudflare:nothing"; export default {};`).stderr, /cairn does not have this module/);

  const dir = project(t, {
    "wrangler.toml": config().replace("2026-09", "2025-01"), // before Node's modules came with the date
    "index.js": `
const say = (f) => new Promise((ok) => ok(f())).then(() => "there", (e) => e.message);
export default {
  fetch: async () => Response.json([
    await say(() => import("cloudflare:nothing")), await say(() => require("cloudflare:nothing")),
    await say(() => import("node:fs")), await say(() => require("fs")), await say(() => import("cloudflare:email")),
    await say(() => import("cloudflare:nothing")),
  ]),
};`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), [
    `No such module "cloudflare:nothing".`, `No such module "cloudflare:nothing".`, `No such module "node:fs".`,
    `No such module "fs".`, "there", `No such module "cloudflare:nothing".`,
  ]);
});

test("an alias wins over names that the runtime provides, and is found from the project's folder", async (t) => {
  const dir = project(t, {
    "wrangler.toml": config(`compatibility_flags = ["nodejs_compat"]\nalias = { "node:fs" = "./own/fs.js", "cloudflare:nothing" = "./own/nothing.js", "pack" = "./own/pack", "util" = "node:path" }\n`).replace("index.js", "src/index.js"),
    "src/index.js": `
import fs from "node:fs";
import nothing from "cloudflare:nothing";
import pack from "pack";
import inner from "pack/inner.js";
import { join } from "util";
import { Buffer } from "node:buffer";
export default { fetch: () => Response.json([fs, nothing, pack, inner, join("a", "b"), Buffer.from("x").length]) };`,
    "own/fs.js": `export default "own fs";`,
    "own/nothing.js": `export default "own nothing";`,
    "own/pack/index.js": `export default "own pack";`,
    "own/pack/inner.js": `export default "own inner";`,
  });
  const server = await serve(t, dir);
  assert.deepEqual(await (await server.fetch("/")).json(), ["own fs", "own nothing", "own pack", "own inner", "a/b", 1]);
});

test("import.meta is one object of the whole script, with and without a top-level await", async (t) => {
  for (const first of ["", "await Promise.resolve();"]) {
    const dir = project(t, {
      "wrangler.toml": config(),
      "other.js": `import.meta.seen = "by the other"; export const meta = import.meta, main = import.meta.main;`,
      "index.js": `import { meta, main } from "./other.js"; ${first}
export default { fetch: () => Response.json([typeof import.meta, import.meta === meta, import.meta.seen, typeof import.meta.url, main === undefined]) };`,
    });
    const server = await serve(t, dir);
    assert.deepEqual(await (await server.fetch("/")).json(), ["object", true, "by the other", "string", true]);
  }
});

test("import() of a computed name finds what the platform provides, by its name when it is reached", async (t) => {
  const source = `
import { DurableObject } from "cloudflare:workers";
const say = (f) => new Promise((ok) => ok(f())).then((m) => Object.keys(m).length > 1 && typeof m, (e) => e.message);
export default {
  async fetch() {
    const [fs, bare, none, own, s3] = ["node:fs", "path", "node:nothing", "./lang/de.js", "cairn:s3"];
    const text = { toString: () => "node:" + "util" };
    const { join, default: whole } = await import(bare);
    const workers = await import("cloudflare:" + "workers");
    return Response.json([await say(() => import(fs)), join === whole.join, await say(() => import(text)), workers.DurableObject === DurableObject,
      await say(() => import(none)), await say(() => import(own)), await say(() => import(s3)), await say(() => import({ toString() { throw new Error("no"); } }))]);
  },
};`;
  for (const minify of [false, true]) {
    const dir = project(t, { "wrangler.toml": config(`compatibility_flags = ["nodejs_compat"]\nminify = ${minify}\n`), "index.js": source });
    const server = await serve(t, dir);
    assert.deepEqual(await (await server.fetch("/")).json(), ["object", true, "object", true,
      'No such module "node:nothing".', 'No such module "lang/de.js".', 'No such module "cairn:s3".', "no"]);
  }
  const sync = await serve(t, project(t, { "wrangler.toml": config().replace("2026-09", "2025-01"), "index.js": `const n = ["node:fs"][0]; export default { fetch: () => import(n).then(() => new Response("there"), (e) => new Response(e.message)) };` }));
  assert.equal(await (await sync.fetch("/")).text(), 'No such module "node:fs".'); // without its flag
});
