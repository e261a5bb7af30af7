#!/usr/bin/env node
// The change-over from the old way of counting to the new one, from the command line: docs/phases.md.
//
//     node tools/phase.mjs show|compare|rollback|N  --token TOKEN [--url http://path-stats.localhost:8787]
//
// N sets the phase (0 to 5), rollback goes one back. compare prints the counts of both ways and ends with 1 if they differ by more
// than 100, or an event of the verified share arrived one way only.
import { parseArgs } from "node:util";
import { Client } from "./client.mjs";

const DIFFERENCE_MOST = 100;

const { values, positionals: [command] } = parseArgs({ allowPositionals: true, options: { url: { type: "string", default: "http://127.0.0.1:8787" }, token: { type: "string" }, settle: { type: "string", default: "60" } } });
if (!values.token || !/^(show|compare|rollback|\d)$/.test(command ?? "")) {
  console.error("usage: phase.mjs show|compare|rollback|N --token TOKEN [--url URL] [--settle SECONDS]");
  process.exit(2);
}
const client = new Client(values.url, values.token);
const say = ({ phase, since }) => console.log(`phase ${phase}${since ? `, both ways written since ${new Date(since).toISOString()}` : ""}`);

if (command === "show") say(await client.ask("GET", "/admin/phase"));
else if (command === "compare") {
  const answer = await client.ask("GET", `/admin/paths/compare?settle=${values.settle}`);
  if (answer.since === null) console.log("nothing to compare yet: both ways are written in phases 1 to 3, and compared a minute later");
  else {
    console.log(`since ${new Date(answer.since).toISOString()}: new ${answer.newStats.totalRequests}, old ${answer.oldStats.totalRequests}, difference ${answer.difference}; ${answer.sample.checked} verified, ${answer.sample.missing.length} missing`);
    if (Math.abs(answer.difference) > DIFFERENCE_MOST || answer.sample.missing.length) process.exitCode = 1;
  }
} else {
  const phase = command === "rollback" ? (await client.ask("GET", "/admin/phase")).phase - 1 : Number(command);
  say(await client.ask("POST", "/admin/phase", { phase }));
}
client.close();
