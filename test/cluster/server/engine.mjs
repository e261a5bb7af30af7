// Runs a command with the engine of a cluster: `node engine.mjs COMMAND ...` starts PostgreSQL with a synchronous standby, sets
// CAIRN_TEST_ENGINE to the folder of its socket, and ends both with the command, whose end is its own.
import { spawn } from "node:child_process";
import { Postgres, absent } from "./postgres.mjs";

if (absent) throw new Error(absent);
const ends = [];
const t = { after: (end) => ends.unshift(end) };
let code = 1;
try {
  const primary = await Postgres.make(t);
  await Postgres.copy(t, primary);
  const child = spawn(process.argv[2], process.argv.slice(3), { stdio: "inherit", env: { ...process.env, CAIRN_TEST_ENGINE: primary.dir } });
  for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => child.kill(name));
  code = await new Promise((resolve) => child.on("close", (status) => resolve(status ?? 1)));
} finally {
  for (const end of ends) await end();
}
process.exit(code);
