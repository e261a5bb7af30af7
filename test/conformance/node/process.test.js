// node:process, node:path/win32, node:string_decoder, node:timers, and modules without function.
import { Buffer } from "node:buffer";
import childProcess from "node:child_process";
import diagnostics from "node:diagnostics_channel";
import fs from "node:fs";
import module from "node:module";
import path from "node:path";
import process from "node:process";
import querystring from "node:querystring";
import { StringDecoder } from "node:string_decoder";
import timers from "node:timers/promises";
import vm from "node:vm";
import workerThreads from "node:worker_threads";
import { assert, assertEquals, assertRejects, assertThrows, test, thrown } from "../harness.js";

const code = (f) => thrown(f)?.code;

test("process.env: values become texts, accessors are refused", () => {
  process.env.A_NUMBER = 5;
  assertEquals(process.env.A_NUMBER, "5");
  delete process.env.A_NUMBER;
  assertEquals("A_NUMBER" in process.env, false);
  assertEquals(code(() => Object.defineProperty(process.env, "X", { get: () => 1 })), "ERR_INVALID_ARG_VALUE");
  assertThrows(TypeError, () => { process.env.X = Symbol("x"); });
});

test("process: cwd and chdir, umask, hrtime, kill", () => {
  const before = process.cwd();
  process.chdir("/tmp");
  fs.writeFileSync("relative", "x");
  assertEquals([process.cwd(), fs.readFileSync("/tmp/relative", "utf8")], ["/tmp", "x"]);
  process.chdir(before);
  assertEquals([code(() => process.chdir("/none")), code(() => process.umask("8")), code(() => process.hrtime([1])), process.umask(7)], ["ENOENT", "ERR_INVALID_ARG_VALUE", "ERR_OUT_OF_RANGE", 0o22]);
  assertEquals(code(() => process.kill(1)), "ERR_METHOD_NOT_IMPLEMENTED");
  assertEquals(typeof process.hrtime.bigint(), "bigint");
});

test("process.emitWarning is an event", async () => {
  const warning = new Promise((resolve) => process.once("warning", resolve));
  process.emitWarning("careful", "CustomWarning", "C001");
  const { name, message, code: warned } = await warning;
  assertEquals([name, message, warned], ["CustomWarning", "careful", "C001"]);
});

test("process.getBuiltinModule and module.createRequire", () => {
  assertEquals([process.getBuiltinModule("fs") === fs, process.getBuiltinModule("none"), module.createRequire("/x")("node:fs") === fs], [true, undefined, true]);
  assertEquals([module.isBuiltin("fs"), module.isBuiltin("test"), module.isBuiltin("node:test")], [true, false, true]);
  assertEquals(code(() => module.createRequire("relative")), "ERR_INVALID_ARG_VALUE");
});

test("path.win32", () => {
  const { win32 } = path;
  assertEquals([
    win32.normalize("C:/a//b/../c\\"), win32.join("//server", "share", "..", "x"), win32.resolve("c:/", "a", "..\\b"), win32.relative("C:\\a\\b", "c:\\a\\d\\e"),
    win32.dirname("C:\\a\\b"), win32.basename("C:\\a\\b.txt", ".txt"), win32.isAbsolute("C:/"), win32.isAbsolute("C:"), win32.toNamespacedPath("\\\\s\\f\\x"),
  ], ["C:\\a\\c\\", "\\\\server\\share\\x", "c:\\b", "..\\d\\e", "C:\\a", "b", true, false, "\\\\?\\UNC\\s\\f\\x"]);
  assertEquals(win32.parse("\\\\server\\share\\dir\\f.txt"), { root: "\\\\server\\share\\", dir: "\\\\server\\share\\dir", base: "f.txt", ext: ".txt", name: "f" });
  assertEquals(code(() => path.join(1)), "ERR_INVALID_ARG_TYPE");
});

test("StringDecoder: characters over chunks, in every encoding", () => {
  const utf8 = new StringDecoder("utf8");
  assertEquals([utf8.write(Buffer.from([0xe2, 0x82])), utf8.lastNeed, utf8.lastTotal, utf8.write(Buffer.from([0xac])), utf8.end()], ["", 1, 3, "\u20ac", ""]);
  assertEquals([utf8.write(Buffer.from([0xf0, 0x9f])), utf8.end()], ["", "\ufffd"]);
  for (const [chunks, texts] of [
    [["f69b", "d1"], ["", "\ufffd\ufffd", "\ufffd"]], [["eda0", "41"], ["", "\ufffd\ufffdA", ""]], [["c0"], ["", "\ufffd"]], [["fb"], ["\ufffd", ""]],
  ]) {
    const decoder = new StringDecoder();
    assertEquals([...chunks.map((chunk) => decoder.write(Buffer.from(chunk, "hex"))), decoder.end()], texts);
  }
  const base64 = new StringDecoder("base64url");
  assertEquals(base64.write(Buffer.from("a")) + base64.write(Buffer.from("bcd")) + base64.end(), "YWJjZA");
  assertEquals(code(() => new StringDecoder("nonsense")), "ERR_UNKNOWN_ENCODING");
});

test("timers/promises: values, signals, checks", async () => {
  assertEquals([await timers.setTimeout(1, "v"), await timers.setImmediate("i")], ["v", "i"]);
  const controller = new AbortController();
  const waiting = timers.setTimeout(60_000, null, { signal: controller.signal });
  controller.abort();
  const error = await waiting.catch((reason) => reason);
  assertEquals([error.name, error.code], ["AbortError", "ABORT_ERR"]);
  let count = 0;
  for await (const value of timers.setInterval(1, "x")) if (value === "x" && ++count === 3) break;
  assertEquals(count, 3);
  assertEquals((await assertRejects(TypeError, timers.setTimeout("x"))).code, "ERR_INVALID_ARG_TYPE");
});

test("querystring: half pairs, spaces, keys without limit", () => {
  assertEquals([querystring.escape("\ud801t"), querystring.unescapeBuffer("a+b", true).toString(), code(() => querystring.escape("\ud801"))], ["%F0%90%91%B4", "a b", "ERR_INVALID_URI"]);
  assertEquals(Object.keys(querystring.parse(Array.from({ length: 1200 }, (_, i) => `k${i}`).join("&"), null, null, { maxKeys: NaN })).length, 1200);
});

test("what a worker cannot do has the platform's code", () => {
  const codes = [() => childProcess.spawn("ls"), () => vm.runInThisContext("1"), () => new workerThreads.Worker("x")].map(code);
  assertEquals(codes, Array(3).fill("ERR_METHOD_NOT_IMPLEMENTED"));
  assertEquals(code(() => childProcess.exec(1)), "ERR_INVALID_ARG_TYPE");
  const { port1, port2 } = new workerThreads.MessageChannel();
  assert(port1 instanceof workerThreads.MessagePort && port2 !== port1);
  assertEquals(diagnostics.channel("x").hasSubscribers, false);
});
