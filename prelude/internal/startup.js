// What a script may not do while it starts: there is no event yet that I/O could belong to.
//
// G1  From the first statement of a script until its exports are known, whatever needs an event
//     (I/O, timers, random values, waitUntil) throws, or rejects if it returns a promise, with the
//     platform's words. What merely computes works.

let starting = false;

/** dispatch.js: the script is being evaluated, or has been. */
export function setStarting(value) {
  starting = value;
}

const MESSAGE = "Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), setting a timeout, and generating random values are not allowed within global scope. To fix this error, perform this operation within a handler. https://developers.cloudflare.com/workers/runtime-apis/handlers/";

/** Throws while the script starts (G1). */
export function needsEvent() {
  if (starting) throw new Error(MESSAGE);
}

/** True while the script starts. */
export const isStarting = () => starting;
