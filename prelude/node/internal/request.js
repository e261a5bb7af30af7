// For which request code runs: what belongs to one request, as /tmp does, is kept by this.
import { native } from "./internals.js";

const clock = native.clock(); // src/js/vm.h
const REQUEST_HIGH = 3;
const REQUEST_LOW = 4;

/** A text that no other request has; that of code which runs for none is "0:0". */
export const request = () => `${clock[REQUEST_HIGH]}:${clock[REQUEST_LOW]}`;
