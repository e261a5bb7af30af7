// Rooms that are built and tested without JavaScript: no file of theirs includes a header of js/ or of JavaScriptCore,
// neither itself nor by way of others. Prints a line for each that does.
import { existsSync, readdirSync, readFileSync } from "node:fs";

const WITHOUT = ["base", "text", "html", "crypto", "codec", "net", "store", "membership", "peer", "shard", "analytics", "assets", "object", "module", "service", "background", "admin", "v4", "config", "project", "fleet", "deploy", "server", "cli"];
const found = new Map(); // a file of src/ -> what it includes

function includes(file) {
  if (!found.has(file)) {
    const lines = readFileSync(`src/${file}`, "utf8").matchAll(/^#include [<"]([^>"]+)[>"]/gm);
    found.set(file, Array.from(lines, (line) => line[1]));
  }
  return found.get(file);
}

// The way from a file to JavaScript, or null.
function way(file, seen) {
  for (const name of includes(file)) {
    if (/^(js|JavaScriptCore)\//.test(name)) return [file, name];
    if (seen.has(name) || !existsSync(`src/${name}`)) continue;
    seen.add(name);
    const rest = way(name, seen);
    if (rest) return [file, ...rest];
  }
  return null;
}

// The part of a service that is in the room of bindings/ (src/service/def.h).
const OTHERS = /^service\/\w+\/natives\w*\.[ch]$/;

for (const room of WITHOUT)
  for (const name of readdirSync(`src/${room}`, { recursive: true }).sort()) {
    if (OTHERS.test(`${room}/${name}`)) continue;
    const steps = /\.[ch]$/.test(name) && way(`${room}/${name}`, new Set());
    if (steps) console.log(`src/${steps[0]}: knows JavaScript by way of ${steps.slice(1).join(", ")}`);
  }
