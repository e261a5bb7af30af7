// cloudflare:node
import { handleAsNodeRequest, httpServerHandler } from "./http_server.js";
export default { handleAsNodeRequest, httpServerHandler };
