import { DurableObject } from "cloudflare:workers";
import { GraphQLInt, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from "graphql";
import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer } from "graphql-ws";

type Env = { HUB: DurableObjectNamespace<Hub> };

export class Hub extends DurableObject<Env> {
  listeners = new Set<(text: string) => void>();
  schema = new GraphQLSchema({
    query: new GraphQLObjectType({ name: "Query", fields: { listeners: { type: new GraphQLNonNull(GraphQLInt), resolve: () => this.listeners.size } } }),
    mutation: new GraphQLObjectType({
      name: "Mutation",
      fields: { say: { type: GraphQLInt, args: { text: { type: new GraphQLNonNull(GraphQLString) } }, resolve: (_, { text }) => (this.listeners.forEach((l) => l(text)), this.listeners.size) } },
    }),
    subscription: new GraphQLObjectType({
      name: "Subscription",
      fields: {
        said: { type: GraphQLString, subscribe: () => this.said(), resolve: (text) => text },
        count: { type: GraphQLInt, args: { to: { type: new GraphQLNonNull(GraphQLInt) } }, subscribe: async function* (_, { to }) { for (let i = 1; i <= to; i++) yield i; }, resolve: (n) => n },
      },
    }),
  });
  server = makeServer({ schema: this.schema, onConnect: (ctx) => ctx.connectionParams?.token === "good" });

  said(): AsyncIterableIterator<string> {
    const queue: string[] = [];
    let wake = () => {};
    const listener = (text: string) => (queue.push(text), wake());
    this.listeners.add(listener);
    const done = async () => (this.listeners.delete(listener), { value: undefined, done: true as const });
    return {
      [Symbol.asyncIterator]() { return this; },
      async next() {
        while (!queue.length) await new Promise<void>((resolve) => { wake = resolve; });
        return { value: queue.shift()!, done: false };
      },
      return: done,
      throw: done,
    };
  }
  async fetch(request: Request) {
    if (request.headers.get("upgrade") !== "websocket") return new Response("a socket is wanted", { status: 426 });
    const { 0: client, 1: socket } = new WebSocketPair();
    socket.accept();
    let receive: (data: string) => Promise<void>;
    const closed = this.server.opened(
      {
        protocol: GRAPHQL_TRANSPORT_WS_PROTOCOL,
        send: async (data) => socket.send(data),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (handle) => { receive = handle; },
      },
      {},
    );
    socket.addEventListener("message", async (event) => {
      try {
        await receive(String(event.data));
      } catch (error) {
        socket.close(CloseCode.InternalServerError, (error as Error).message);
      }
    });
    socket.addEventListener("close", (event) => closed(event.code, event.reason));
    return new Response(null, { status: 101, webSocket: client, headers: { "sec-websocket-protocol": GRAPHQL_TRANSPORT_WS_PROTOCOL } });
  }
}
export default { fetch: (request: Request, env: Env) => env.HUB.getByName("one").fetch(request) };
