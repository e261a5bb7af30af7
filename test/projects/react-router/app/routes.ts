import { index, route, type RouteConfig } from "@react-router/dev/routes";

export default [index("routes/home.tsx"), route("guests/:id", "routes/guest.tsx"), route("api/time", "routes/api.ts")] satisfies RouteConfig;
