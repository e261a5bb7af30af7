// What a test of a single server cannot show on several nodes: `make integration CLUSTER=3` leaves such a test out, by one of these reasons.
// Each is a sentence of docs/reference/cluster.md, "Differences from a single server": one that is not there is an error, so the list is whole.
//
//     test("the log is cut", alone("disk"), async (t) => { ... });
import { readFileSync } from "node:fs";
import path from "node:path";
import { clustered, root } from "./server.mjs";

const reasons = {
  dev: "`cairn dev` is always a single server",
  offline: "Commands on a data directory that no server uses",
  disk: "A node's own disk does not make a write durable",
  snapshots: "can be restored only in objects of the same shard",
  classes: "`classes.json` of a data directory is not used",
};

/** Options of a test that is for a single server alone. */
export function alone(reason) {
  if (!(reason in reasons)) throw new Error(`no such reason: ${reason}`);
  if (!clustered) return {};
  if (!readFileSync(path.join(root, "docs/reference/cluster.md"), "utf8").includes(reasons[reason])) throw new Error(`docs/reference/cluster.md does not say: ${reasons[reason]}`);
  return { skip: reasons[reason] };
}
