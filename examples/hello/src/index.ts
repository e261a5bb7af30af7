interface Env {
  GREETING: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === "/json") return Response.json({ path: url.pathname, query: Object.fromEntries(url.searchParams) });
    return new Response(`${env.GREETING}, ${url.searchParams.get("name") ?? "world"}!\n`);
  },
};
