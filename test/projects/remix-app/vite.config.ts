import { vitePlugin as remix } from "@remix-run/dev";
import { defineConfig } from "vite";

export default defineConfig({ plugins: [remix()], ssr: { resolve: { conditions: ["workerd", "worker", "browser"] } }, resolve: { mainFields: ["browser", "module", "main"] }, build: { minify: true } });
