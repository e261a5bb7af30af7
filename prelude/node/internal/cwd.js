// The current directory, for node:fs and node:process.
//
// W1  A request begins in /bundle, whatever another request or the script's start has changed.
import { request } from "./request.js";

const HOME = "/bundle";
let current = HOME;
let owner = ""; // the request that has changed it

export const getCwd = () => (owner === request() ? current : HOME);
export function setCwd(path) {
  owner = request();
  current = path;
}
