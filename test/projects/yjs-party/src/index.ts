import { type Connection, routePartykitRequest, Server } from "partyserver";
import { YServer } from "y-partyserver";
import * as Y from "yjs";

interface Env {
  Doc: DurableObjectNamespace<Doc>;
  Chat: DurableObjectNamespace<Chat>;
}
export class Doc extends YServer<Env> {
  static callbackOptions = { debounceWait: 50, debounceMaxWait: 200, timeout: 5000 };
  async onStart() {
    this.ctx.storage.sql.exec("create table if not exists documents (id text primary key, content blob)");
    return super.onStart();
  }
  async onLoad() {
    const [row] = this.ctx.storage.sql.exec("select content from documents where id = ?", this.name).toArray();
    if (row) Y.applyUpdate(this.document, new Uint8Array(row.content as ArrayBuffer));
  }
  async onSave() {
    this.ctx.storage.sql.exec("insert or replace into documents values (?, ?)", this.name, Y.encodeStateAsUpdate(this.document));
  }
  async onRequest() {
    const saved = this.ctx.storage.sql.exec("select length(content) as n from documents").toArray();
    return Response.json({ text: this.document.getText("text").toString(), saved: saved.length === 1 });
  }
}
export class Chat extends Server<Env> {
  static options = { hibernate: true };
  onConnect(connection: Connection) {
    connection.setState({ number: [...this.getConnections()].length });
    connection.send(`you are ${(connection.state as any).number}`);
    this.broadcast("someone came", [connection.id]);
  }
  onMessage(connection: Connection, message: string) {
    this.broadcast(`${(connection.state as any).number}: ${message}`);
  }
  onClose(connection: Connection) {
    this.broadcast(`${(connection.state as any).number} left`, [connection.id]);
  }
  getConnectionTags() {
    return ["member"];
  }
  async onRequest(request: Request) {
    return Response.json({ room: this.name, members: [...this.getConnections("member")].length, body: await request.text() });
  }
}
export default {
  async fetch(request: Request, env: Env) {
    return (await routePartykitRequest(request, env as never)) ?? new Response("no party", { status: 404 });
  },
};
