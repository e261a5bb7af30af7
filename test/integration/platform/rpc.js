import { DurableObject, RpcPromise, RpcProperty, RpcStub, RpcTarget, ServiceStub, WorkerEntrypoint, waitUntil } from "cloudflare:workers";

let atStart = [];
for (const [name, f] of Object.entries({
  waitUntil: () => waitUntil(null),
  setTimeout: () => setTimeout(() => {}, 1),
  random: () => crypto.getRandomValues(new Uint8Array(4)),
  uuid: () => crypto.randomUUID(),
})) {
  try {
    f();
    atStart.push([name, "worked"]);
  } catch (error) {
    atStart.push([name, error.message.slice(0, 54)]);
  }
}
const fetched = fetch("http://127.0.0.1:1/").then(() => "worked", (error) => error.message.slice(0, 54));
const digest = crypto.subtle.digest("SHA-256", new Uint8Array(1)).then((bytes) => bytes.byteLength);

class Counter extends RpcTarget {
  count = 0;
  gone = Promise.withResolvers();
  add(n) { return (this.count += n); }
  fetch(a) { return `fetched ${a}`; }
  [Symbol.dispose]() { this.gone.resolve("disposed"); }
}

class Other {
  method() { return 1; }
}

export class Service extends WorkerEntrypoint {
  get things() { return { add: (a, b) => a + b, other: new Other(), text: "t", deep: { f: () => "deep" } }; }
  get later() { return Promise.resolve(7); }
  counter() { return new Counter(); }
  use(stub) { return stub.add(1); }
  leak(stub) { stub.dup(); return "leaked"; }
  kept(stub) {
    const own = stub.dup();
    return { add: (n) => own.add(n), [Symbol.dispose]() { own[Symbol.dispose](); } };
  }
  call(f, ...args) { return f(...args); }
  prop(object, name) { return object[name]; }
  withFunction() { return Object.assign(() => "called", { own: 3 }); }
  promised(f) { return f(); }
  nested(f) { return { value: f() }; }
  bare() { return Object.assign(Object.create(null), { a: 1 }); }
  plain() { return { a: 1 }; }
}

export class Thing extends DurableObject {
  boom() { throw Object.assign(new Error("boom"), { code: 7 }); }
  plain() { return { a: 1 }; }
}
export class Bare {
  fetch() { return new Response("bare"); }
  method() { return 1; }
}

const failure = (f) => Promise.resolve().then(f).then(() => "worked", (error) => `${error.name}: ${error.message}`);

export const checks = {
  atStart: async () => [...atStart, await fetched, await digest],
  async classes(env) {
    const stub = new RpcStub(new Counter());
    return [stub instanceof RpcStub, stub.add instanceof RpcProperty, stub.add(1) instanceof RpcPromise, env.SERVICE instanceof ServiceStub, env.SERVICE instanceof RpcStub];
  },
  async members(env) {
    const { SERVICE } = env;
    const f = await SERVICE.withFunction();
    return [
      await SERVICE.things.add(1, 2), await SERVICE.things.deep.f(), await f(), await f.own, await SERVICE.later.finally(() => {}),
      await new RpcStub({ sum: (a, b) => a + b }).sum(1, 2), await new RpcStub(new Counter()).fetch("x"),
      await failure(() => SERVICE.things.other.method()), await failure(() => SERVICE.things.nothing), await failure(() => SERVICE.fetch.call),
      await failure(() => SERVICE.plain().b()), await failure(() => SERVICE.plain().a.b), await failure(() => SERVICE.bare()),
      await failure(() => new RpcStub(new Other())),
    ];
  },
  async sends(env) {
    const { SERVICE } = env;
    const f = () => ({ x: 1 });
    return [await SERVICE.promised(f).x, await failure(() => SERVICE.nested(f)), await failure(() => SERVICE.call(SERVICE.plain)), await failure(() => SERVICE.call(SERVICE.plain()))];
  },
  async proxies(env) {
    const { SERVICE } = env;
    const seen = new Proxy({ add: (n) => n + 1 }, { get: (target, name) => (name === "add" ? (n) => target.add(n) * 10 : target[name]) });
    const counting = new Proxy(new Counter(), {});
    return [await SERVICE.use(seen), await failure(() => SERVICE.use(new Proxy(new Other(), {}))), await failure(() => SERVICE.use(counting))];
  },
  /** With the flag of the other half, a stub that is sent is gone. */
  async ownership(env) {
    const stub = new RpcStub(new Counter());
    await env.SERVICE.use(stub);
    return failure(() => stub.add(1));
  },
  async disposal(env) {
    const counter = new Counter();
    const result = await env.SERVICE.kept(counter);
    const first = await result.add(5);
    result[Symbol.dispose]();
    const leaked = new Counter();
    await env.SERVICE.leak(leaked);
    return [first, await counter.gone.promise, await leaked.gone.promise, typeof (await env.SERVICE.plain())[Symbol.dispose], typeof (await env.THING.getByName("a").plain())[Symbol.dispose]];
  },
  async errors(env) {
    const id = env.THING.idFromName("x");
    try {
      await env.THING.get(id).boom();
    } catch (error) {
      return [error.message, error.code, error.remote, error.durableObjectId === `${id}`];
    }
  },
  async withoutExtends(env) {
    const stub = env.BARE.getByName("x");
    return [await (await stub.fetch("http://x/")).text(), (await failure(() => stub.method())).slice(0, 62)];
  },
};

export default {
  async fetch(request, env) {
    const name = new URL(request.url).pathname.slice(1);
    return Response.json(await checks[name](env));
  },
};
