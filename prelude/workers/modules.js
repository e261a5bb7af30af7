// The modules a script imports from the runtime rather than from its bundle.
import { RpcTarget } from "./object/rpc.js";
import { connect } from "./sockets.js";

/** What `cloudflare:workers` exports as `env`; a proxy so that it can be imported before start. */
let environment = {};
export function setEnv(value) {
  environment = value;
}
const envProxy = new Proxy(
  {},
  {
    get: (_, key) => environment[key],
    has: (_, key) => key in environment,
    ownKeys: () => Reflect.ownKeys(environment),
    getOwnPropertyDescriptor: (_, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(environment, key);
      if (descriptor) descriptor.configurable = true;
      return descriptor;
    },
  },
);

export class WorkerEntrypoint {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class DurableObject {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** Module namespaces by specifier; the bundler resolves imports to these. */
export const modules = {
  "cloudflare:sockets": { connect },
  "cloudflare:workers": { env: envProxy, WorkerEntrypoint, DurableObject, RpcTarget },
};
