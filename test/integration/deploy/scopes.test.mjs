// The short form of `make tokens` (test/tokens/tokens.mjs): every request of the admin listener with every kind of token.
import assert from "node:assert/strict";
import test from "node:test";
import { operations, run } from "../../tokens/tokens.mjs";
import { dataFolder, empty, token } from "./lib.mjs";

test("every request with every kind of token is allowed or refused as its description says", async (t) => {
  const data = dataFolder(t);
  const server = await empty(t, data);
  const { counts, total } = await run(server, data, token(data, "who"), { long: Boolean(process.env.TOKENS_LONG) });
  assert.equal(counts.none, operations().length);
  assert.ok(total > 1000);
  t.diagnostic(`${total} requests: ${Object.entries(counts).map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
});

test("what a description says of scopes is read as it is meant", () => {
  const one = (security) => operations({ security: [{ token: [] }], paths: { "/x": { get: { security } } } })[0];
  assert.deepEqual([one(undefined).open, one([]).open, one([{}, { token: [] }]).open, one([{ token: ["read"] }]).open], [false, true, true, false]);
  assert.deepEqual([...one([{ token: ["read"] }, { token: ["data"] }]).scopes], ["read", "data"]);
  assert.equal(one(undefined).scopes.size, 0);
});
