// What `make run` runs, with nothing prepared: the applications have what their documents say from the first start on, and
// keep to it under traffic that comes as it comes. The clients are browsers: pages, and requests for the demonstration site.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import http from "node:http";
import path from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { ask } from "../admin/lib.mjs";
import { cairn, root, Server, tempDir } from "../lib/server.mjs";

describe("the applications of make run", () => {
  const data = tempDir();
  let server;
  /** As a browser that goes to NAME.localhost, which is this machine. */
  const visit = (name, url) => new Promise((resolve, reject) => {
    http.get({ host: "127.0.0.1", port: server.port, path: url, headers: { host: `${name}.localhost:${server.port}` } }, (answer) => {
      text(answer).then(resolve, reject);
    }).on("error", reject);
  });
  const page = async (name, url) => JSON.parse(await visit(name, url));
  /** Entries of the storage of the objects of a class. */
  const stored = async (namespace) => {
    const { objects } = (await ask({ data }, "GET", `/api/objects?namespace=${namespace}`)).json;
    return Promise.all(objects.map(async ({ id, name }) => {
      const { entries } = (await ask({ data }, "GET", `/api/objects/${encodeURIComponent(namespace)}/${id}/kv`)).json;
      return { name, ...Object.fromEntries(entries.map(({ key, value }) => [key, value])) };
    }));
  };
  before(async () => {
    const child = spawn(path.join(root, "tools/run-gallery"), [cairn, "--listen", "127.0.0.1:0", "--admin", "off"],
      { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, CAIRN_DATA: data } });
    server = new Server(child);
    await server.ready;
  });
  after(() => server.stop());

  test("RivenTracker: every field of the document is in the object's storage at its first use", async () => {
    const lists = await page("riven-tracker", "/api/weapons");
    assert.ok(lists.hot.length > 0, JSON.stringify(lists).slice(0, 200));
    const [coordinator, ...others] = await stored("riven-tracker/RivenCoordinatorDO");
    assert.deepEqual([coordinator.name, others.length], ["pc", 0]);
    assert.deepEqual(["cursorHot", "cursorCold", "listHot", "listCold", "dirty", "latestBySlug"].filter((name) => !(name in coordinator)), []);
    assert.ok(coordinator.listHot.includes("soma") && coordinator.listHot.includes("rubico"), "the weapons that the document names");
    assert.ok(coordinator.listCold.length > 0);
  });

  test("path statistics: busy paths renew the snapshot, and KV keeps two", async () => {
    const paths = ["/h", "/a", "/b", "/c", "/d", "/e", "/f", "/g"];
    for (let round = 0; round < 60; round++) await Promise.all(paths.map((each) => visit("path-stats", each)));
    await server.untilTrue(async () => (await page("path-stats", "/paths?refresh=true")).totalRequests >= 480, "all requests in the snapshot");
    await Promise.all(Array.from({ length: 20 }, () => page("path-stats", "/paths?refresh=true")));
    const keys = async () => (await ask({ data }, "GET", "/api/kv/path-stats/keys?prefix=paths:snapshot:")).json.keys.map(({ name }) => name);
    const pointer = async () => (await ask({ data }, "GET", "/api/kv/path-stats/values/paths%3Asnapshot%3Alatest")).json;
    await server.untilTrue(async () => {
      const { version, prev } = await pointer();
      return (await keys()).sort().join() === [`paths:snapshot:${prev}`, `paths:snapshot:${version}`, "paths:snapshot:latest"].sort().join();
    }, "KV to have the newest snapshot, the one before it, and the pointer");
  });

  test("path statistics: every object counts its updates, and what it has written is logged", async () => {
    const objects = await stored("path-stats/AggregatorDO");
    assert.ok(objects.length >= 8);
    for (const { name, updateCount } of objects) assert.ok(updateCount >= 1, `${name} has no updateCount`);
    const lines = server.stdout.concat(server.stderr).split("\n").filter((line) => line.includes('"aggregated"')).map((line) => JSON.parse(line.slice(line.indexOf('{"aggregated"'))).aggregated);
    const counted = lines.filter((each) => each.path === "/a").reduce((sum, each) => sum + each.counted, 0);
    assert.equal(counted, 60);
    const { requests, first, last, p95 } = lines.filter((each) => each.path === "/a").at(-1);
    assert.deepEqual([requests >= 1, typeof p95], [true, "number"]);
    assert.match(`${first} ${last}`, /^\d{13}-[0-9a-f]{8} \d{13}-[0-9a-f]{8}$/);
  });
});
