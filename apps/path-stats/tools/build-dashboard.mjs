// Bundles the dashboard (React) into public/dashboard/app.js. wrangler.toml calls it before every build.
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

await esbuild.build({
  entryPoints: [at("dashboard/main.tsx")],
  outfile: at("public/dashboard/app.js"),
  bundle: true,
  minify: true,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
