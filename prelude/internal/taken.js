// What a compatibility flag takes from scripts.
//
// T1  What a flag takes from scripts, the prelude keeps: its own modules have it by import (primordials.js, or the module that makes
//     it), and those of Node.js find it among the globals while they are evaluated.
import { isFlagOff } from "./native.js";

const NAMES = {
  enable_weak_ref: ["WeakRef", "FinalizationRegistry"],
  expose_global_message_channel: ["MessageChannel", "MessagePort"],
  global_navigator: ["Navigator", "navigator"],
};
const taken = new Map(); // name -> its descriptor
const { defineProperty, getOwnPropertyDescriptor } = Object;

const place = (name, descriptor) => (descriptor ? defineProperty(globalThis, name, descriptor) : delete globalThis[name]);

/** Once, when all globals are there. */
export function takeAway() {
  for (const flag of Object.keys(NAMES)) {
    if (!isFlagOff(flag)) continue;
    for (const name of NAMES[flag]) {
      taken.set(name, getOwnPropertyDescriptor(globalThis, name));
      delete globalThis[name];
    }
  }
}

/** Puts them back for as long as `f` runs, which is code of the prelude; a script may have put something of its own in their place. */
export function withTaken(f) {
  const theirs = new Map();
  taken.forEach((descriptor, name) => {
    theirs.set(name, getOwnPropertyDescriptor(globalThis, name));
    place(name, descriptor);
  });
  try {
    return f();
  } finally {
    theirs.forEach((descriptor, name) => void place(name, descriptor));
  }
}
