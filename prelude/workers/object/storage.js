// ctx.storage: key-value pairs, SQL, transactions, alarms.
//
// Every operation completes within the turn, so promises are settled when they are returned and
// nothing can come between (the input gate). What is written is committed when the turn ends, as
// one transaction; what the object sends waits until that is durable (the output gate).
import { gated } from "../../internal/turn.js";
import { native, options } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { deserialize, serialize } from "../../internal/serialize.js";
import { IN_STORAGE } from "./rpc.js";
import { bookmarkForTime, currentBookmark, restoreNext, takeSnapshot } from "./recovery.js";

const KEYS_MAX = 128;
const KEY_BYTES_MAX = 2048;
const PAIR_BYTES_MAX = 2 << 20;
const token = Symbol("construct");

function checkKey(key) {
  key = String(key);
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
  if (value === undefined) throw new TypeError("put() called with undefined value.");
  native.kvPut(object, key, encode(key, value));
}

function checkRange(range) {
  const { start, startAfter, limit } = range ?? {};
  if (start !== undefined && startAfter !== undefined) throw new TypeError("list() cannot be called with both start and startAfter values.");
  if (limit !== undefined && !(limit > 0)) throw new TypeError("List limit must be positive.");
  return range ?? {};
}

/** Calls each(key, value) in order; each may return true to stop. */
function list(object, range, each) {
  const { start, startAfter, end, prefix, reverse, limit } = checkRange(range);
  const from = startAfter ?? start;
  native.kvList(
    object,
    from === undefined ? undefined : String(from),
    startAfter !== undefined,
    end === undefined ? undefined : String(end),
    prefix === undefined ? undefined : String(prefix),
    Boolean(reverse),
    limit ?? 0,
    (key, bytes) => each(key, deserialize(bytes, IN_STORAGE)),
  );
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
    return this.#pages(checkRange(range), ++this.#lists);
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
    return row === null ? { done: true } : { done: false, value: this.#object(row) };
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
        return row === null ? { done: true, value: undefined } : { done: false, value: row };
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
finishInterface(SqlStorageCursor, "SqlStorageCursor");

class SqlStorage {
  #object;
  constructor(key, object) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#object = object;
  }
  exec(query, ...bindings) {
    return new SqlStorageCursor(token, native.sqlExec(this.#object, `${query}`, ...bindings));
  }
  get databaseSize() {
    return native.databaseSize(this.#object);
  }
  get Cursor() {
    return SqlStorageCursor;
  }
}
finishInterface(SqlStorage);

const ROLLED_BACK = Symbol("rolled back");

class DurableObjectTransaction {
  #storage;
  #state;
  constructor(key, storage, state) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#storage = storage;
    this.#state = state;
  }
  #check() {
    if (this.#state.rolledBack) throw new Error("Cannot perform this operation on a rolled back transaction.");
  }
  get(...args) { this.#check(); return this.#storage.get(...args); }
  put(...args) { this.#check(); return this.#storage.put(...args); }
  delete(...args) { this.#check(); return this.#storage.delete(...args); }
  list(...args) { this.#check(); return this.#storage.list(...args); }
  getAlarm(...args) { this.#check(); return this.#storage.getAlarm(...args); }
  setAlarm(...args) { this.#check(); return this.#storage.setAlarm(...args); }
  deleteAlarm(...args) { this.#check(); return this.#storage.deleteAlarm(...args); }
  rollback() {
    if (this.#state.rolledBack) return;
    this.#state.rolledBack = true;
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
  constructor(key, object, lock) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#object = object;
    this.#lock = lock;
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
      if (!Array.isArray(keys)) return get(this.#object, checkKey(keys));
      const found = new Map();
      for (const key of checkKeys(keys).sort()) {
        const value = get(this.#object, key);
        if (value !== undefined) found.set(key, value);
      }
      return found;
    });
  }
  put(keyOrEntries, value, options) {
    if (typeof keyOrEntries !== "object" || keyOrEntries === null) {
      return written(this.#object, options, () => put(this.#object, checkKey(keyOrEntries), value));
    }
    return written(this.#object, value, () => {
      const entries = Object.entries(keyOrEntries).filter(([, each]) => each !== undefined);
      checkKeys(entries.map(([key]) => key));
      const values = entries.map(([key, each]) => encode(key, each)); // all or none
      entries.forEach(([key], i) => native.kvPut(this.#object, key, values[i]));
    });
  }
  delete(keys, options) {
    return written(this.#object, options, () => {
      if (!Array.isArray(keys)) return native.kvDelete(this.#object, checkKey(keys));
      let count = 0;
      for (const key of checkKeys(keys)) if (native.kvDelete(this.#object, key)) count++;
      return count;
    });
  }
  list(range) {
    return promised(() => {
      const found = new Map();
      list(this.#object, range, (key, value) => { found.set(key, value); });
      return found;
    });
  }
  deleteAll(settings) {
    return promised(() => { native.deleteAll(this.#object, Boolean(options.deleteAllDeletesAlarm)); });
  }
  transactionSync(callback) {
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
    return this.#lock(async () => {
      const object = this.#object;
      native.transactionBegin(object);
      let level;
      const state = {
        rolledBack: false,
        ended: false,
        end(keep) {
          if (this.ended) return;
          this.ended = true;
          native.savepointEnd(object, level, keep);
        },
        over: Promise.withResolvers(),
      };
      const open = this.#transactions;
      open.push(state);
      // One that was begun later is inside this one, whoever began it: it ends first.
      const innerOver = async () => {
        while (open.at(-1) !== state) await open.at(-1).over.promise;
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
    return promised(() => native.alarmGet(this.#object));
  }
  setAlarm(when, options) {
    return promised(() => {
      const time = when instanceof Date ? when.getTime() : Number(when);
      if (!Number.isFinite(time) || time < 0) throw new TypeError("setAlarm() cannot be called with an alarm time that is not a valid date.");
      native.alarmSet(this.#object, Math.floor(time));
    });
  }
  deleteAlarm(options) {
    return promised(() => { native.alarmSet(this.#object, null); });
  }
}
finishInterface(DurableObjectStorage);

export function makeStorage(object, lock) {
  return new DurableObjectStorage(token, object, lock);
}
