// Whether a campaign finds what is wrong: somebody who is not honest before the nodes (plants.mjs), and bugs in the decisions of real servers
// (test/cluster/broken.c).
//
//     CAIRN=build/cairn-broken node test/cluster/server/planted.mjs [NAME]
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../../integration/lib/server.mjs";
import { plants } from "./plants.mjs";

const names = /enum cn_broken \{([^}]*)\}/.exec(readFileSync(path.join(root, "src/cluster/member_private.h"), "utf8"))[1].match(/CN_BROKEN_\w+/g);
const number = (name) => {
  const found = names.indexOf(`CN_BROKEN_${name.toUpperCase().replaceAll("-", "_")}`);
  if (found < 0) throw new Error(`${name}: no such bug`);
  return String(found);
};
/** Bugs of servers, with the faults that show them. The others of the simulation need rarer meetings, or are in what a server's host does anew. */
const servers = {
  "hasty-fence": "freeze,cut,cut out", // C2: a session is ended while its node may answer
};

let missed = 0;
async function run(name, env, ...more) {
  if (process.argv[2] && process.argv[2] !== name) return;
  const argv = [fileURLToPath(new URL("campaign.mjs", import.meta.url)), "--quick", "--failovers", "0", "--expect-wrong", "--quiet", ...more];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  console.log(`${name.padEnd(18)} ${code === 0 ? "found" : "NOT FOUND"}: ${/^lost .*$/m.exec(output)?.[0] ?? output.slice(-300)}`);
  if (code !== 0) missed++;
}
for (const name of Object.keys(plants)) await run(name, {}, "--plant", name, "--only", "kill", "--faults", "2");
for (const [name, kinds] of Object.entries(servers)) await run(name, { CAIRN_BROKEN: number(name) }, "--only", kinds, "--faults", "16");
process.exit(missed ? 1 : 0);
