// The rate limiting binding: https://developers.cloudflare.com/workers/runtime-apis/bindings/rate-limit/
import { native } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { callService } from "./call.js";

const token = Symbol("construct");

class Ratelimit {
  #ns;
  #limit;
  #period;
  constructor(key, ns, limit, period) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#ns = ns;
    this.#limit = limit;
    this.#period = period;
  }
  async limit(options) {
    if (options === null || typeof options !== "object" || typeof options.key !== "string") {
      throw new TypeError("limit() takes an object with a key, which is a string");
    }
    for (const name of Object.keys(options)) {
      if (name !== "key") throw new TypeError(`limit(): unknown option "${name}"`);
    }
    const success = await callService((callback) => native.rateLimit(this.#ns, options.key, this.#limit, this.#period, callback));
    return { success };
  }
}
finishInterface(Ratelimit);

export function makeBinding({ ns, limit, period }) {
  return new Ratelimit(token, ns, limit, period);
}
