// Whether a campaign finds what is wrong: somebody who is not honest before the nodes (plants.mjs), and bugs in the decisions of real servers
// (test/cluster/broken.c).
//
//     CAIRN=build/cairn-broken node test/cluster/server/planted.mjs [NAME]     without a name: those that must be found
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../../integration/lib/server.mjs";
import { plants } from "./plants.mjs";

const names = /enum cn_broken \{([^}]*)\}/.exec(readFileSync(path.join(root, "src/membership/member_private.h"), "utf8"))[1].match(/CN_BROKEN_\w+/g);
const number = (name) => {
  const found = names.indexOf(`CN_BROKEN_${name.toUpperCase().replaceAll("-", "_")}`);
  if (found < 0) throw new Error(`${name}: no such bug`);
  return String(found);
};
/** Bugs of servers, with the faults that could show them. They need rare meetings (the simulation is there for that), so it is told, not judged. */
const servers = {
  "hasty-fence": "blink", // C2: a session is ended while its node may answer
  "no-tail": "kill,kill all,cut", // C3: what the engine has and the replica has not is not read
};

let missed = 0;
async function run(name, must, env, ...more) {
  if (process.argv[2] ? process.argv[2] !== name : !must) return;
  const argv = [fileURLToPath(new URL("campaign.mjs", import.meta.url)), "--quick", "--failovers", "0", "--expect-wrong", "--quiet", ...more];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  console.log(`${name.padEnd(18)} ${code === 0 ? "found" : "NOT FOUND"}: ${/^lost .*$/m.exec(output)?.[0] ?? output.slice(-300)}`);
  if (code !== 0 && must) missed++;
}
for (const name of Object.keys(plants)) await run(name, true, {}, "--plant", name, "--only", "kill", "--faults", "2");
for (const [name, kinds] of Object.entries(servers)) await run(name, false, { CAIRN_BROKEN: number(name) }, "--only", kinds, "--faults", "25", "--clients", "30", "--objects", "6", "--think", "5");
process.exit(missed ? 1 : 0);
