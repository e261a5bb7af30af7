// capnweb: calls with pipelining over a MessageChannel; batches over HTTP.
import { RpcTarget, newMessagePortRpcSession, newWorkersRpcResponse } from "capnweb";

class Account extends RpcTarget {
  #name;
  constructor(name) {
    super();
    this.#name = name;
  }
  greet(greeting) {
    return `${greeting}, ${this.#name}`;
  }
}
class Api extends RpcTarget {
  login(token) {
    if (token !== "t-1") throw new RangeError("no such token");
    return new Account("Ann");
  }
  async square(n) {
    return n * n;
  }
}

export default {
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/rpc") return newWorkersRpcResponse(request, new Api());
    const { port1, port2 } = new MessageChannel();
    newMessagePortRpcSession(port1, new Api());
    const api = newMessagePortRpcSession(port2);
    const account = api.login("t-1"); // not awaited: the next call does not wait for it
    const [greeting, square] = await Promise.all([account.greet("Hello"), api.square(12)]);
    const refused = await api.login("x").catch((error) => `${error.name}: ${error.message}`);
    port1.close();
    return Response.json({ greeting, square, refused });
  },
};
