// Keeps the build of an upload inside the upload (`inside` of the job; src/deploy/hosted.h, H3): whoever may deploy
// may not read the server's files by importing them. What a name leads to is checked where it is
// resolved, so that nobody learns whether there is such a file, and, whatever a package.json made of
// it, once more where it is read. A source map is read by esbuild itself, past every plugin: a comment that names
// one elsewhere is made to be none.
import { realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";

const REFUSED = "An upload can import its own modules only.";
const LATER = new Set(["dynamic-import", "require-call", "require-resolve"]);
const READS = /^(file|cairn-(Text|JSON|ESModule|CommonJS|Data|CompiledWasm))$/;
const MAP = /([#@]\s*sourceMappingURL)=([^\s*]*)/g;

const isInside = (folder, file) => file.startsWith(folder + path.sep);

/** A plugin of esbuild; the first one. */
export function confined(job) {
  return {
    name: "cairn-confined",
    setup(build) {
      if (!job.inside) return;
      const real = realpathSync(job.inside);
      const fits = (file) => isInside(job.inside, file) || isInside(real, file);
      build.onResolve({ filter: /^(\.{0,2}\/|\.{1,2}$)/ }, (args) => {
        const file = path.resolve(args.resolveDir || job.inside, args.path);
        if (fits(file) || file === job.inside || file === real) return undefined;
        // What is asked for while the script runs fails there (`provided` in bundler.mjs).
        return LATER.has(args.kind) ? { path: args.path, namespace: "cairn-missing" } : { errors: [{ text: REFUSED }] };
      });
      build.onLoad({ filter: /.*/ }, async ({ path: file, namespace }) => {
        if (!READS.test(namespace)) return undefined;
        let found;
        try {
          found = realpathSync(file);
        } catch {
          found = "";
        }
        if (!isInside(real, found)) return { errors: [{ text: REFUSED }] };
        if (namespace !== "file" || /\.(json|txt)$/.test(file)) return undefined; // others ask withoutForeignMap() themselves
        const bytes = await readFile(file);
        const safe = withoutForeignMap(job, bytes);
        return safe === bytes ? undefined : { contents: safe, loader: "default", resolveDir: path.dirname(file) };
      });
    },
  };
}

/**
 * The bytes, or others in which no comment names a source map that is not beside the module or below. In a
 * text of the script the escape means what stood there.
 */
export function withoutForeignMap(job, bytes) {
  if (!job.inside) return bytes;
  const text = bytes.toString("latin1");
  const safe = text.replace(MAP, (whole, before, url) =>
    url.startsWith("data:") || (/^[\w.\-/]+$/.test(url) && !url.startsWith("/") && !url.split("/").includes("..")) ? whole : `${before}\\u003d${url}`);
  return safe === text ? bytes : Buffer.from(safe, "latin1");
}
