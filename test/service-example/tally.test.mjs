// The service of this folder in a server that was built with it (build.mjs): whatever a service has, it has from its folder and a
// line of the table. And docs/inside/hacking.md shows it as it is.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test, { after, before, describe } from "node:test";
import { ask, command } from "../integration/admin/lib.mjs";
import { cairn, project, root, serve, tempDir } from "../integration/lib/server.mjs";

const here = path.join(root, "test/service-example");
const config = (more) => `name = "t"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n${more}`;
const dir = project({
  "wrangler.toml": config(`[[cairn.tallies]]\nbinding = "HITS"\nname = "hits"\n[[cairn.tallies]]\nbinding = "MISSES"\nname = "misses"\n`),
  "index.js": `export default { async fetch(request, env) {
    const [, binding, by] = new URL(request.url).pathname.split("/");
    try {
      return Response.json(by === undefined ? await env[binding].get() : await env[binding].add(...JSON.parse(decodeURIComponent(by))));
    } catch (error) {
      return new Response(\`\${error.name}: \${error.message}\`, { status: 400 });
    }
  } };`,
});

describe("a service of its own", () => {
  const data = tempDir();
  let server;
  const get = async (target) => (await server.fetch(target)).text();
  before(async () => {
    server = await serve(dir, { data, lanes: 2 });
  });
  after(() => server.stop());

  test("its bindings count, each for itself", async () => {
    assert.equal(await get("/HITS"), "0");
    assert.equal(await get("/HITS/[]"), "1");
    assert.equal(await get("/HITS/[41]"), "42");
    assert.equal(await get("/HITS"), "42");
    assert.equal(await get("/MISSES/[-3]"), "-3");
  });
  test("what it refuses changes nothing", async () => {
    assert.match(await get("/HITS/[1.5]"), /^TypeError: add\(\) takes a whole number/);
    assert.match(await get(`/HITS/[${Number.MAX_SAFE_INTEGER}]`), /^Error: .*CHECK constraint/);
    assert.equal(await get("/HITS"), "42");
  });
  test("the control API has its routes, described", async () => {
    assert.deepEqual((await ask({ data }, "GET", "/api/tallies/hits")).json, { count: 42 });
    assert.deepEqual((await ask({ data }, "POST", "/api/tallies/hits", { body: { by: 8 } })).json, { count: 50 });
    assert.match((await ask({ data }, "POST", "/api/tallies/hits", { body: {} })).text, /must be a whole number/);
    assert.equal((await ask({ data }, "GET", "/api/tallies/none")).status, 404);
    assert.equal((await ask({ data }, "PUT", "/api/tallies/hits")).status, 405);
    assert.ok((await ask({ data }, "GET", "/openapi.json")).json.paths["/api/tallies/{name}"].post);
    const { json } = await ask({ data }, "GET", "/api/workers");
    assert.deepEqual(json[0].bindings.map(({ type, name, target }) => [type, name, target]), [["tally", "HITS", "hits"], ["tally", "MISSES", "misses"]]);
  });
  test("its operations are counted by name", async () => {
    const { text } = await ask({ data }, "GET", "/metrics");
    assert.match(text, /cairn_service_operations_total\{service="tally",name="hits",operation="add"\} [1-9]/);
    assert.match(text, /cairn_service_operations_total\{service="tally",name="hits",operation="get"\} [1-9]/);
  });
  test("the command works on a server and, after a kill, without one", async () => {
    assert.equal((await command(data, "tally", "add", "hits", "5")).stdout, "55\n");
    server.child.kill("SIGKILL");
    await server.exited;
    assert.equal((await command(data, "tally", "get", "hits")).stdout, "55\n");
    assert.equal((await command(data, "tally", "add", "hits", "1")).stdout, "56\n");
    assert.equal((await command(data, "tally", "get", "none")).status, 1);
    assert.match((await command(data, "tally", "add", "hits", "1.5")).stderr, /must be a whole number/);
    assert.equal((await command(data, "tally")).status, 2);
    server = await serve(dir, { data, lanes: 2 });
    assert.equal(await get("/HITS"), "56");
  });
  test("it is in the list of commands", async () => {
    assert.match((await command(data, "tally", "--help")).stdout, /get\|add NAME/);
  });
});

for (const [what, text, why] of [
  ["a name that is missing", `[[cairn.tallies]]\nbinding = "T"\n`, /cairn\.tallies\[0\].*"name"/],
  ["a binding that another key has", `[[cairn.tallies]]\nbinding = "T"\nname = "t"\n[vars]\nT = "x"\n`, /the name "T" is given twice, in "vars" and in "tallies"/],
  ["a key that nobody knows", `[[cairn.tallys]]\nbinding = "T"\nname = "t"\n`, /unknown key "cairn.tallys"/],
]) {
  test(`the configuration: ${what} is refused`, async () => {
    const { status, stderr } = await command(tempDir(), "serve", project({ "wrangler.toml": config(text), "index.js": "export default {}" }));
    assert.equal(status, 1);
    assert.match(stderr, why);
  });
}

test("docs/reference/bindings.md of that tree has its row", () => {
  assert.match(readFileSync(path.join(path.dirname(cairn), "../docs/reference/bindings.md"), "utf8"), /^\| \[Tallies\]\(\.\.\/inside\/hacking\.md\) \| `cairn\.tallies` \| `binding`, `name` \| counters that stay \| `cairn tally` \| `src\/service\/tally\/` \|$/m);
});

test("docs/inside/hacking.md shows the files as they are", () => {
  const page = readFileSync(path.join(root, "docs/inside/hacking.md"), "utf8");
  const section = page.slice(page.indexOf("## A service, whole"));
  const blocks = [...section.matchAll(/^```(?:c|js|ts)\n([^]*?)^```$/gm)].map(([, block]) => block);
  const files = readdirSync(here, { recursive: true }).filter((file) => /^(src|prelude)\/.*\.\w+$/.test(file)).map((file) => [file, readFileSync(path.join(here, file), "utf8")]);
  assert.ok(blocks.length >= 4);
  for (const block of blocks) for (const piece of block.split(/^\/\* \.\.\. \*\/\n/m)) assert.ok(files.some(([, text]) => text.includes(piece.trim())), piece);
  for (const [file] of files) assert.ok(section.includes(path.basename(file)), `${file} is not named`);
});
