// What the tests of administration share: the worker, commands, requests to both listeners.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { cairn, project } from "../lib/server.mjs";
import { objects } from "../lib/toml.mjs";

export const dir = project({
  "wrangler.toml": `name = "app"
main = "index.js"
compatibility_date = "2026-03-01"
${objects({ LEDGER: "Ledger" })}`,
  "index.js": readFileSync(new URL("worker.js", import.meta.url), "utf8"),
});

/** Calls a method of the object `name`. */
export async function call(server, name, method, ...args) {
  const response = await server.fetch(`/${encodeURIComponent(name)}/${method}`, { method: "POST", body: JSON.stringify(args) });
  return response.json();
}

/** Runs a command on a data directory: {status, stdout, stderr}. */
export function command(data, ...args) {
  return new Promise((resolve) => {
    execFile(cairn, [...args, "--data", data], { timeout: 120_000 }, (error, stdout, stderr) =>
      resolve({ status: error ? error.code : 0, stdout, stderr }));
  });
}

/** One request to the control socket ({data}) or to a port ({port}): {status, headers, text, json}. */
export function ask({ data, port, host = "127.0.0.1" }, method, target, options = {}, tries = 5) {
  return askOnce({ data, port, host }, method, target, options).catch((error) => {
    // Behind a body Node.js's client writes nothing once more, which fails on a unix socket that is closed by then; and it does
    // not read the answer to a body that was refused half way.
    if (!["EPIPE", "ECONNRESET"].includes(error.code) || method !== "PUT" || tries === 1) throw error;
    return ask({ data, port, host }, method, target, options, tries - 1);
  });
}
function askOnce({ data, port, host }, method, target, { body, text = body === undefined ? undefined : JSON.stringify(body), headers = {} } = {}) {
  const where = data ? { socketPath: path.join(data, "control.sock") } : { host, port };
  return new Promise((resolve, reject) => {
    const request = http.request({ ...where, method, path: target, headers: text ? { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers } : headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(parts);
        const answer = { status: response.statusCode, headers: response.headers, bytes, text: bytes.toString() };
        try { answer.json = JSON.parse(answer.text); } catch {}
        resolve(answer);
      });
    });
    request.on("error", reject);
    request.end(text);
  });
}

export const objectPath = (name, rest = "") => `/api/objects/app%2FLedger/${encodeURIComponent(name)}${rest}`;

/** The port of the admin listener, from what the server says; of a cluster the first node's, whose data directory is the server's. */
export const adminPort = async (server) => Number((await (server.nodes?.[0] ?? server).until(/admin on https?:\/\/\S+:(\d+)/))[1]);
