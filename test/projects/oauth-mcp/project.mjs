import { createHash } from "node:crypto";

/** A JSON-RPC message of the Streamable HTTP transport; the answer is an event or JSON. */
async function rpc(t, headers, method, params, id) {
  const answer = await t.post("/mcp", { jsonrpc: "2.0", method, params, ...(id && { id }) }, { headers: { accept: "application/json, text/event-stream", ...headers } });
  const data = /^data: (.*)$/m.exec(answer.text)?.[1];
  return { answer, message: data ? JSON.parse(data) : null };
}
export default {
  title: "MCP server with OAuth (Agents SDK, workers-oauth-provider)",
  does: "metadata, client registration, PKCE, tokens, refresh, revocation, forgeries refused; by token: tools, resources, prompts",
  packages: { agents: "0.32.0", "@cloudflare/workers-oauth-provider": "1.2.3", "@modelcontextprotocol/sdk": "1.32.2", "@modelcontextprotocol/server": "2.4.0", "@modelcontextprotocol/client": "2.4.0", zod: "4.6.7", ai: "7.0.169" },
  normalise: [
    [/"(client_id|client_secret|access_token|refresh_token)":"[^"]+"/g, '"$1":"…"'],
    [/([?&](?:code|client_id|code_challenge)=)[^&"]+/g, "$1…"],
    [/\b[0-9a-f]{64}\b/g, "<id>"],
    [/^id: [\w-]{21}:/gm, "id: …:"],
    [/\/register\/[\w-]+/g, "/register/…"],
  ],
  async script(t) {
    t.check((await t.get("/.well-known/oauth-authorization-server")).json().token_endpoint, "the metadata");
    await t.get("/.well-known/oauth-protected-resource");
    t.check((await rpc(t, {}, "tools/list", {}, 1)).answer.status === 401, "no token, no tools");
    await rpc(t, { authorization: "Bearer a:b:c" }, "tools/list", {}, 1);
    const redirect = "https://client.example/callback";
    const client = (await t.post("/register", { client_name: "A client", redirect_uris: [redirect], token_endpoint_auth_method: "none" })).json();
    t.check(client.client_id, "a client");
    const verifier = "v".repeat(64), challenge = createHash("sha256").update(verifier).digest("base64url");
    const query = new URLSearchParams({ response_type: "code", client_id: client.client_id, redirect_uri: redirect, scope: "notes", state: "s", code_challenge: challenge, code_challenge_method: "S256" });
    t.check((await t.get(`/authorize?${query}`)).json().client === "A client", "the question");
    await t.get(`/authorize?${new URLSearchParams({ ...Object.fromEntries(query), redirect_uri: "https://evil.example/" })}`, { quiet: true });
    const granted = await t.request(`/authorize?${query}`, { method: "POST", form: { login: "ada" } });
    const code = new URL(granted.headers.location).searchParams.get("code");
    const exchange = (more) => t.request("/token", { method: "POST", form: { client_id: client.client_id, ...more } });
    t.check((await exchange({ grant_type: "authorization_code", code, redirect_uri: redirect, code_verifier: "w".repeat(64) })).status === 400, "a wrong verifier");
    const again = await t.request(`/authorize?${query}`, { method: "POST", form: { login: "ada" } });
    const fresh = new URL(again.headers.location).searchParams.get("code");
    const tokens = (await exchange({ grant_type: "authorization_code", code: fresh, redirect_uri: redirect, code_verifier: verifier })).json();
    t.check(tokens.access_token && tokens.refresh_token, "tokens", tokens);
    const renewed = (await exchange({ grant_type: "refresh_token", refresh_token: tokens.refresh_token })).json();
    t.check(renewed.access_token, "renewed");
    const bearer = { authorization: `Bearer ${renewed.access_token}` };
    const hello = await rpc(t, bearer, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }, 1);
    t.check(hello.message?.result.serverInfo.name === "notes", "initialized", hello.answer.text);
    const session = { ...bearer, "mcp-session-id": hello.answer.headers["mcp-session-id"] };
    await rpc(t, session, "notifications/initialized", {});
    t.check((await rpc(t, session, "tools/list", {}, 2)).message.result.tools.length === 2, "two tools");
    t.check((await rpc(t, session, "tools/call", { name: "add-note", arguments: { text: "milk" } }, 3)).message.result.content[0].text === "note 1", "a note");
    t.check((await rpc(t, session, "tools/call", { name: "list-notes", arguments: {} }, 4)).message.result.content[0].text === "ada: milk", "who wrote it");
    await rpc(t, session, "tools/call", { name: "add-note", arguments: { text: "" } }, 5);
    await rpc(t, session, "tools/call", { name: "nothing", arguments: {} }, 6);
    await rpc(t, session, "resources/read", { uri: "notes://all" }, 7);
    await rpc(t, session, "prompts/get", { name: "sum-up", arguments: { words: "5" } }, 8);
    await rpc(t, session, "no/such/method", {}, 9);
    await rpc(t, { ...bearer, "mcp-session-id": "unknown" }, "tools/list", {}, 10);
    await t.request("/mcp", { method: "DELETE", headers: session });
    await exchange({ token: renewed.access_token });
    await exchange({ grant_type: "password" });
  },
};
