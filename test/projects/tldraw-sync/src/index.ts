import { DurableObjectSqliteSyncWrapper, SQLiteSyncStorage, TLSocketRoom } from "@tldraw/sync-core";
import { createTLSchema, type TLRecord } from "@tldraw/tlschema";
import { DurableObject } from "cloudflare:workers";

type Env = { ROOMS: DurableObjectNamespace<Room> };
const schema = createTLSchema();

export class Room extends DurableObject<Env> {
  room = new TLSocketRoom<TLRecord, void>({ schema, storage: new SQLiteSyncStorage<TLRecord>({ sql: new DurableObjectSqliteSyncWrapper(this.ctx.storage) }) });
  async fetch(request: Request) {
    const url = new URL(request.url), sessionId = url.searchParams.get("sessionId");
    if (!sessionId) return Response.json({ sessions: this.room.getNumActiveSessions(), records: this.room.getCurrentSnapshot().documents.map((d) => (d.state as TLRecord).id).sort() });
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    this.room.handleSocketConnect({ sessionId, socket: server });
    return new Response(null, { status: 101, webSocket: client });
  }
}
export default { fetch: (request: Request, env: Env) => env.ROOMS.getByName(new URL(request.url).pathname).fetch(request) };
