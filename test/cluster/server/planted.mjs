// Whether a campaign finds bugs that are planted into the decisions of real servers (test/cluster/broken.c): each rule that is broken must show.
//
//     CAIRN=build/cairn-broken node test/cluster/server/planted.mjs [NAME]
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../../integration/lib/server.mjs";

const names = /enum cn_broken \{([^}]*)\}/.exec(readFileSync(path.join(root, "src/cluster/member_private.h"), "utf8"))[1].match(/CN_BROKEN_\w+/g);
/** What is planted, and the faults that show it. The others of the simulation need rarer meetings, or are in parts that a server has anew. */
const planted = {
  "no-tail": "kill,kill all,cut", // C3: what the engine has and the replica has not is not read
  "hasty-fence": "freeze,cut,cut out", // C2: a session is ended while its node may answer
  "lease-from-answer": "cut in,cut out,cut", // C5
  "move-early": "drain,stop,guest", // C7
};

let missed = 0;
for (const [name, kinds] of Object.entries(planted)) {
  if (process.argv[2] && process.argv[2] !== name) continue;
  const number = names.indexOf(`CN_BROKEN_${name.toUpperCase().replaceAll("-", "_")}`);
  if (number < 0) throw new Error(`${name}: no such bug`);
  const argv = [fileURLToPath(new URL("campaign.mjs", import.meta.url)), "--nodes", "3", "--shards", "12", "--faults", "24", "--failovers", "0", "--seed", "1", "--only", kinds, "--expect-wrong", "--quiet"];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, CAIRN_BROKEN: String(number) } });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  const line = /^lost .*$/m.exec(output)?.[0] ?? output.slice(-300);
  console.log(`${name.padEnd(18)} ${code === 0 ? "found" : "NOT FOUND"}: ${line}`);
  if (code !== 0) missed++;
}
process.exit(missed ? 1 : 0);
