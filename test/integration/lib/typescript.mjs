// Imports a TypeScript file into a test, bundled as a build would.
import esbuild from "esbuild";

/** What a module of a worker needs to be evaluated here; what it calls there is not here. */
const workers = {
  name: "cloudflare:workers",
  setup(build) {
    build.onResolve({ filter: /^cloudflare:workers$/ }, ({ path }) => ({ path, namespace: "workers" }));
    build.onLoad({ filter: /.*/, namespace: "workers" }, () => ({ contents: "export class DurableObject {}" }));
  },
};

export async function load(file) {
  const { outputFiles } = await esbuild.build({ entryPoints: [file], bundle: true, format: "esm", write: false, external: ["node:*"], plugins: [workers], jsx: "automatic" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
