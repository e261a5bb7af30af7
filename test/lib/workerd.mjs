// What the runs on workerd share.
import readline from "node:readline";
import { fileURLToPath } from "node:url";

/** The program, which `make workerd` brings. */
export const WORKERD = fileURLToPath(new URL("../workerd/node_modules/@cloudflare/workerd-linux-64/bin/workerd", import.meta.url));

/** The ports of `count` sockets, by name, as workerd tells them on its control descriptor 3; fails if it ends first. */
export async function listening(child, count) {
  const ports = new Map();
  await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`workerd ended at start (${code})`)));
    readline.createInterface({ input: child.stdio[3] }).on("line", (line) => {
      const event = JSON.parse(line);
      if (event.event === "listen") ports.set(event.socket, event.port);
      if (ports.size === count) resolve();
    });
  });
  return ports;
}
