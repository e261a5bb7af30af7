import { createRequestHandler } from "@remix-run/cloudflare";
// @ts-ignore: made by the build
import * as build from "./build/server";

const handle = createRequestHandler(build as never);
export default {
  fetch: (request: Request, env: any, ctx: ExecutionContext) => handle(request, { cloudflare: { env, ctx } } as never),
};
