// Counters that stay: an example of a service.
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { callService } from "./call.js";

const token = Symbol("construct");

class Tally {
  #ns;
  constructor(key, ns) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#ns = ns;
  }
  get() {
    return callService((callback) => native.tally(this.#ns, undefined, callback));
  }
  async add(by = 1) {
    if (!Number.isSafeInteger(by)) throw new TypeError("add() takes a whole number");
    return callService((callback) => native.tally(this.#ns, by, callback));
  }
}
finishInterface(Tally);

export const makeBinding = ({ ns }) => new Tally(token, ns);
