import { env } from "cloudflare:workers";
import { createRequestHandler } from "react-router";

const handler = createRequestHandler(() => import("virtual:react-router/server-build"), import.meta.env.MODE);
export default {
  async fetch(request: Request) {
    await (env as any).DB.exec("create table if not exists guests (id integer primary key, name text not null)");
    return handler(request);
  },
};
