// An empty server and a client of its deployment API, with requests as wrangler makes them (test/wrangler/ has the real one).
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import http from "node:http";
import path from "node:path";
import { run, serve } from "../lib/cairn.mjs";

export { folder as dataFolder } from "../lib/cairn.mjs";

/** Starts a server without projects on the data directory; its API's address is server.api. */
export async function empty(t, data, { args = [], env = {} } = {}) {
  const server = await serve(t, data, {
    projects: [], args: ["--data", data, "--lanes", "2", ...args],
    env: { CAIRN_ADMIN: "127.0.0.1:0", CAIRN_SANDBOX: "", ...env },
  });
  const [, url] = await server.until(/admin on (http:\S+)/);
  server.admin = url;
  server.api = `${url}/client/v4`;
  return server;
}

/** Makes a token: {token, account, id}. */
export function token(data, name = "test", scope = "read,deploy,data") {
  const result = run(["tokens", "create", name, "--scope", scope, "--json", "--data", data]);
  if (result.status !== 0) throw new Error(result.stderr);
  return JSON.parse(result.stdout);
}

/** The operator's own token. */
export const adminToken = (data) => readFileSync(path.join(data, "admin.token"), "utf8").trim();

export class Client {
  constructor(server, { token, account }) {
    Object.assign(this, { server, token, account });
  }

  /** {status, body}; paths without a slash before them are below the account. */
  async ask(method, target, { body, json, headers = {} } = {}) {
    const url = this.server.api + (target.startsWith("/") ? target : `/accounts/${this.account}/${target}`);
    if (json !== undefined) {
      body = JSON.stringify(json);
      headers = { "content-type": "application/json", ...headers };
    }
    const response = await fetch(url, {
      method, body, headers: this.token ? { authorization: `Bearer ${this.token}`, ...headers } : headers,
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    let parsed = text;
    try { parsed = JSON.parse(text); } catch { /* a value */ }
    return { status: response.status, body: parsed, type: response.headers.get("content-type") };
  }

  /** The result; throws what the API says otherwise. */
  async result(method, target, options) {
    const { status, body } = await this.ask(method, target, options);
    if (status >= 300 || body.success !== true) throw new Error(`${method} ${target}: ${status} ${JSON.stringify(body)}`);
    return body.result;
  }

  form(metadata, modules) {
    const form = new FormData();
    form.set("metadata", JSON.stringify(metadata));
    for (const [name, [text, type]] of Object.entries(modules)) form.set(name, new Blob([text], { type }), name);
    return form;
  }

  /** Uploads files of assets ({"/path": text}); the token for the script's metadata. */
  async assets(name, files) {
    const hash = (text) => createHash("sha256").update(text).digest("hex").slice(0, 32);
    const manifest = Object.fromEntries(Object.entries(files).map(([file, text]) => [file, { hash: hash(text), size: text.length }]));
    let { jwt, buckets } = await this.result("POST", `workers/scripts/${name}/assets-upload-session`, { json: { manifest } });
    for (const bucket of buckets) {
      const form = new FormData();
      for (const text of Object.values(files))
        if (bucket.includes(hash(text))) form.set(hash(text), new Blob([Buffer.from(text).toString("base64")]), hash(text));
      ({ jwt } = await this.result("POST", "workers/assets/upload?base64=true", { body: form, headers: { authorization: `Bearer ${jwt}` } }));
    }
    return jwt;
  }

  script(name, source, { metadata = {}, modules = {} } = {}, method = "PUT", target = `workers/scripts/${name}`) {
    return this.ask(method, target, {
      body: this.form(
        { main_module: "index.js", compatibility_date: "2026-01-01", bindings: [], ...metadata },
        { "index.js": [source, "application/javascript+module"], ...modules }),
    });
  }

  async deploy(name, source, options) {
    const { status, body } = await this.script(name, source, options);
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
    return body.result;
  }
}

/** The answers to `count` requests over few connections, each counted. */
export async function tally(server, count, options = () => ({})) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const seen = {};
  const url = new URL(server.url);
  const one = (i) => new Promise((resolve, reject) => {
    const { path = "/", headers } = options(i);
    http.get({ host: url.hostname, port: url.port, path, headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (more) => { text += more; }).on("end", () => { seen[text] = (seen[text] ?? 0) + 1; resolve(text); });
    }).on("error", reject);
  });
  let next = 0;
  await Promise.all(Array.from({ length: 16 }, async () => { while (next < count) await one(next++); }));
  agent.destroy();
  return seen;
}

export const hello = (text) => `export default { fetch() { return new Response(${JSON.stringify(text)}); } };`;
