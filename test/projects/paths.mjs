// Where things are.
import path from "node:path";
import { fileURLToPath } from "node:url";

export const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.join(here, "../..");
export const out = path.join(root, "build/projects");
export const toolsDir = path.join(out, ".tools");

/** What commands of a project see: its own programs first, then Node.js and wrangler of tools.json. */
export const environment = (dir) => ({
  ...process.env,
  PATH: [path.join(dir, "node_modules/.bin"), path.join(toolsDir, "node_modules/.bin"), process.env.PATH].join(":"),
  CI: "1",
  npm_config_yes: "true",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  NEXT_TELEMETRY_DISABLED: "1",
  NUXT_TELEMETRY_DISABLED: "1",
  ASTRO_TELEMETRY_DISABLED: "1",
  PRISMA_HIDE_UPDATE_MESSAGE: "1",
  CHECKPOINT_DISABLE: "1",
  PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true", // a program that `prisma generate` fetches and does not run
});
