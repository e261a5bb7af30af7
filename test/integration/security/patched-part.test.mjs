// A script that has no objects loads the prelude's part for them (prelude/workers/object/part.js) after its own code has
// run: builtins that it has replaced by then see no native.
import assert from "node:assert/strict";
import test from "node:test";
import { project, serve } from "../lib/cairn.mjs";

const worker = `
const { apply, get, ownKeys } = Reflect;
const NATIVES = ["wsSend", "serviceCall", "preludePart", "objectAddress"];
let found = 0, calls = 0, busy = false;
function look(value, depth) {
  if (value === null || (typeof value !== "object" && typeof value !== "function") || depth > 2) return;
  const keys = ownKeys(value);
  for (let i = 0; i < keys.length; i++) {
    for (let n = 0; n < NATIVES.length; n++) if (keys[i] === NATIVES[n]) found++;
    try { look(get(value, keys[i]), depth + 1); } catch {}
  }
}
function replace(object, name) {
  let builtin;
  try { builtin = object[name]; } catch { return; }
  if (typeof builtin !== "function") return;
  object[name] = function (...args) {
    if (busy) return apply(builtin, this, args);
    busy = true;
    calls++;
    try { look(this, 0); look(args, -1); } finally { busy = false; }
    return apply(builtin, this, args);
  };
}
let replaced = false;
function replaceAll() {
  if (replaced) return;
  replaced = true;
  const all = [];
  for (const type of [Map, Set, WeakMap, Array, Promise, String, RegExp]) for (const name of Reflect.ownKeys(type.prototype)) if (name !== "constructor") all.push([type.prototype, name]);
  for (const [object, names] of [[Reflect, ["ownKeys", "get", "apply", "construct"]], [Object, ["defineProperty", "assign", "keys", "entries", "create", "freeze"]], [Function.prototype, ["call", "apply", "bind"]]]) for (const name of names) all.push([object, name]);
  for (let i = 0; i < all.length; i++) replace(all[i][0], all[i][1]);
}
export default {
  async fetch(request, env, ctx) {
    if (request.url.endsWith("/inner")) return new Response("inner");
    replaceAll();
    const [a, b] = Object.values(new WebSocketPair());
    a.accept(), b.accept();
    const heard = new Promise((resolve) => { b.onmessage = ({ data }) => resolve(data); });
    a.send("x");
    const answers = [await heard, await (await ctx.exports.default.fetch("http://x/inner")).text()];
    const seen = found;
    [1].includes({ wsSend() {} }); // what it would look like
    return Response.json({ answers, seen, probe: found - seen, calls });
  },
};`;

test("a part of the prelude that comes late shows its natives to no replaced builtin", async (t) => {
  const dir = project(t, { "wrangler.toml": 'name = "p"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\n', "index.js": worker });
  const server = await serve(t, dir);
  const { answers, seen, probe, calls } = await (await server.fetch("/")).json();
  assert.deepEqual(answers, ["x", "inner"]);
  assert.ok(calls > 0 && probe > 0, "the replaced builtins look at nothing");
  assert.equal(seen, 0);
});
