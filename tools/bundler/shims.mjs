// Packages that mean something else under nodejs_compat, as wrangler has it: what brings its own fetch()
// gets the runtime's, and `debug` is what Node.js would load, not its form for browsers.
import { createRequire } from "node:module";
import path from "node:path";

const FETCH = `
const fetch = (...args) => globalThis.fetch(...args);
const { Headers, Request, Response, FormData, Blob, File, AbortController } = globalThis;
const isRedirect = (code) => [301, 302, 303, 307, 308].includes(code);
module.exports = Object.assign(fetch, {
  __esModule: true, default: fetch, fetch, Headers, Request, Response, FormData, Blob, File, AbortController,
  FetchError: Error, AbortError: Error, Promise: globalThis.Promise, isRedirect,
});`;

const sources = {
  "cross-fetch": FETCH,
  "node-fetch": FETCH,
  "node-fetch-native": FETCH,
  fsevents: "module.exports = {};",
  inherits: `module.exports = require("node:util").inherits;`,
};

/** A plugin of esbuild. */
export function shims(job) {
  return {
    name: "cairn-shims",
    setup(build) {
      if (!job.nodejsCompat) return;
      build.onResolve({ filter: /^debug$/ }, ({ resolveDir }) => {
        try {
          return { path: createRequire(path.join(resolveDir, "from.js")).resolve("debug") };
        } catch {
          return undefined; // not installed: esbuild says so
        }
      });
      build.onResolve({ filter: new RegExp(`^(?:${Object.keys(sources).join("|")})$`) }, ({ path: name }) => ({
        path: name,
        namespace: "cairn-shims",
      }));
      build.onLoad({ filter: /.*/, namespace: "cairn-shims" }, ({ path: name }) => ({
        contents: sources[name],
        loader: "js",
        resolveDir: job.dir,
      }));
    },
  };
}
