// Processes with their children: what a signal to a whole server means.
import { readFileSync, readdirSync } from "node:fs";

/** Process ids of a process and all below it, parents first. */
export function tree(pid) {
  const parents = new Map();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
      parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {} // it has ended meanwhile
  }
  const all = [pid];
  for (let i = 0; i < all.length; i++) for (const [child, parent] of parents) if (parent === all[i]) all.push(child);
  return all;
}

/** Process ids of those called `name` (as in /proc/PID/comm) that have `word` among their arguments. */
export function called(name, word) {
  return readdirSync("/proc").filter((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      return readFileSync(`/proc/${entry}/comm`, "latin1").trim() === name && readFileSync(`/proc/${entry}/cmdline`, "latin1").split("\0").includes(word);
    } catch {
      return false; // it has ended meanwhile
    }
  }).map(Number);
}

export function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Parents first; once more for what they started meanwhile. */
export function signalTree(pid, name) {
  const done = new Set();
  for (let i = 0; i < 3; i++)
    for (const each of tree(pid)) {
      if (done.has(each)) continue;
      done.add(each);
      signal(each, name);
    }
}
