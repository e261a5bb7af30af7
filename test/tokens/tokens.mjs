// Every request that the admin listener knows, with every kind of token: allowed or refused as its description says.
//
//     make tokens            the long form
//     make tokens QUICK=1    the short one, which is an integration test (test/integration/deploy/scopes.test.mjs)
//
// Made from the OpenAPI document, which test/unit/v4/test_routes.c compares with the tables of routes: a route that is
// added tomorrow is in it. An operation is for the operator, unless its "security" names scopes, of which a token needs one;
// [] and {} are open to whoever reaches the port. Names in paths are of things that do not exist and bodies say nothing, so a
// request that is let through fails otherwise, or reads: what counts is whether it was let through.
//
//     none, wrong, revoked, over          401 (429 after some)
//     each scope alone (long: each set)   let through if it is declared, else 403
//     an upload of assets of another worker, an address of another file, as a token: 403
//     another account                     403 with the platform's code
//     paths written otherwise             as the path itself (P1 of src/admin/target.h)
//     revoked, and over (long), while its body is on its way: refused, and nothing was done (T2 of src/v4/tokens.h)
import assert from "node:assert/strict";
import http from "node:http";
import { readOpenapi } from "../../tools/build-openapi.mjs";
import { Client, adminToken, hello } from "../integration/deploy/lib.mjs";

const SCOPES = ["read", "deploy", "data"];
const TOKEN_JOBS_MAX = 10; // fewer than one token may have at once (CN_ADMIN_TOKEN_JOB_MAX)
const BODY_MAX = 64 << 10;

/** [{method, path, scopes: Set, open}] of the document. */
export function operations(document = readOpenapi(new URL("../..", import.meta.url).pathname)) {
  return Object.entries(document.paths).flatMap(([path, item]) => Object.entries(item).filter(([name]) => name !== "parameters").map(([method, operation]) => {
    const ways = operation.security ?? document.security;
    return { method: method.toUpperCase(), path, scopes: new Set(ways.flatMap((way) => way.token ?? [])), open: ways.length === 0 || ways.some((way) => Object.keys(way).length === 0) };
  }));
}

/** Each subset of the scopes that is not empty. */
const sets = () => Array.from({ length: 2 ** SCOPES.length - 1 }, (_, i) => SCOPES.filter((_, bit) => (i + 1) & (1 << bit)));

/** One request: {status, text}; an answer without end is left after its first bytes. */
function send(admin, { method, target, token, hold }) {
  const url = new URL(admin);
  const body = method === "GET" || method === "HEAD" ? "" : "{}";
  const headers = { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...(hold ? { "transfer-encoding": "chunked" } : { "content-length": body.length }), "content-type": "application/json" };
  const request = http.request({ host: url.hostname, port: url.port, method, path: target, headers, agent: false });
  const answer = new Promise((resolve, reject) => {
    request.on("error", (error) => (["ECONNRESET", "EPIPE"].includes(error.code) ? resolve({ status: 0, text: "" }) : reject(error)));
    request.on("response", (response) => {
      let text = "";
      const done = () => resolve({ status: response.statusCode, text });
      const timer = setTimeout(() => { request.destroy(); done(); }, 300); // a stream
      response.on("data", (bytes) => { text += bytes; if (text.length > BODY_MAX) request.destroy(); });
      response.on("close", () => { clearTimeout(timer); done(); }).on("error", () => {});
    });
  });
  if (!hold) return request.end(body), answer;
  request.write(" ");
  return { answer, finish: () => request.end(body) };
}

/** The names of a path, filled in. */
const fill = (path, account) => path.replace(/\{(\w+)\}/g, (all, name) => (name === "account" ? account : "none-such"));

/** Ways to write a path that lead to the same place, or to none. */
const otherwise = (target) => [`/${target}`, `${target}/`, target.replace(/^\/(\w+)\//, "/$1//"), target.replace("/client/", "/client/./"), target.replace("/api/", "/%61pi/"), target.replace("/client/", "/Client/"), `${target}?x=//client/v4`, `//x/..${target}`];

/** For its token: what a handler refuses for another reason (an account in a body, a session that is over) it was let through to. */
const wasRefused = ({ status, text }) => status === 401 || status === 429 || (status === 403 && (text === "" || /the token is not good for this request|the token was revoked, or its time is over/.test(text)));
const lacksScope = ({ status, text }) => status === 403 && (text === "" || text.includes("the token is not good for this request")); // a HEAD has no text

class Matrix {
  counts = {};
  failures = [];
  constructor(server, data, who) {
    Object.assign(this, { server, data, who, admin: server.admin, operator: adminToken(data) });
  }
  check(kind, operation, good, answer, more = "") {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    if (!good) this.failures.push(`${kind}${more}: ${operation.method} ${operation.path}: ${answer.status} ${answer.text.slice(0, 200)}`);
  }
  async api(method, target, json) {
    const response = await fetch(this.admin + target, { method, headers: { authorization: `Bearer ${this.operator}`, "content-type": "application/json" }, body: json && JSON.stringify(json) });
    assert.ok(response.ok, `${method} ${target}: ${response.status}`);
    return response.json();
  }
  token(name, scopes, more = {}) {
    return this.api("POST", "/api/tokens", { name, scopes: scopes.join(","), ...more });
  }
  revoke(name) {
    return this.api("DELETE", `/api/tokens/${encodeURIComponent(name)}`);
  }

  /** Tokens that are good for nothing. */
  async bad(list) {
    const revoked = await this.token("revoked", SCOPES), over = await this.token("over", SCOPES, { expires_in: 1 });
    await this.revoke("revoked");
    const over_now = async () => (await send(this.admin, { method: "GET", target: "/client/v4/user", token: over.token })).status !== 200;
    await this.server.untilTrue(over_now, "the end of a token");
    const kinds = { none: undefined, wrong: `cairn_${"0".repeat(40)}`, revoked: revoked.token, over: over.token };
    for (const operation of list) {
      for (const [kind, token] of Object.entries(kinds)) {
        const answer = await send(this.admin, { method: operation.method, target: fill(operation.path, this.who.account), token });
        this.check(kind, operation, operation.open ? !wasRefused(answer) : answer.status === 401 || (answer.status === 429 && token), answer);
      }
    }
  }
  /** Tokens with scopes, and the operator's. */
  async scoped(list, which) {
    for (const scopes of [...which, null]) {
      const token = scopes === null ? this.operator : (await this.token(`with ${scopes.join("-")}`, scopes)).token;
      for (const operation of list) {
        const allowed = operation.open || scopes === null || scopes.some((scope) => operation.scopes.has(scope));
        const answer = await send(this.admin, { method: operation.method, target: fill(operation.path, this.who.account), token });
        this.check(scopes === null ? "operator" : "scopes", operation, allowed ? !wasRefused(answer) : lacksScope(answer), answer, ` ${scopes}`);
      }
    }
  }
  /** Permissions for one thing, used as tokens for all. */
  async narrow(list) {
    const client = new Client(this.server, this.who);
    const { jwt } = await client.result("POST", "workers/scripts/other/assets-upload-session", { json: { manifest: { "/a": { hash: "0".repeat(32), size: 1 } } } });
    const { uuid } = await client.result("POST", "d1/database", { json: { name: "other" } });
    const { upload_url } = await client.result("POST", `d1/database/${uuid}/import`, { json: { action: "init", etag: "0".repeat(32) } });
    for (const [kind, token] of Object.entries({ upload: jwt, transfer: upload_url.split("/").at(-1) })) {
      for (const operation of list) {
        const answer = await send(this.admin, { method: operation.method, target: fill(operation.path, this.who.account), token });
        this.check(`another's ${kind}`, operation, operation.open || operation.scopes.has(kind) ? !wasRefused(answer) : lacksScope(answer), answer);
      }
    }
  }
  async account(list) {
    for (const operation of list.filter(({ path }) => path.includes("{account}") && !path.includes("analytics_engine"))) {
      const scopes = SCOPES.filter((scope) => operation.scopes.has(scope));
      if (scopes.length === 0) continue;
      const answer = await send(this.admin, { method: operation.method, target: fill(operation.path, "0".repeat(32)), token: this.who.token });
      this.check("another account", operation, answer.status === 403 && answer.text.includes("9109"), answer);
    }
  }
  /** Whoever is refused is refused however he writes it. */
  async written(list, kinds) {
    for (const operation of list.filter(({ open }) => !open)) {
      const scopes = SCOPES.filter((scope) => !operation.scopes.has(scope));
      for (const target of otherwise(fill(operation.path, this.who.account))) {
        for (const token of [undefined, ...scopes.map((scope) => kinds[scope])]) {
          const answer = await send(this.admin, { method: operation.method, target, token });
          this.check("written otherwise", operation, token === undefined ? answer.status === 401 : [403, 404, 405].includes(answer.status), answer, ` ${target}`);
        }
      }
    }
  }
  /**
   * A right that is lost while the body is on its way. `lose` takes it. What needs no body may be answered before that; such an answer
   * may come to us after it, so what failed is tried again by itself: a server that acts for a right that is lost does so each time.
   */
  async waiting(list, kind, make, lose) {
    const mine = list.filter(({ scopes, open }) => !open && SCOPES.some((scope) => scopes.has(scope)));
    for (let at = 0; at < mine.length; at += TOKEN_JOBS_MAX) {
      const batch = mine.slice(at, at + TOKEN_JOBS_MAX);
      for (const { operation, early, result } of await this.loseWhile(batch, `${kind} ${at}`, make, lose)) {
        const needsNone = /^(GET|HEAD|DELETE)$/.test(operation.method);
        let good = early || wasRefused(result);
        for (let time = 0; !good && needsNone && time < 5; time++) {
          const [again] = await this.loseWhile([operation], `${kind} ${at} ${operation.path} ${time}`, make, lose);
          good = again.early || wasRefused(again.result);
        }
        if (early && !needsNone) this.failures.push(`answered without its body: ${operation.method} ${operation.path}`);
        this.check(kind, operation, good, result);
      }
    }
  }
  /** [{operation, early, result}]: each is sent but for its body's end, then the right is lost. */
  async loseWhile(operations, name, make, lose) {
    const { token } = await make(name);
    let lost = false;
    const calls = operations.map((operation) => {
      const call = { operation, early: false, ...send(this.admin, { method: operation.method, target: fill(operation.path, this.who.account), token, hold: true }) };
      call.answer.then(() => { call.early = !lost; });
      return call;
    });
    await send(this.admin, { method: "GET", target: "/client/v4/user", token }); // behind them on the same listener
    await lose(name, token);
    lost = true;
    for (const call of calls) call.finish();
    for (const call of calls) call.result = await call.answer;
    return calls;
  }
  /** Who lost his right is in no note of a change. */
  async nobodyDid(kinds) {
    const { entries } = await this.api("GET", "/api/audit?limit=1000");
    assert.ok(entries.some(({ by }) => by === "who"));
    for (const entry of entries) if (kinds.some((kind) => entry.by.startsWith(kind))) this.failures.push(`done by a token that was good for nothing: ${JSON.stringify(entry)}`);
  }
}

/** Runs the matrix on a server without projects: {counts, total}. Throws what was wrong. */
export async function run(server, data, who, { long = false } = {}) {
  const list = operations();
  const matrix = new Matrix(server, data, who);
  await new Client(server, who).deploy("w", hello("w"));
  await matrix.bad(list);
  await matrix.scoped(list, long ? sets() : SCOPES.map((scope) => [scope]));
  await matrix.narrow(list);
  await matrix.account(list);
  const kinds = Object.fromEntries(await Promise.all(SCOPES.map(async (scope) => [scope, (await matrix.token(`only ${scope}`, [scope])).token])));
  const part = (_, i) => long || i % 8 === 0;
  await matrix.written(list.filter(part), kinds);
  await matrix.waiting(list, "revoked while waiting", (name) => matrix.token(name, SCOPES), (name) => matrix.revoke(name));
  if (long) {
    const over = (name, token) => server.untilTrue(async () => (await send(server.admin, { method: "GET", target: "/client/v4/user", token })).status !== 200, "its end");
    await matrix.waiting(list, "over while waiting", (name) => matrix.token(name, SCOPES, { expires_in: 1 }), over);
  }
  await matrix.nobodyDid(["revoked", "over"]);
  assert.deepEqual(matrix.failures, []);
  return { operations: list.length, counts: matrix.counts, total: Object.values(matrix.counts).reduce((sum, count) => sum + count, 0) };
}
