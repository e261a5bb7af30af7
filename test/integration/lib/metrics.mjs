// The names of metrics: those that the documentation has, and those that a server tells.
import { readFileSync } from "node:fs";

export function documentedMetrics() {
  const page = readFileSync(new URL("../../../docs/reference/metrics.md", import.meta.url), "utf8");
  const names = [...page.matchAll(/^\| `(cairn_[a-z_]+)` \| (?:counter|gauge|histogram) /gm)].map(([, name]) => name);
  return names.sort();
}

export const shownMetrics = (text) => [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]).sort();

/** Whether only a node of a cluster has it. */
export const ofCluster = (name) => name.startsWith("cairn_cluster_");
