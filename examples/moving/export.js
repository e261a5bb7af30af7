// Durable Objects leave the hosted platform as lines of JSON, which `cairn import FILE` reads: docs/do/moving.md.
//
//     import { Movable, exportObjects } from "./export.js";
//     export class Room extends Movable(DurableObject) { ... }
//     if (url.pathname === "/export") return exportObjects(request, { Room: env.ROOM }, env.EXPORT_KEY);
//
// The request is a POST with `Authorization: Bearer EXPORT_KEY` and {"class": "Room", "names": [...], "ids": [...]}.

const encoder = new TextEncoder();
const QUOTED = /"/g;
const name = (text) => `"${text.replace(QUOTED, '""')}"`;

function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

/** The bytes of a stored value as V8 serialises it, version 15. */
export class V8Writer {
  #bytes = new Uint8Array(256);
  #at = 0;
  #seen = new Map();

  static write(value) {
    const writer = new V8Writer();
    writer.#byte(0xff);
    writer.#byte(15);
    writer.#value(value);
    return writer.#bytes.subarray(0, writer.#at);
  }

  #raw(bytes) {
    if (this.#at + bytes.length > this.#bytes.length) {
      const larger = new Uint8Array(2 * (this.#at + bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }
  #byte(byte) {
    this.#raw([byte]);
  }
  #tag(letter) {
    this.#byte(letter.charCodeAt(0));
  }
  #uint(number) {
    for (; number > 127; number = Math.floor(number / 128)) this.#byte((number % 128) | 128);
    this.#byte(number);
  }
  #double(number) {
    this.#raw(new Uint8Array(new Float64Array([number]).buffer));
  }
  #string(text) {
    const { length } = text, codes = new Uint16Array(length);
    let wide = false;
    for (let i = 0; i < length; i++) wide = (codes[i] = text.charCodeAt(i)) > 255 || wide;
    if (wide && (this.#at + 1 + (length * 2 < 128 ? 1 : length * 2 < 16384 ? 2 : length * 2 < 2097152 ? 3 : 4)) % 2) this.#byte(0);
    this.#tag(wide ? "c" : '"');
    this.#uint(wide ? length * 2 : length);
    this.#raw(wide ? new Uint8Array(codes.buffer) : Uint8Array.from(codes));
  }
  #bigint(number) {
    const digits = [];
    for (let left = number < 0n ? -number : number; left > 0n; left >>= 8n) digits.push(Number(left & 255n));
    while (digits.length % 8) digits.push(0);
    this.#uint(digits.length * 2 + (number < 0n ? 1 : 0));
    this.#raw(digits);
  }

  #value(value) {
    switch (typeof value) {
      case "undefined":
        return this.#tag("_");
      case "boolean":
        return this.#tag(value ? "T" : "F");
      case "string":
        return this.#string(value);
      case "bigint":
        this.#tag("Z");
        return this.#bigint(value);
      case "number":
        if ((value | 0) === value && !Object.is(value, -0)) {
          this.#tag("I");
          return this.#uint(((value << 1) ^ (value >> 31)) >>> 0);
        }
        this.#tag("N");
        return this.#double(value);
      case "object":
        return value === null ? this.#tag("0") : this.#object(value);
      default:
        throw new TypeError(`a ${typeof value} cannot be exported`);
    }
  }

  #object(object) {
    const known = this.#seen.get(object);
    if (known !== undefined) {
      this.#tag("^");
      return this.#uint(known);
    }
    if (ArrayBuffer.isView(object)) {
      this.#object(object.buffer);
      this.#seen.set(object, this.#seen.size);
      return this.#view(object);
    }
    this.#seen.set(object, this.#seen.size);
    if (Array.isArray(object)) return this.#array(object);
    if (object instanceof Date) return this.#tag("D"), this.#double(+object);
    if (object instanceof Map) return this.#collection(";", ":", [...object].flat());
    if (object instanceof Set) return this.#collection("'", ",", [...object]);
    if (object instanceof RegExp) return this.#regexp(object);
    if (object instanceof Error) return this.#error(object);
    if (object instanceof ArrayBuffer) return this.#tag("B"), this.#uint(object.byteLength), this.#raw(new Uint8Array(object));
    if (object instanceof Boolean) return this.#tag(object.valueOf() ? "y" : "x");
    if (object instanceof Number) return this.#tag("n"), this.#double(object.valueOf());
    if (object instanceof BigInt) return this.#tag("z"), this.#bigint(object.valueOf());
    if (object instanceof String) return this.#tag("s"), this.#string(object.valueOf());
    const prototype = Object.getPrototypeOf(object);
    if (prototype !== null && prototype !== Object.prototype) throw new TypeError(`a ${prototype.constructor?.name} cannot be exported`);
    this.#tag("o");
    this.#end("{", this.#properties(object, Object.keys(object)));
  }

  #properties(object, keys) {
    for (const key of keys) {
      this.#string(key);
      this.#value(object[key]);
    }
    return keys.length;
  }
  #end(letter, ...counts) {
    this.#tag(letter);
    for (const count of counts) this.#uint(count);
  }
  #array(array) {
    const keys = Object.keys(array), named = keys.filter((key) => String(key >>> 0) !== key || key >>> 0 >= array.length);
    if (keys.length - named.length < array.length / 2) {
      this.#tag("a");
      this.#uint(array.length);
      return this.#end("@", this.#properties(array, keys), array.length);
    }
    this.#tag("A");
    this.#uint(array.length);
    for (let i = 0; i < array.length; i++) if (i in array) this.#value(array[i]); else this.#tag("-");
    this.#end("$", this.#properties(array, named), array.length);
  }
  #collection(begin, end, items) {
    this.#tag(begin);
    for (const item of items) this.#value(item);
    this.#end(end, items.length);
  }
  #view(view) {
    const letters = { DataView: "?", Uint8Array: "B", Int8Array: "b", Uint8ClampedArray: "C", Uint16Array: "W", Int16Array: "w", Uint32Array: "D",
      Int32Array: "d", Float32Array: "f", Float64Array: "F", BigUint64Array: "Q", BigInt64Array: "q", Float16Array: "h" };
    this.#end("V");
    this.#tag(letters[view.constructor.name]);
    for (const number of [view.byteOffset, view.byteLength, 0]) this.#uint(number);
  }
  #regexp(expression) {
    const bits = { g: 1, i: 2, m: 4, y: 8, u: 16, s: 32, d: 128, v: 256 };
    this.#tag("R");
    this.#string(expression.source);
    this.#uint([...expression.flags].reduce((sum, flag) => sum | bits[flag], 0));
  }
  #error(error) {
    const types = { EvalError: "E", RangeError: "R", ReferenceError: "F", SyntaxError: "S", TypeError: "T", URIError: "U" };
    this.#tag("r");
    if (types[error.name]) this.#tag(types[error.name]);
    if (error.message) this.#tag("m"), this.#string(String(error.message));
    if (Object.hasOwn(error, "cause")) this.#tag("c"), this.#value(error.cause);
    if (error.stack) this.#tag("s"), this.#string(String(error.stack));
    this.#tag(".");
  }
}

/** A cell as JSON has it, by the first letter of its type. */
function cell(type, value) {
  if (type === "r") return base64(new Uint8Array(new Float64Array([value]).buffer));
  return type === "b" ? base64(new Uint8Array(value)) : value;
}

/** Lines that make the database again: tables, their rows, then what must not be there before them. */
function* database(sql) {
  const schema = sql.exec("SELECT type, name, tbl_name AS owner, sql FROM sqlite_schema WHERE sql IS NOT NULL").toArray()
    .filter((entry) => !/^(_cf_|sqlite_|__miniflare)/i.test(entry.owner));
  const virtual = schema.filter((entry) => /^CREATE VIRTUAL/i.test(entry.sql)).map((entry) => entry.name);
  const isShadow = (table) => virtual.some((owner) => table !== owner && table.startsWith(`${owner}_`));
  const tables = schema.filter((entry) => entry.type === "table" && !isShadow(entry.name));
  for (const table of tables) yield { sql: table.sql };
  for (const table of tables) {
    const own = sql.exec("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", table.name).toArray().map((column) => column.name);
    const rowid = /WITHOUT\s+ROWID/i.test(table.sql) || own.some((column) => column.toLowerCase() === "rowid") ? [] : ["rowid"];
    const columns = [...rowid, ...own.map(name)];
    // JavaScript has one type for integers and reals, and no integers of 64 bits.
    const types = `printf('${"%.1s".repeat(columns.length)}', ${columns.map((column) => `typeof(${column})`)})`;
    const values = columns.map((column) => `CASE typeof(${column}) WHEN 'integer' THEN CAST(${column} AS TEXT) ELSE ${column} END`);
    yield { insert: `INSERT INTO ${name(table.name)} (${columns}) VALUES (${columns.map(() => "?")})` };
    for (const [letters, ...row] of sql.exec(`SELECT ${types}, ${values} FROM ${name(table.name)}`).raw())
      yield { row: letters, cells: row.map((value, i) => cell(letters[i], value)) };
  }
  if (sql.exec("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").toArray().length) {
    yield { sql: "DELETE FROM sqlite_sequence" };
    yield { insert: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)" };
    for (const row of sql.exec("SELECT name, CAST(seq AS TEXT) FROM sqlite_sequence").raw()) if (!/^_cf_/i.test(row[0])) yield { row: "ti", cells: row };
  }
  for (const type of ["index", "view", "trigger"]) for (const entry of schema) if (entry.type === type && !isShadow(entry.owner)) yield { sql: entry.sql };
}

async function* lines({ storage, id }) {
  let count = 0;
  yield { object: id.toString(), name: id.name ?? null, alarm: await storage.getAlarm() };
  if (hasSql(storage)) for (const line of database(storage.sql)) yield (count++, line);
  for (let startAfter, more = true; more; ) {
    const page = await storage.list({ limit: 100, ...(startAfter === undefined ? {} : { startAfter }) });
    for (const [key, value] of page) yield (count++, (startAfter = key), { key, value: base64(V8Writer.write(value)) });
    more = page.size === 100;
  }
  yield { end: count };
}

function hasSql(storage) {
  try {
    storage.sql.databaseSize;
    return true;
  } catch {
    return false;
  }
}

/** About `size` characters of lines; an error is a line too, and the last. */
async function piece(source, size) {
  const texts = [];
  try {
    for (let length = 0; length < size; length += texts.at(-1).length) {
      const { value, done } = await source.next();
      if (done) return { text: texts.join(""), done };
      texts.push(`${JSON.stringify(value)}\n`);
    }
    return { text: texts.join(""), done: false };
  } catch (error) {
    return { text: `${texts.join("")}${JSON.stringify({ failed: String(error?.message ?? error) })}\n`, done: true };
  }
}

/**
 * A class whose objects can be exported. An object of up to WHOLE characters is read at one moment: nothing but its storage is awaited, and
 * no event comes in between. While a larger one is read nobody may write to it.
 */
const WHOLE = 32 << 20, PIECE = 1 << 16;
export const Movable = (Base) =>
  class extends Base {
    async exportStorage() {
      const source = lines(this.ctx);
      let next = await piece(source, WHOLE);
      return new ReadableStream({
        type: "bytes",
        async pull(controller) {
          const { text, done } = next;
          if (text) controller.enqueue(encoder.encode(text));
          if (done) controller.close();
          else next = await piece(source, PIECE);
        },
      });
    }
  };

/** Streams the objects that a request names, one after the other. */
export async function exportObjects(request, namespaces, key) {
  const digest = async (text) => new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
  const given = await digest(request.headers.get("authorization") ?? ""), wanted = await digest(`Bearer ${key}`);
  if (!key || !given.every((byte, i) => byte === wanted[i])) return new Response("no", { status: 403 });
  const { class: className, names = [], ids = [] } = await request.json();
  const namespace = namespaces[className];
  if (!namespace) return new Response(`no class ${className}`, { status: 404 });
  const { readable, writable } = new TransformStream();
  const write = async () => {
    const writer = writable.getWriter();
    await writer.write(encoder.encode(`${JSON.stringify({ class: className })}\n`));
    writer.releaseLock();
    for (const id of [...names.map((text) => namespace.idFromName(text)), ...ids.map((text) => namespace.idFromString(text))])
      await (await namespace.get(id).exportStorage()).pipeTo(writable, { preventClose: true });
    await writable.close();
  };
  write().catch((error) => writable.abort(error)); // then the last object has no end, and is told
  return new Response(readable, { headers: { "content-type": "application/x-ndjson" } });
}
