// ctx.storage: key-value pairs, SQL, transactions, alarms.
//
// Every operation completes within the turn, so promises are settled when they are returned and
// nothing can come between (the input gate). What is written is committed when the turn ends, as
// one transaction; what the object sends waits until that is durable (the output gate).
//
// Arguments are converted before the native call, as Web IDL has it: a script's toString() may use
// the storage too, or change what was given. So natives get texts, numbers and bytes only.
import { gated } from "../../internal/turn.js";
import { isFlagOff, native, options } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { isDictionary, isObject, parameterError, toTime } from "../../internal/webidl.js";
import { deserialize, serialize } from "../../internal/serialize.js";
import { isBuffer, viewBytes } from "../../web/fetch/body.js";
import { IN_STORAGE } from "./rpc.js";
import { bookmarkForTime, currentBookmark, restoreNext, takeSnapshot } from "./recovery.js";

const KEYS_MAX = 128;
const KEY_BYTES_MAX = 2048;
const PAIR_BYTES_MAX = 2 << 20;
const token = Symbol("construct");

function checkKey(key) {
  key = `${key}`;
  if (key.length * 3 > KEY_BYTES_MAX && native.utf8Encode(key).length > KEY_BYTES_MAX) {
    throw new RangeError(`Keys cannot be larger than ${KEY_BYTES_MAX} bytes. A key of size ${native.utf8Encode(key).length} was provided.`);
  }
  return key;
}
function checkKeys(keys) {
  if (keys.length > KEYS_MAX) throw new RangeError(`Maximum number of keys is ${KEYS_MAX}.`);
  return keys.map(checkKey);
}
function encode(key, value) {
  const bytes = serialize(value, IN_STORAGE);
  if (bytes.length > PAIR_BYTES_MAX) {
    throw new RangeError(`Values cannot be larger than ${PAIR_BYTES_MAX} bytes. A value of size ${bytes.length} was provided.`);
  }
  return bytes;
}

function get(object, key) {
  const bytes = native.kvGet(object, key);
  return bytes === undefined ? undefined : deserialize(bytes, IN_STORAGE);
}
function put(object, key, value) {
  native.kvPut(object, key, encode(key, value));
}

const STORAGE = "DurableObjectStorage";

/** Options are a dictionary, even where they change nothing here. */
function checkOptions(given, method, index, type, name = STORAGE) {
  if (!isDictionary(given)) throw parameterError(method, name, index, type);
}

function checkCallback(given, method) {
  if (typeof given !== "function") throw parameterError(method, STORAGE, 1, "function");
}

const optionalText = (value) => (value === undefined ? undefined : `${value}`);

/** A Web IDL `long` that may be left out. */
function optionalInt(value) {
  if (value === undefined) return undefined;
  const number = Math.trunc(+value);
  if (!Number.isFinite(number)) return 0;
  if (number !== (number | 0)) throw new TypeError("Value out of range. Must be between -2147483648 and 2147483647 (inclusive).");
  return number;
}

/** A range as it is now, read once. */
function checkRange(range, name) {
  checkOptions(range, "list", 1, "ListOptions", name);
  const given = range ?? {};
  const start = optionalText(given.start);
  const startAfter = optionalText(given.startAfter);
  const end = optionalText(given.end);
  const prefix = optionalText(given.prefix);
  const reverse = Boolean(given.reverse);
  const limit = optionalInt(given.limit);
  if (start !== undefined && startAfter !== undefined) throw new TypeError("list() cannot be called with both start and startAfter values.");
  if (limit !== undefined && limit <= 0) throw new TypeError("List limit must be positive.");
  return { start, startAfter, end, prefix, reverse, limit };
}

/** Calls each(key, value) in order, of a range that was checked; each may return true to stop. */
function list(object, { start, startAfter, end, prefix, reverse, limit }, each) {
  native.kvList(object, startAfter ?? start, startAfter !== undefined, end, prefix, reverse, limit ?? 0,
    (key, bytes) => each(key, deserialize(bytes, IN_STORAGE)));
}

/** What is done at once, as the promise its caller expects. */
const promised = (work) => {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
};

/** The same for a write. With allowUnconfirmed, what is sent afterwards does not wait for it. */
function written(object, options, work) {
  if (!options?.allowUnconfirmed) return promised(work);
  return promised(() => {
    const alone = native.unconfirmedBegin(object);
    try {
      return work();
    } finally {
      native.unconfirmedEnd(object, alone);
    }
  });
}

class SyncKvStorage {
  #object;
  #lists = 0; // how many there were
  constructor(key, object) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#object = object;
  }
  get(key) {
    return get(this.#object, checkKey(key));
  }
  put(key, value) {
    put(this.#object, checkKey(key), value);
  }
  delete(key) {
    return native.kvDelete(this.#object, checkKey(key));
  }
  /** Lazy: a page at a time. It ends the list before it, if that goes on. */
  list(range) {
    return this.#pages(checkRange(range, "SyncKvStorage"), ++this.#lists);
  }
  *#pages(range, number) {
    const PAGE = 256;
    let { start, startAfter, end, prefix, reverse, limit } = range;
    let left = limit ?? Infinity;
    this.#checkList(number);
    while (left > 0) {
      const page = [];
      list(this.#object, { start, startAfter, end, prefix, reverse, limit: Math.min(PAGE, left) }, (key, value) => { page.push([key, value]); });
      for (const pair of page) {
        yield pair;
        this.#checkList(number);
      }
      if (page.length < PAGE) return;
      left -= page.length;
      const last = page.at(-1)[0];
      if (reverse) end = last;
      else { start = undefined; startAfter = last; }
    }
  }
  #checkList(number) {
    if (number !== this.#lists) throw new Error("kv.list() iterator was invalidated because a new call to kv.list() was started. Only one kv.list() iterator can exist at a time.");
  }
}
finishInterface(SyncKvStorage);

/** C writes: [cursor, or 0 if the statement is over; rowsRead; rowsWritten; shape], of the last call. */
const sqlOut = native.sqlOut();
/** Names of columns by shape, C's number for them. */
const shapes = new Map();
const SHAPES_MAX = 4096;

function namesOf(shape) {
  let names = shapes.get(shape);
  if (names === undefined) {
    if (shapes.size >= SHAPES_MAX) shapes.clear();
    shapes.set(shape, (names = native.sqlNames()));
  }
  return names;
}

// The end of a cursor. Before enable_fast_jsg_struct the platform leaves out members that are undefined.
const BARE_END = isFlagOff("enable_fast_jsg_struct");
const end = () => (BARE_END ? { done: true } : { done: true, value: undefined });

class SqlStorageCursor {
  #cursor; // native number, 0 when the statement is over
  #names;
  #row; // the row to give next, as an array, or null
  #rowsRead;
  #rowsWritten;
  /** Right after sqlExec(), which gave the row. */
  constructor(key, row) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#cursor = sqlOut[0];
    this.#names = namesOf(sqlOut[3]);
    this.#row = row;
    this.#rowsRead = sqlOut[1];
    this.#rowsWritten = sqlOut[2];
  }
  #take() {
    const row = this.#row;
    if (row === null) return null;
    if (this.#cursor === 0) {
      this.#row = null;
    } else {
      const next = native.sqlNext(this.#cursor);
      this.#row = next;
      this.#rowsRead = Math.max(this.#rowsRead, sqlOut[1]);
      this.#rowsWritten = Math.max(this.#rowsWritten, sqlOut[2]);
      if (next === null) this.#cursor = 0;
    }
    return row;
  }
  #object(row) {
    const object = {};
    const names = this.#names;
    for (let i = 0; i < names.length; i++) object[names[i]] = row[i];
    return object;
  }
  next() {
    const row = this.#take();
    return row === null ? end() : { done: false, value: this.#object(row) };
  }
  toArray() {
    const rows = [];
    for (let row = this.#take(); row !== null; row = this.#take()) rows.push(this.#object(row));
    return rows;
  }
  one() {
    const row = this.#take();
    if (row === null) throw new Error("Expected exactly one result from SQL query, but got no results.");
    if (this.#row !== null) throw new Error("Expected exactly one result from SQL query, but got multiple results.");
    return this.#object(row);
  }
  raw() {
    const take = () => this.#take();
    return {
      next() {
        const row = take();
        return row === null ? end() : { done: false, value: row };
      },
      toArray() {
        const rows = [];
        for (let row = take(); row !== null; row = take()) rows.push(row);
        return rows;
      },
      [Symbol.iterator]() {
        return this;
      },
    };
  }
  get columnNames() {
    return [...this.#names];
  }
  get rowsRead() {
    return this.#rowsRead;
  }
  get rowsWritten() {
    return this.#rowsWritten;
  }
  [Symbol.iterator]() {
    return this;
  }
}
finishInterface(SqlStorageCursor, "Cursor");

/** A value as it is bound: numbers, bytes and null as they are, all else as its text. */
function toBound(value) {
  switch (typeof value) {
    case "string":
    case "number":
    case "undefined":
      return value;
    case "bigint":
      throw new TypeError("Cannot convert a BigInt value to a number");
    case "object":
      if (value === null) return null;
      if (isBuffer(value)) return viewBytes(value);
  }
  return `${value}`;
}

class SqlStorage {
  #object;
  constructor(key, object) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#object = object;
  }
  exec(query, ...bindings) {
    const sql = `${query}`;
    for (let i = 0; i < bindings.length; i++) bindings[i] = toBound(bindings[i]);
    return new SqlStorageCursor(token, native.sqlExec(this.#object, sql, ...bindings));
  }
  get databaseSize() {
    return native.databaseSize(this.#object);
  }
  get Cursor() {
    return SqlStorageCursor;
  }
}
finishInterface(SqlStorage);

class DurableObjectTransaction {
  #storage;
  #state;
  constructor(key, storage, state) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#storage = storage;
    this.#state = state;
  }
  /** Nothing that is asked of a transaction which is over happens outside of it. */
  #open(name) {
    const { ended, kept } = this.#state;
    if (ended && kept) throw new Error(`Cannot call ${name}() on transaction that has already committed: did you move \`txn\` outside of the closure?`);
    if (ended) throw new Error(`Cannot ${name}() on rolled back transaction`);
    return this.#storage;
  }
  get(...args) { return this.#open("get").get(...args); }
  put(...args) { return this.#open("put").put(...args); }
  delete(...args) { return this.#open("delete").delete(...args); }
  list(...args) { return this.#open("list").list(...args); }
  deleteAll(...args) { return this.#open("deleteAll").deleteAll(...args); } // refused
  getAlarm(...args) { return this.#open("getAlarm").getAlarm(...args); }
  setAlarm(...args) { return this.#open("setAlarm").setAlarm(...args); }
  deleteAlarm(...args) { return this.#open("deleteAlarm").deleteAlarm(...args); }
  rollback() {
    if (this.#state.ended && !this.#state.kept) return;
    this.#open("rollback");
    this.#state.end(false);
  }
}
finishInterface(DurableObjectTransaction);

export class DurableObjectStorage {
  #object;
  #sql;
  #kv;
  #lock; // (callback) => promise: with the input gate closed
  #transactions = []; // states of those under way, innermost last
  #hasAlarm; // () => whether the class has a handler
  constructor(key, object, lock, hasAlarm) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#object = object;
    this.#lock = lock;
    this.#hasAlarm = hasAlarm;
  }
  get sql() {
    return (this.#sql ??= new SqlStorage(token, this.#object));
  }
  /** An ordinary property on the platform. */
  set sql(value) {
    Object.defineProperty(this, "sql", { value, writable: true, enumerable: true, configurable: true });
  }
  get kv() {
    return (this.#kv ??= new SyncKvStorage(token, this.#object));
  }
  get(keys, options) {
    return promised(() => {
      checkOptions(options, "get", 2, "GetOptions");
      if (!Array.isArray(keys)) return get(this.#object, checkKey(keys));
      const found = new Map();
      for (const key of checkKeys(keys).sort()) {
        const bytes = native.kvGet(this.#object, key);
        if (bytes !== undefined) found.set(key, deserialize(bytes, IN_STORAGE));
      }
      return found;
    });
  }
  put(keyOrEntries, value, options) {
    if (!isObject(keyOrEntries) || Array.isArray(keyOrEntries)) {
      return written(this.#object, options, () => {
        checkOptions(options, "put", 3, "PutOptions");
        const key = checkKey(keyOrEntries);
        if (value === undefined) throw new TypeError("put() called with undefined value.");
        put(this.#object, key, value);
      });
    }
    return written(this.#object, value, () => {
      checkOptions(options, "put", 3, "PutOptions");
      if (!isDictionary(value)) {
        throw new TypeError("put() may only be called with a single key-value pair and optional options as put(key, value, options) or with multiple key-value pairs and optional options as put(entries, options)");
      }
      const entries = Object.entries(keyOrEntries).filter(([, each]) => each !== undefined);
      checkKeys(entries.map(([key]) => key));
      const values = entries.map(([key, each]) => encode(key, each)); // all or none
      entries.forEach(([key], i) => native.kvPut(this.#object, key, values[i]));
    });
  }
  delete(keys, options) {
    return written(this.#object, options, () => {
      checkOptions(options, "delete", 2, "PutOptions");
      if (!Array.isArray(keys)) return native.kvDelete(this.#object, checkKey(keys));
      let count = 0;
      for (const key of checkKeys(keys)) if (native.kvDelete(this.#object, key)) count++;
      return count;
    });
  }
  list(range) {
    return promised(() => {
      const found = new Map();
      list(this.#object, checkRange(range), (key, value) => { found.set(key, value); });
      return found;
    });
  }
  deleteAll(settings) {
    return promised(() => {
      checkOptions(settings, "deleteAll", 1, "PutOptions");
      native.deleteAll(this.#object, Boolean(options.deleteAllDeletesAlarm));
      native.storageCommit(this.#object); // whatever the turn does afterwards
    });
  }
  transactionSync(callback) {
    checkCallback(callback, "transactionSync");
    const level = native.savepoint(this.#object);
    let result;
    try {
      result = callback();
    } catch (error) {
      native.savepointEnd(this.#object, level, false);
      throw error;
    }
    native.savepointEnd(this.#object, level, true);
    return result;
  }
  /** No other event comes in meanwhile, and nothing is committed before it ends. */
  transaction(callback) {
    try {
      checkCallback(callback, "transaction");
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#lock(async () => {
      const object = this.#object;
      native.transactionBegin(object);
      let level;
      const state = {
        ended: false,
        kept: false,
        end(keep) {
          if (this.ended) return;
          this.ended = true;
          this.kept = keep;
          native.savepointEnd(object, level, keep);
        },
        over: Promise.withResolvers(),
      };
      const open = this.#transactions;
      open.push(state);
      // One that was begun later is inside this one, whoever began it: it ends first.
      const innerOver = async () => {
        while (open[open.length - 1] !== state) await open[open.length - 1].over.promise;
      };
      try {
        level = native.savepoint(object);
        const result = await callback(new DurableObjectTransaction(token, this, state));
        await innerOver();
        state.end(true);
        return result;
      } catch (error) {
        await innerOver();
        if (level !== undefined) state.end(false);
        throw error;
      } finally {
        open.pop();
        state.over.resolve();
        native.transactionEnd(object);
      }
    }, false);
  }
  sync() {
    return new Promise((resolve, reject) => {
      native.storageSync(this.#object, true, gated((failure) => (failure === undefined ? resolve() : reject(new Error(failure)))));
    });
  }
  getCurrentBookmark() {
    return currentBookmark(this.#object);
  }
  getBookmarkForTime(when) {
    return bookmarkForTime(this.#object, when);
  }
  onNextSessionRestoreBookmark(bookmark) {
    return restoreNext(this.#object, bookmark);
  }
  snapshot(bookmark) {
    return takeSnapshot(this.#object, bookmark);
  }
  getAlarm(options) {
    return promised(() => {
      checkOptions(options, "getAlarm", 1, "GetAlarmOptions");
      return native.alarmGet(this.#object);
    });
  }
  setAlarm(when, options) {
    return promised(() => {
      const time = toTime(when, "setAlarm", STORAGE);
      checkOptions(options, "setAlarm", 2, "SetAlarmOptions");
      if (!this.#hasAlarm()) throw new TypeError("Your Durable Object class must have an alarm() handler in order to call setAlarm()");
      if (time <= 0) throw new TypeError("setAlarm() cannot be called with an alarm time <= 0");
      native.alarmSet(this.#object, Math.max(time, Date.now()));
    });
  }
  deleteAlarm(options) {
    return promised(() => {
      checkOptions(options, "deleteAlarm", 1, "SetAlarmOptions");
      native.alarmSet(this.#object, null);
    });
  }
}
finishInterface(DurableObjectStorage);

export function makeStorage(object, lock, hasAlarm) {
  return new DurableObjectStorage(token, object, lock, hasAlarm);
}
