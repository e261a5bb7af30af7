// What a test of a single server cannot show on several nodes: `make integration CLUSTER=3` leaves such a test out, by one of these reasons.
// Each is a sentence of docs/understand/cluster.md, "What differs on several nodes": one that is not there is an error, so the list is whole.
//
//     test("the log is cut", alone("disk"), async (t) => { ... });
import { readFileSync } from "node:fs";
import path from "node:path";
import { clustered, root } from "./server.mjs";

const reasons = {
  dev: "`cairn dev` is one server",
  offline: "Commands on a data directory that no server uses are refused for a node's",
  disk: "A node's own disk is not what makes a write durable",
  snapshots: "A snapshot of an object can be restored in objects of its shard alone",
  classes: "The table of classes is the engine's",
};

/** Options of a test that is for a single server alone. */
export function alone(reason) {
  if (!(reason in reasons)) throw new Error(`no such reason: ${reason}`);
  if (!clustered) return {};
  if (!readFileSync(path.join(root, "docs/understand/cluster.md"), "utf8").includes(reasons[reason])) throw new Error(`docs/understand/cluster.md does not say: ${reasons[reason]}`);
  return { skip: reasons[reason] };
}
