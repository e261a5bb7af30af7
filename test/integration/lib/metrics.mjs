// The names of metrics: those that the documentation has, and those that a server tells.
import { readFileSync } from "node:fs";

export function documentedMetrics() {
  const page = readFileSync(new URL("../../../docs/reference/admin.md", import.meta.url), "utf8");
  const table = page.slice(page.indexOf("\n## Metrics"));
  const names = [];
  for (const line of table.split("\n")) {
    const row = /^\| ((?:`[a-z_]+`(?:, )?)+) \|/.exec(line);
    if (row) names.push(...row[1].match(/[a-z_]+/g).map((name) => `cairn_${name}`));
  }
  return names.sort();
}

export const shownMetrics = (text) => [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]).sort();

/** Whether only a node of a cluster has it. */
export const ofCluster = (name) => name.startsWith("cairn_cluster_");
