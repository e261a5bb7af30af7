// node:child_process: the one child, which is esbuild (src/bundler/child.h).
import native from "./native.mjs";

let onData = () => {};
let onEnd = () => {};

/** It has written something. */
export const received = (bytes) => onData(bytes);
/** It has ended. */
export const ended = () => onEnd();

export function spawn(command, args) {
  native.start(command, ...args);
  const none = () => {};
  return {
    stdin: { write: (bytes) => native.send(bytes), on: none, unref: none, destroy: none },
    stdout: {
      on(event, listener) {
        if (event === "data") onData = listener;
        if (event === "end") onEnd = listener;
      },
      unref: none,
      destroy: none,
    },
    on: none,
    ref: none,
    unref: none,
    kill: none,
  };
}
