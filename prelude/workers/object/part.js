// Objects, WebSockets, calls by reference and events that do not come by HTTP: what a script that has no binding and no class for
// it, and is sent nothing of the kind, need not parse. dispatch.js has it evaluated before the script, if it is known to
// be needed.
export { dispatchEvent } from "../events.js";
export { WebSocket, WebSocketPair, WebSocketRequestResponsePair, useInResponse, webSocketFetch } from "./websocket.js";
export { makeExports, makeService } from "../service.js";
export { objectCreate, objectDeliver, objectDestroy, objectSocket, setClasses } from "./host.js";
export { makeNamespace, quiet } from "./id.js";
export { localReply } from "./local.js";
export { RpcPromise, RpcProperty, RpcStub, RpcTarget, ServiceStub } from "./rpc.js";
