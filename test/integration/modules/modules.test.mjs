// Objects written in C (include/cairn.h): JavaScript calls them, they store, they are replaced, and what is wrong
// with a module is told in a sentence. The class is test/module/probe.c, the caller worker.js.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { compile, configuration, sanitized } from "../lib/module.mjs";
import { project, root, serve, tempDir } from "../lib/server.mjs";
import { Client } from "../websockets/lib.mjs";

const built = tempDir();
const probe = compile("test/module/probe.c", path.join(built, "probe.so"));
const second = compile("test/module/probe.c", path.join(built, "probe2.so"), ["-DVERSION=2"]);
const worker = readFileSync(path.join(root, "test/integration/modules/worker.js"));

const settings = configuration("probe:Probe", {
  durable_objects: { bindings: [{ name: "OBJECT", class_name: "probe:Probe" }, { name: "BARE", class_name: "probe:Bare" }, { name: "CALLER", class_name: "Caller" }] },
  migrations: [{ tag: "v1", new_sqlite_classes: ["probe:Probe", "probe:Bare", "Caller"] }],
  vars: { GREETING: "hello" },
});

const makeProject = (files = {}) => project({ "wrangler.json": settings, "index.js": worker, "probe.so": readFileSync(probe), ...files });

async function call(server, name, method, ...args) {
  const response = await server.fetch(`/call/${name}/${method}?args=${encodeURIComponent(JSON.stringify(args))}`);
  if (response.status !== 200) throw new Error(await response.text());
  return response.json();
}

for (const lanes of [1, 2]) {
  test(`JavaScript calls objects in C by RPC and fetch, ${lanes === 1 ? "on its lane" : "and on another"}`, async (t) => {
    const server = await serve(makeProject(), { lanes });
    t.after(() => server.kill());
    for (const name of await (await server.fetch("/scenarios")).json()) {
      await t.test(name, async () => assert.equal(await server.text(`/scenario/${name}`), '"ok"'));
    }
    assert.equal((await server.stop()).code, 0);
  });
}

test("alarms ring, are tried again, and are given up", async (t) => {
  const server = await serve(makeProject());
  t.after(() => server.kill());
  await call(server, "a", "alarm", 10, "well");
  await server.untilTrue(async () => (await call(server, "a", "get", "rang")) !== null, "the alarm");
  assert.deepEqual(await call(server, "a", "get", "rang"), { retries: 0, due: true });
  assert.equal(await call(server, "a", "alarmAt"), -1);
  await call(server, "b", "alarm", 0, "fails once");
  await server.untilTrue(async () => (await call(server, "b", "get", "rang")) !== null, "the alarm's second try");
  assert.deepEqual(await call(server, "b", "get", "rang"), { retries: 1, due: true });
  assert.match(server.output, /alarm\(\) failed: the alarm fails once/);
  await call(server, "c", "alarm", 3600_000, "never");
  assert.ok((await call(server, "c", "alarmAt")) > Date.now());
  await call(server, "c", "alarmOff");
  assert.equal(await call(server, "c", "alarmAt"), -1);
});

test("M1, M3: a module is replaced at a reload, and overwriting its file changes nothing before", async (t) => {
  const dir = makeProject();
  const server = await serve(dir, { lanes: 2 });
  t.after(() => server.kill());
  assert.equal(await call(server, "a", "version"), 1);
  await call(server, "a", "add", 5);
  assert.equal(await call(server, "a", "count"), 1);
  writeFileSync(path.join(dir, "probe.so"), "overwritten in place"); // what runs is a copy
  assert.equal(await call(server, "a", "count"), 2);
  // One that waits for an answer when its code goes is told.
  const asked = [1, 2].map(async (n) => (await server.fetch(`/call/a/later?args=[${n}]`)).text());
  const first = await Promise.race(asked.map(async (text, n) => ((await text).includes("one is kept already") ? n : -1)));
  assert.notEqual(first, -1);
  const waiting = asked[1 - first];
  server.signal("SIGHUP");
  await server.until(/probe.*(file too short|invalid ELF header)/);
  assert.equal(await call(server, "a", "version"), 1); // a deployment that fails changes nothing
  copyFileSync(second, path.join(dir, "probe.so.new"));
  renameSync(path.join(dir, "probe.so.new"), path.join(dir, "probe.so"));
  server.signal("SIGHUP");
  await server.untilTrue(async () => (await call(server, "b", "version")) === 2, "the new code");
  assert.match(await waiting, /reset because its code was updated/);
  assert.deepEqual([await call(server, "a", "version"), await call(server, "a", "add", 1)], [2, 6]);
  for (let i = 0; i < 10; i++) {
    server.signal("SIGHUP");
    // One that has arrived when the code goes is refused, and has done nothing.
    const again = (error) => (/reset because its code was updated/.test(error.message) ? call(server, "a", "add", 1).catch(again) : Promise.reject(error));
    assert.equal(await call(server, "a", "add", 1).catch(again), 7 + i);
  }
  assert.equal((await server.stop()).code, 0);
});

test("what an object has acknowledged is there after kill -9", async (t) => {
  const dir = makeProject(), data = tempDir();
  let server = await serve(dir, { lanes: 2, data });
  t.after(() => server.kill());
  const acknowledged = new Map();
  for (let round = 0; round < 3; round++) {
    let killed = false;
    const clients = Array.from({ length: 8 }, async (_, i) => {
      const name = `ledger${i % 4}`;
      while (!killed) {
        try {
          const sum = await call(server, name, "add", 1);
          acknowledged.set(name, Math.max(sum, acknowledged.get(name) ?? 0));
        } catch {
          return;
        }
      }
    });
    const enough = (round + 1) * 40;
    await server.untilTrue(() => [...acknowledged.values()].reduce((a, b) => a + b, 0) > enough, "enough writes");
    server.signal("SIGKILL");
    killed = true;
    await server.exited;
    await Promise.all(clients);
    server = await serve(dir, { lanes: 2, data });
    for (const [name, sum] of acknowledged) {
      const found = await call(server, name, "add", 0);
      assert.ok(found >= sum, `${name} has ${found} of ${sum}`);
    }
  }
});

test("M4: the last line of a server that dies in a module names it", async (t) => {
  for (const [how, signal] of [["fault", "SIGSEGV"], ["abort", "SIGABRT"]]) {
    const server = await serve(makeProject());
    t.after(() => server.kill());
    server.fetch(`/call/a/crash?args=["${how}"]`).catch(() => {});
    await server.exited;
    assert.match(server.stderr.trim().split("\n").at(-1), new RegExp(`^cairn: crashed \\(${signal}\\) in the module "probe", class probe:Probe$`));
  }
});

test("WebSockets: tags, attachments, broadcast, hibernation, a close that is told, reloads", async (t) => {
  const dir = makeProject({ "wrangler.json": JSON.stringify({ ...JSON.parse(settings), cairn: { modules: { probe: "probe.so" }, limits: { object_idle_ms: 50 } } }) });
  for (const lanes of [1, 2]) {
    const server = await serve(dir, { lanes });
    t.after(() => server.kill());
    const open = (tags) => Client.open(server, "/socket/room", undefined, { headers: tags ? { "x-tags": tags } : {} });
    const one = await open("red,small"), two = await open("blue");
    assert.deepEqual([await one.next(), await two.next()], ["welcome", "welcome"]);
    assert.equal(await one.ask("echo"), "echo");
    assert.deepEqual([...(await one.ask(Buffer.from([1, 2, 0])))], [1, 2, 0]);
    assert.equal(await one.ask("x".repeat(100_000)), "x".repeat(100_000));
    assert.deepEqual(await call(server, "room", "sockets"), ["red", "blue"]);
    assert.deepEqual(await call(server, "room", "sockets", "small"), ["red"]);
    assert.equal(await call(server, "room", "broadcast", "blue", "to blue"), 1);
    assert.equal(await two.next(), "to blue");
    assert.equal(await call(server, "room", "broadcast", null, "grüße"), 2);
    assert.deepEqual([await one.next(), await two.next()], ["grüße", "grüße"]);
    one.send("attach kept through sleep");
    assert.equal(await one.ask("attachment"), "kept through sleep");
    assert.equal(await two.ask("attachment"), "none");
    // Its memory has gone, its sockets have not.
    await server.untilTrue(async () => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return (await two.ask("lives")) === "1";
    }, "a new life");
    assert.equal(await two.ask("ping"), "pong");
    assert.equal(await one.ask("attachment"), "kept through sleep");
    one.send("bad");
    await server.until(/an event of a WebSocket failed: a text message is UTF-8/);
    server.signal("SIGHUP");
    await server.untilTrue(async () => (await two.ask("lives")) === "1", "the life after a reload");
    assert.equal(await one.ask("attachment"), "kept through sleep");
    one.send("close");
    assert.deepEqual(await one.closed, [4000, "asked to"]);
    await two.close(4001, "bye");
    await server.untilTrue(async () => (await call(server, "room", "get", "closed")) === "4001 bye clean", "the close");
    assert.deepEqual(await call(server, "room", "sockets"), []);
    await assert.rejects(open(Array.from({ length: 11 }, (_, i) => `t${i}`).join()));
    await assert.rejects(open("twice,twice"));
    const left = await open("left");
    await left.next();
    assert.equal((await server.stop()).code, 0);
    await left.closed;
  }
});

test("a line that an object logs names worker, class and object", async (t) => {
  const server = await serve(makeProject(), { args: ["--log", "json"] });
  t.after(() => server.kill());
  await call(server, "speaker", "log", "hello");
  const [line] = await server.until(/^.*the probe says hello.*$/m);
  const { worker: name, class: className, name: object, level } = JSON.parse(line);
  assert.deepEqual([name, className, object, level], ["app", "probe:Probe", "speaker", "warn"]);
});

test("the header is plain C11 and C++17", (t) => {
  const file = path.join(built, "plain.c");
  writeFileSync(file, `#include <cairn.h>
static int call(cairn_object *object, void *instance, cairn_event *event)
{
    (void)instance;
    (void)event;
    return cairn->error(object, "TypeError", "%d", 1);
}
static struct cairn_class classes[1];
static struct cairn_class *plain(void)
{
    classes[0].name = "Plain";
    classes[0].call = call;
    return classes;
}
struct cairn_class *(*unused)(void) = plain;
CAIRN_MODULE(classes)
`);
  for (const [compiler, ...flags] of [["cc", "-std=c11", "-xc"], ["c++", "-std=c++17", "-xc++"]]) {
    const { status, stderr, error } = spawnSync(compiler, [...flags, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", path.join(root, "include"), file], { encoding: "utf8" });
    if (error?.code === "ENOENT") t.diagnostic(`${compiler} is not here`);
    else assert.equal(status, 0, stderr);
  }
});

test("M4, M5: a module in C++ that the linker never lets go is replaced at every reload; an exception that leaves it names it", async (t) => {
  const compileAs = (version) => {
    const file = path.join(built, "unique.cc"), out = path.join(built, "unique.so");
    writeFileSync(file, `#include <cairn.h>
#include <cstring>
#include <stdexcept>
template <typename T> struct kept { static T value; };
template <typename T> T kept<T>::value;
static int call(cairn_object *object, void *, cairn_event *event)
{
    kept<int>::value++;
    if (strcmp(cairn->event_method(event), "across") == 0)
        throw std::runtime_error("across");
    try {
        throw std::runtime_error("version ${version}");
    } catch (const std::exception &error) {
        return cairn->error(object, "RangeError", "%s", error.what());
    }
}
static struct cairn_class make() { struct cairn_class made{}; made.name = "Unique"; made.call = call; return made; }
static const struct cairn_class classes[] = {make()};
CAIRN_MODULE(classes)
`);
    const { status, stderr, error } = spawnSync("c++", ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", ...sanitized, "-I", path.join(root, "include"), "-o", out, file], { encoding: "utf8" });
    if (error) return null;
    assert.equal(status, 0, stderr);
    return readFileSync(out);
  };
  const first = compileAs(0);
  if (first === null) return t.skip("c++ is not here");
  const script = `export default { async fetch(request, env) {
    return new Response(await env.OBJECT.getByName("a")[new URL(request.url).pathname.slice(1)]().catch(String));
  } };`;
  const dir = project({ "wrangler.json": configuration("unique:Unique"), "index.js": script, "unique.so": first });
  const server = await serve(dir);
  t.after(() => server.kill());
  const versions = [first, compileAs(1)];
  for (let i = 1; i <= 12; i++) {
    const version = i % 2;
    assert.equal(await server.text("/say"), `RangeError: version ${1 - version}`);
    writeFileSync(path.join(dir, "new.so"), versions[version]);
    renameSync(path.join(dir, "new.so"), path.join(dir, "unique.so"));
    server.signal("SIGHUP");
    await server.untilTrue(async () => (await server.text("/say")) === `RangeError: version ${version}`, `version ${version}`);
  }
  server.fetch("/across").catch(() => {});
  await server.exited;
  assert.match(server.stderr.trim().split("\n").at(-1), /^cairn: crashed \(SIGABRT\) in the module "unique", class unique:Unique$/);
});

test("M6: a thread that a module has started goes on when its code was replaced", async (t) => {
  const compileAs = (version) => {
    const file = path.join(built, "thread.c"), out = path.join(built, `thread${version}.so`);
    writeFileSync(file, `#include <cairn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
static atomic_uint beats;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *beat(void *data)
{
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        beats++;
    }
    return data;
}
static void start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, beat, NULL) == 0)
        pthread_detach(thread);
}
static int call(cairn_object *object, void *state, cairn_event *event)
{
    (void)state, (void)event;
    pthread_once(&once, start);
    return cairn->error(object, "Error", "version ${version}, %s", beats ? "runs" : "starts");
}
static const struct cairn_class classes[] = {{.name = "Thread", .call = call}};
CAIRN_MODULE(classes)
`);
    return readFileSync(compile(file, out, ["-pthread"]));
  };
  const script = `export default { async fetch(request, env) { return new Response(await env.OBJECT.getByName("a").say().catch(String)); } };`;
  const versions = [compileAs(0), compileAs(1)];
  const dir = project({ "wrangler.json": configuration("thread:Thread"), "index.js": script, "thread.so": versions[0] });
  const server = await serve(dir);
  t.after(() => server.kill());
  for (let i = 0; i < 6; i++) {
    writeFileSync(path.join(dir, "new.so"), versions[i % 2]);
    renameSync(path.join(dir, "new.so"), path.join(dir, "thread.so"));
    server.signal("SIGHUP");
    await server.untilTrue(async () => (await server.text("/")) === `Error: version ${i % 2}, runs`, `version ${i % 2}`);
  }
  assert.equal((await server.stop()).code, 0);
});

test("every section of the header's functions says thread, ownership and errors", () => {
  const table = readFileSync(path.join(root, "include/cairn.h"), "utf8").split("struct cairn_api {")[1].split("\n};")[0];
  const sections = [...table.matchAll(/\/\* ---- (.*?) ----[^]*?\*\//g)];
  assert.ok(sections.length >= 17);
  for (const [text, name] of sections) for (const word of [/thread/i, /owned|ownership/i, /errors/i]) assert.match(text, word, name);
});

test("a module that cannot be used is refused with a sentence", async (t) => {
  const write = (name, text) => {
    const file = path.join(built, name);
    writeFileSync(file, text);
    return file;
  };
  const source = (text) => readFileSync(compile(write("bad.c", `#include <cairn.h>\n${text}`), path.join(built, "bad.so")));
  const entry = (fields) => source(`static const struct cairn_class none[1]; static const struct cairn_module m = {${fields}, none};
    const struct cairn_module *cairn_module_open(const struct cairn_api *api) { (void)api; return &m; }`);
  const sizes = "sizeof(struct cairn_api), sizeof(struct cairn_class)";
  const cases = [
    [{ "probe.so": null }, /the module "probe": cannot open .*probe\.so: no such file/i],
    [{ "probe.so": "text" }, /the module "probe": .*probe\.so: (file too short|invalid ELF header)/],
    [{ "probe.so": source("int unrelated;") }, /is no module: it has no symbol cairn_module_open/],
    [{ "probe.so": entry(`2, ${sizes}, 0`) }, /made for version 2 of cairn\.h, and this server has version 1/],
    [{ "probe.so": entry("CAIRN_ABI, sizeof(struct cairn_api) + 8, sizeof(struct cairn_class), 0") }, /made with the cairn\.h of a later server/],
    [{ "probe.so": entry(`CAIRN_ABI, ${sizes}, 1`) }, /its class number 1 has no proper name/],
    [{ "wrangler.json": settings.replaceAll("probe:Bare", "probe:Other") }, /the module "probe" has no class "Other"/],
    [{ "wrangler.json": settings.replaceAll("probe:Bare", "other:Bare") }, /the class "other:Bare" is of a module, and \[cairn\.modules\] has no "other"/],
  ];
  for (const [files, expected] of cases) {
    const dir = makeProject(Object.fromEntries(Object.entries(files).filter(([, content]) => content !== null)));
    if (files["probe.so"] === null) rmSync(path.join(dir, "probe.so"));
    const failure = await serve(dir).then((server) => server.kill(), (error) => error.message);
    assert.match(failure ?? "it started", expected);
  }
});

test("a class that has objects cannot be lost with its module", async (t) => {
  const data = tempDir();
  const first = await serve(makeProject(), { data });
  t.after(() => first.kill());
  assert.equal(await call(first, "a", "add", 1), 1);
  await first.stop();
  const none = JSON.stringify({ ...JSON.parse(settings), cairn: undefined, durable_objects: { bindings: [{ name: "CALLER", class_name: "Caller" }] } });
  const failure = await serve(makeProject({ "wrangler.json": none }), { data }).then((server) => server.kill(), (error) => error.message);
  assert.match(failure ?? "it started", /probe:Probe/);
});
