// The current directory, for node:fs and node:process.
//
// W1  A request begins in /bundle, whatever other requests or the script's start have changed. Those of
//     the REQUESTS_MAX requests that changed theirs last are kept.
import { request } from "./request.js";

export const HOME = "/bundle";
const REQUESTS_MAX = 256;
const directories = new Map(); // request -> its directory, the one changed last at the end

export const getCwd = () => (directories.size === 0 ? HOME : directories.get(request()) ?? HOME);
export function setCwd(path) {
  const id = request();
  directories.delete(id);
  if (path === HOME) return;
  if (directories.size >= REQUESTS_MAX) directories.delete(directories.keys().next().value);
  directories.set(id, path);
}
