import { OAuthProvider, type OAuthHelpers } from "@cloudflare/workers-oauth-provider";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpAgent } from "agents/mcp";
import { z } from "zod";

interface Env {
  OAUTH_PROVIDER: OAuthHelpers;
  MCP_OBJECT: DurableObjectNamespace<Notes>;
}
type Props = { login: string };

export class Notes extends McpAgent<Env, { notes: string[] }, Props> {
  server = new McpServer({ name: "notes", version: "1.0.0" });
  initialState = { notes: [] as string[] };
  async init() {
    this.server.registerTool("add-note", { description: "keeps a note", inputSchema: { text: z.string().min(1) } }, async ({ text }) => {
      this.setState({ notes: [...this.state.notes, `${this.props?.login}: ${text}`] });
      return { content: [{ type: "text", text: `note ${this.state.notes.length}` }] };
    });
    this.server.registerTool("list-notes", { description: "lists notes" }, async () => ({ content: this.state.notes.map((text) => ({ type: "text", text })) }));
    this.server.registerResource("all", "notes://all", { mimeType: "text/plain" }, async (uri) => ({ contents: [{ uri: uri.href, text: this.state.notes.join("\n") }] }));
    this.server.registerPrompt("sum-up", { argsSchema: { words: z.string() } }, ({ words }) => ({ messages: [{ role: "user", content: { type: "text", text: `Sum up in ${words} words.` } }] }));
  }
}
const login = {
  async fetch(request: Request, env: Env) {
    const url = new URL(request.url);
    if (url.pathname !== "/authorize") return new Response("Not found", { status: 404 });
    if (request.method === "GET") {
      const asked = await env.OAUTH_PROVIDER.parseAuthRequest(request);
      const client = await env.OAUTH_PROVIDER.lookupClient(asked.clientId);
      return Response.json({ client: client?.clientName, scope: asked.scope });
    }
    const asked = await env.OAUTH_PROVIDER.parseAuthRequest(new Request(request.url));
    const user = String((await request.formData()).get("login"));
    const { redirectTo } = await env.OAUTH_PROVIDER.completeAuthorization({ request: asked, userId: user, metadata: {}, scope: asked.scope, props: { login: user } });
    return Response.redirect(redirectTo, 302);
  },
};
const provider = (origin: string) => new OAuthProvider({
  apiHandlers: { "/mcp": Notes.serve("/mcp", { binding: "MCP_OBJECT" }) as never },
  defaultHandler: login as never,
  authorizeEndpoint: "/authorize",
  tokenEndpoint: "/token",
  clientRegistrationEndpoint: "/register",
  scopesSupported: ["notes"],
  resourceMetadata: { resource: `${origin}/mcp` },
});
export default { fetch: (request: Request, env: Env, ctx: ExecutionContext) => provider(new URL(request.url).origin).fetch(request, env as never, ctx) };
