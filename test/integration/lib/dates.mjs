// Dates at which a default changes, and flags, of the server's own table (src/config/compat.c).
import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./server.mjs";

const table = readFileSync(path.join(root, "src/config/compat.c"), "utf8");
/** Each flag's names, what follows them in the table, and which of its sides is there. */
export const rows = [...table.matchAll(/^ {4}\{"([^"]+)", (?:"([^"]+)"|NULL), (.*), (ON|OFF|BOTH)\},$/gm)].map(([, on, off, rest, side]) => ({ on, off, rest, side }));
export const today = new Date().toISOString().slice(0, 10);
const datesOf = (some) => [...new Set(some.flatMap(({ rest }) => rest.match(/\d{4}-\d\d-\d\d/g) ?? []))].filter((date) => date <= today).sort();
const dayBefore = (date) => new Date(Date.parse(date) - 86_400_000).toISOString().slice(0, 10);

/** The day before the first change, and each day of one. */
export const dates = [dayBefore(datesOf(rows)[0]), ...datesOf(rows)];
/** Those at which the modules of Node.js or their globals change, from the first at which there are globals. */
export const nodeDates = datesOf(rows.filter(({ on, rest }) => /nodejs/.test(on + rest))).filter((date) => date >= "2024-09-23");
