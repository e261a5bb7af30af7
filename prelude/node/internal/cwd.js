// The current directory, for node:fs and node:process.
//
// W1  An event begins in /bundle: what another event, or the script's start, has changed is forgotten,
//     unless they are under way together.
import { isStarting, native } from "./internals.js";

const HOME = "/bundle";
let current = HOME;
let users = null; // the events that were under way when it was changed; null: the script was starting

export function getCwd() {
  if (current === HOME) return current;
  const kept = users === null ? isStarting() : isStarting() || users.length === 0 || native.eventsUnderWay().some((event) => users.includes(event));
  if (!kept) current = HOME;
  return current;
}
export function setCwd(path) {
  users = isStarting() ? null : native.eventsUnderWay();
  current = path;
}
