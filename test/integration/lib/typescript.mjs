// Imports a TypeScript file into a test, bundled as a build would.
import esbuild from "esbuild";

export async function load(file) {
  const { outputFiles } = await esbuild.build({ entryPoints: [file], bundle: true, format: "esm", write: false, external: ["cloudflare:workers"] });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
