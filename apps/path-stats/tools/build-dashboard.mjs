// Bundles the dashboard (React) into public/dashboard/app.js. wrangler.toml calls it before every build. What has not changed is not
// written: `cairn dev` would take it for a change.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const outfile = at("public/dashboard/app.js");

const { outputFiles: [built] } = await esbuild.build({
  entryPoints: [at("dashboard/main.tsx")],
  outfile,
  write: false,
  bundle: true,
  minify: true,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});

function present() {
  try {
    return readFileSync(outfile, "utf8");
  } catch {
    return null;
  }
}
if (present() !== built.text) {
  const part = `${outfile}.${process.pid}`;
  writeFileSync(part, built.text);
  renameSync(part, outfile);
}
