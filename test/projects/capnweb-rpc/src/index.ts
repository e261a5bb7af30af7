import { newWorkersRpcResponse, RpcTarget } from "capnweb";
import { DurableObject } from "cloudflare:workers";

interface Env {
  COUNTER: DurableObjectNamespace<Counter>;
}
export class Counter extends DurableObject<Env> {
  async add(n: number) {
    const value = ((await this.ctx.storage.get<number>("n")) ?? 0) + n;
    await this.ctx.storage.put("n", value);
    return value;
  }
}
class Account extends RpcTarget {
  constructor(private name: string, private env: Env) {
    super();
  }
  get owner() {
    return this.name;
  }
  add(n: number) {
    return this.env.COUNTER.getByName(this.name).add(n);
  }
  async each(items: number[], callback: (n: number) => Promise<number>) {
    return Promise.all(items.map((n) => callback(n)));
  }
}
class Api extends RpcTarget {
  constructor(private env: Env) {
    super();
  }
  login(name: string) {
    if (!name) throw new RangeError("who are you?");
    return new Account(name, this.env);
  }
  echo(value: unknown) {
    return value;
  }
}
export default {
  fetch: (request: Request, env: Env) => (new URL(request.url).pathname === "/api" ? newWorkersRpcResponse(request, new Api(env)) : new Response("not here", { status: 404 })),
};
