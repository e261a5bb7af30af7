// D1Database, its sessions and prepared statements. src/service/d1/d1.c runs the SQL; what comes back is
// the JSON that D1's clients know from the platform, errors worded alike.
import { Code } from "../../../src/bindings/border.ts";
import { D1Format } from "../../../src/service/d1/border.ts";
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { illegalConstructor } from "../../internal/webidl.js";
import { callService } from "./call.js";


const token = Symbol("construct");

const d1Error = (prefix, text) => new Error(`${prefix}: ${text}`, { cause: new Error(text) });

/**
 * The error of a query belongs to the line of the project that asked for it, which the stack no longer
 * knows when the answer comes: `place` was made there. Our own frames say nothing.
 */
function from(place, error) {
  const frames = place.stack.split("\n").filter((line) => line.startsWith("    at ") && !line.includes("cairn:prelude"));
  if (frames.length > 0) error.stack = [`${error.name}: ${error.message}`, ...frames].join("\n");
  return error;
}

const failedCall = (failure, code) =>
  d1Error("D1_ERROR", code === Code.OVERLOADED ? "D1 DB is overloaded. Too many requests queued." : failure);

/** A value as it is bound, copied, so that what the caller does with a buffer later changes nothing. */
function toBound(value) {
  switch (typeof value) {
    case "number":
    case "string":
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "object":
      if (value === null) return null;
      if (value instanceof ArrayBuffer) return value.slice(0);
      if (value instanceof DataView) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice();
      if (ArrayBuffer.isView(value)) return Uint8Array.from(value); // each element becomes a byte
      if (Array.isArray(value) && value.every((byte) => typeof byte === "number" && byte >= 0 && byte < 256)) return Uint8Array.from(value);
  }
  throw d1Error("D1_TYPE_ERROR", `Type '${typeof value}' not supported for value '${String(value)}'`);
}

const META = 7; // numbers of struct cn_d1_meta in src/service/d1/d1.h
const toMeta = (duration, changes, last_row_id, changed, size_after, rows_read, rows_written) => ({
  served_by: "cairn",
  served_by_region: "LOCAL",
  served_by_colo: "LOCAL",
  served_by_primary: true,
  timings: { sql_duration_ms: duration },
  duration,
  changes,
  last_row_id,
  changed_db: changed === 1,
  size_after,
  rows_read,
  rows_written,
  total_attempts: 1,
});
/** The result of the statement with this number. */
function toResult({ sets, metas }, i) {
  const at = i * META;
  const meta = toMeta(metas[at], metas[at + 1], metas[at + 2], metas[at + 3], metas[at + 4], metas[at + 5], metas[at + 6]);
  return { success: true, meta, results: sets === null ? [] : sets[i] };
}

/**
 * Runs statements as one transaction.
 * @param {D1DatabaseSession | null} session
 * @returns {Promise<{ sets: any[] | null, metas: number[] } | { error: string, index: number }>} `sets` are null if all are empty lists of rows
 */
async function query(ns, statements, format, session) {
  const list = [];
  let last;
  for (let i = 0; i < statements.length; i++) {
    const { statement, params: given } = statements[i];
    const params = Array.from(given); // whatever it is, it has one length
    list.push(statement === last ? null : `${statement}`, params.length);
    for (let k = 0; k < params.length; k++) list.push(params[k]);
    last = statement;
  }
  const inSession = session !== null;
  const [json, metas, bookmark] = await callService((callback) => native.d1Query(ns, list, format, inSession, callback), failedCall);
  if (inSession) advance(session, bookmark);
  const sets = json === null ? null : JSON.parse(json);
  return sets !== null && sets.error !== undefined ? sets : { sets, metas };
}

async function queryOrThrow(ns, statements, format, session) {
  const place = new Error();
  const results = await query(ns, statements, format, session);
  if (results.error !== undefined) throw from(place, d1Error("D1_ERROR", results.error));
  return results;
}

async function batch(ns, statements, session) {
  const list = Array.from(statements);
  const answer = await queryOrThrow(ns, list, D1Format.OBJECTS, session);
  const results = [];
  for (let i = 0; i < list.length; i++) results.push(toResult(answer, i));
  return results;
}

export class D1PreparedStatement {
  #ns;
  #session;

  constructor(key, ns, session, statement, params) {
    if (key !== token) throw illegalConstructor();
    this.#ns = ns;
    this.#session = session;
    this.statement = statement;
    this.params = params;
  }

  bind(...values) {
    return new D1PreparedStatement(token, this.#ns, this.#session, this.statement, values.map(toBound));
  }

  async first(column) {
    const { sets } = await queryOrThrow(this.#ns, [this], D1Format.OBJECTS, this.#session);
    if (sets === null) return null;
    const [results] = sets;
    if (column === undefined) return results[0];
    if (!Object.hasOwn(results[0], column)) {
      throw new Error(`D1_COLUMN_NOTFOUND: Column not found (${column})`, { cause: new Error("Column not found") });
    }
    return results[0][column];
  }

  async run() {
    return toResult(await queryOrThrow(this.#ns, [this], D1Format.OBJECTS, this.#session), 0);
  }

  async all() {
    return toResult(await queryOrThrow(this.#ns, [this], D1Format.OBJECTS, this.#session), 0);
  }

  async raw(options) {
    const { sets: [{ columns, rows }] } = await queryOrThrow(this.#ns, [this], D1Format.ROWS, this.#session);
    if (options?.columnNames) rows.unshift(columns);
    return rows;
  }
}
finishInterface(D1PreparedStatement, "D1PreparedStatement");

const CONSTRAINTS = ["first-primary", "first-unconstrained"];

/** Keeps the latest bookmark: bookmarks are ordered as text. */
let advance;

export class D1DatabaseSession {
  #ns;
  #bookmark; // null until the first query, or what the session was started with

  constructor(key, ns, start) {
    if (key !== token) throw illegalConstructor();
    this.#ns = ns;
    this.#bookmark = CONSTRAINTS.includes(start) ? null : start;
  }
  prepare(sql) {
    return new D1PreparedStatement(token, this.#ns, this, `${sql}`, []);
  }
  async batch(statements) {
    return batch(this.#ns, statements, this);
  }
  getBookmark() {
    return this.#bookmark;
  }
  static {
    advance = (session, bookmark) => {
      if (session.#bookmark === null || session.#bookmark < bookmark) session.#bookmark = bookmark;
    };
  }
}
finishInterface(D1DatabaseSession, "D1DatabaseSession");

const isBlank = (line) => /^\s*(--.*)?$/.test(line);

export class D1Database {
  #ns; // the store's number of the namespace

  constructor(key, ns) {
    if (key !== token) throw illegalConstructor();
    this.#ns = ns;
  }

  prepare(sql) {
    return new D1PreparedStatement(token, this.#ns, null, `${sql}`, []);
  }

  async batch(statements) {
    return batch(this.#ns, statements, null);
  }

  /** Each line is a query of its own; all are one transaction. */
  async exec(sql) {
    const place = new Error();
    const lines = `${sql}`.trim().split("\n");
    const numbered = lines.map((statement, index) => ({ statement, params: [], index })).filter(({ statement }) => !isBlank(statement));
    const answer = await query(this.#ns, numbered, D1Format.COUNT, null);
    if (answer.error !== undefined) {
      const index = numbered[answer.index]?.index ?? 0;
      throw from(place, d1Error("D1_EXEC_ERROR", `Error in line ${index + 1}: ${lines[index]}: ${answer.error}`));
    }
    return { count: numbered.length, duration: answer.metas[0] };
  }

  withSession(constraintOrBookmark) {
    const start = constraintOrBookmark === undefined || constraintOrBookmark === null ? "" : `${constraintOrBookmark}`.trim();
    return new D1DatabaseSession(token, this.#ns, start === "" ? "first-unconstrained" : start);
  }

  /** Deprecated, and refused by the platform too: it was for databases of the first preview. */
  async dump() {
    throw d1Error("D1_DUMP_ERROR", "dump() is deprecated; `cairn d1 export` writes a database as SQL");
  }
}
finishInterface(D1Database, "D1Database");

export const makeBinding = ({ ns }) => new D1Database(token, ns);
