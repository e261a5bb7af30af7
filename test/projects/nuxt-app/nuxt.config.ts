export default defineNuxtConfig({
  compatibilityDate: "2026-01-01",
  telemetry: false,
  nitro: { preset: "cloudflare_module", cloudflare: { deployConfig: true, nodeCompat: true, wrangler: { name: "nuxt-app", compatibility_date: "2026-10-01", kv_namespaces: [{ binding: "NOTES", id: "notes" }] } }, experimental: { websocket: true } },
  routeRules: { "/old": { redirect: "/" }, "/headers": { headers: { "x-rule": "yes" } } },
});
