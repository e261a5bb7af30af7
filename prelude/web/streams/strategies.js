// https://streams.spec.whatwg.org/#qs-api
import { finishInterface } from "../../internal/interface.js";
import { illegalInvocation, isObject } from "./common.js";

const sizeOfBytes = { size: (chunk) => chunk?.byteLength }.size;
const sizeOfOne = { size: () => 1 }.size;

function markOf(init, name) {
  if (!isObject(init)) throw new TypeError(`${name} needs an object with highWaterMark.`);
  return +init.highWaterMark; // NaN if there is none: a stream refuses that
}

class ByteLengthQueuingStrategy {
  #mark;
  constructor(init) {
    this.#mark = markOf(init, "ByteLengthQueuingStrategy");
  }
  get highWaterMark() {
    if (!(#mark in this)) throw illegalInvocation("ByteLengthQueuingStrategy");
    return this.#mark;
  }
  get size() {
    if (!(#mark in this)) throw illegalInvocation("ByteLengthQueuingStrategy");
    return sizeOfBytes;
  }
}

class CountQueuingStrategy {
  #mark;
  constructor(init) {
    this.#mark = markOf(init, "CountQueuingStrategy");
  }
  get highWaterMark() {
    if (!(#mark in this)) throw illegalInvocation("CountQueuingStrategy");
    return this.#mark;
  }
  get size() {
    if (!(#mark in this)) throw illegalInvocation("CountQueuingStrategy");
    return sizeOfOne;
  }
}

for (const strategy of [ByteLengthQueuingStrategy, CountQueuingStrategy]) {
  finishInterface(strategy);
}
export { ByteLengthQueuingStrategy, CountQueuingStrategy };
