// WebAssembly's asynchronous functions: https://webassembly.github.io/spec/js-api/,
// https://webassembly.github.io/spec/web-api/. The hosted platform forbids compiling from bytes.
import { assert, assertEquals, assertRejects, test } from "../harness.js";

const differs = { workerd: "code generation from bytes is not allowed there; modules are deployed" };
const hasStreaming = { workerd: "compileStreaming and instantiateStreaming do not exist there" };

// (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
const add = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100, 100, 0, 0,
  10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11,
]);
// (module (import "env" "f" (func (param i32))) (func (export "run") i32.const 42 call 0))
const calls = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 2, 96, 1, 127, 0, 96, 0, 0, 2, 9, 1, 3, 101, 110, 118, 1, 102, 0, 0, 3, 2, 1, 1,
  7, 7, 1, 3, 114, 117, 110, 0, 1, 10, 8, 1, 6, 0, 65, 42, 16, 0, 11,
]);

/** A module with `count` functions of some size each. */
function large(count) {
  const leb = (n) => { const out = []; do { out.push((n & 127) | (n > 127 ? 128 : 0)); n >>>= 7; } while (n); return out; };
  const section = (id, body) => [id, ...leb(body.length), ...body];
  const code = [];
  for (let i = 0; i < 200; i++) code.push(32, 0, 65, 1, 106, 33, 0); // x = x + 1
  const body = [0, ...code, 32, 0, 11];
  const bodies = [];
  const size = leb(body.length);
  for (let i = 0; i < count; i++) { bodies.push(...size); for (const byte of body) bodies.push(byte); }
  const types = section(1, [1, 96, 1, 127, 1, 127]);
  const functions = section(3, [...leb(count), ...new Array(count).fill(0)]);
  const exports = section(7, [1, 1, 102, 0, ...leb(count - 1)]);
  const payload = [...leb(count)];
  const all = leb(payload.length + bodies.length);
  return new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, ...types, ...functions, ...exports, 10, ...all, ...payload].concat(bodies));
}

test("instantiate() of bytes resolves to module and instance", async () => {
  const { module, instance } = await WebAssembly.instantiate(add);
  assert(module instanceof WebAssembly.Module);
  assertEquals(instance.exports.add(2, 40), 42);
}, { differs });

test("instantiate() of a module resolves to an instance", async () => {
  const module = await WebAssembly.compile(add.buffer);
  const instance = await WebAssembly.instantiate(module);
  assert(instance instanceof WebAssembly.Instance);
  assertEquals(instance.exports.add(1, 1), 2);
}, { differs });

test("imports are called", async () => {
  const seen = [];
  const { instance } = await WebAssembly.instantiate(calls, { env: { f(n) { seen.push(n); } } });
  instance.exports.run();
  assertEquals(seen, [42]);
}, { differs });

test("what is wrong rejects", async () => {
  await assertRejects(WebAssembly.CompileError, WebAssembly.compile(new Uint8Array([1, 2, 3])));
  await assertRejects(WebAssembly.CompileError, WebAssembly.instantiate(add.slice(0, 30)));
  await assertRejects(TypeError, WebAssembly.compile("text"));
  await assertRejects(TypeError, WebAssembly.instantiate(calls));
  await assertRejects(WebAssembly.LinkError, WebAssembly.instantiate(calls, { env: { f: 5 } }));
}, { differs });

test("validate()", () => {
  assertEquals([WebAssembly.validate(add), WebAssembly.validate(new Uint8Array([1, 2, 3]))], [true, false]);
});

test("instantiateStreaming() and compileStreaming() take a response", async () => {
  const response = (type = "application/wasm", status = 200) => new Response(add, { status, headers: { "content-type": type } });
  const { instance } = await WebAssembly.instantiateStreaming(Promise.resolve(response()));
  assertEquals(instance.exports.add(3, 4), 7);
  assert((await WebAssembly.compileStreaming(response())) instanceof WebAssembly.Module);
  await assertRejects(TypeError, WebAssembly.compileStreaming(response("text/html")));
  await assertRejects(TypeError, WebAssembly.compileStreaming(response("application/wasm", 404)));
  await assertRejects(TypeError, WebAssembly.instantiateStreaming("text"));
}, { differs: hasStreaming });

test("a module of several megabytes", async () => {
  const bytes = large(2500);
  assert(bytes.length > 3_000_000, `${bytes.length} bytes`);
  const { instance } = await WebAssembly.instantiate(bytes);
  assertEquals(instance.exports.f(1), 201);
}, { differs });
