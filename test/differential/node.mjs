// Random calls of the modules of Node.js. A program is a few calls of one module, each on its own.
//
// Where the platform differs from Node.js, either will do: a difference counts as explained if Node.js itself, which runs this, gives what cairn gave.
import { readFileSync } from "node:fs";

export const name = "node";
export const flags = ["nodejs_compat"];
const IMPORTS = {
  url: "node:url", buffer: "node:buffer", querystring: "node:querystring", path: "node:path", util: "node:util", zlib: "node:zlib", crypto: "node:crypto",
  string_decoder: "node:string_decoder", events: "node:events", punycode: "node:punycode", timers: "node:timers", tls: "node:tls",
};
const CALLS = 8; // in a program

class Choice {
  constructor(random) {
    this.random = random;
  }
  int(below) {
    return Math.floor(this.random() * below);
  }
  between(low, high) {
    return low + this.int(high - low + 1);
  }
  chance(part) {
    return this.random() < part;
  }
  pick(list) {
    return list[this.int(list.length)];
  }
  /** One of them: functions are called for their value. */
  of(...ways) {
    const way = this.pick(ways);
    return typeof way === "function" ? way() : way;
  }
  many(low, high, make) {
    return Array.from({ length: this.between(low, high) }, make);
  }
  maybe(part, make) {
    return this.chance(part) ? make() : "";
  }
}
const js = JSON.stringify;
/** Arguments, the last of which are left out at random. */
const args = (r, ...made) => made.slice(0, r.between(1, made.length)).join(", ");

// ---- texts

const ALPHABETS = ["abcdefghijklmnop", "ABCxyz019", "é漢🙂ßİı", "%20%zz%C3%A9", " \t\n\r", "/\\?#@:;&=+$,", "\"'<>`{}|^[]", "\0\x01\x7f\x80\xff", "\ud800\udfff", "-_.!~*()"];
function letters(r, high = 8) {
  const alphabet = [...r.pick(r.chance(0.6) ? ALPHABETS.slice(0, 2) : ALPHABETS)];
  return r.many(0, high, () => r.pick(alphabet)).join("");
}
const text = (r, pieces = 4, high = 8) => r.many(1, pieces, () => letters(r, high)).join("");
/** A character of it replaced, left out or put in. */
function spoiled(r, whole) {
  const at = r.int(whole.length + 1);
  return whole.slice(0, at) + r.of("", () => r.pick([...ALPHABETS.join("")])) + whole.slice(at + r.int(2));
}

// ---- url

const SCHEMES = ["http:", "https:", "HTTP:", "ftp:", "file:", "ws:", "wss:", "gopher:", "mailto:", "javascript:", "data:", "urn:", "foo:", "x-1.a:", "git+ssh:", "1a:", "dash-test:", "coap:", ""];
const HOSTS = ["a", "example.com", "EXAMPLE.Com", "127.0.0.1", "[::1]", "[fe80::1%25en0]", "[1::2", "::1", "xn--fsq.com", "日本.jp", "bücher.de", "a_b.c", "-a.b", "a..b", "a b", "a%20b", "", ".", "a*b", "a'b", "a,b", "x".repeat(70), `${"y".repeat(63)}.com`, "z".repeat(256)];
const PATHS = ["", "/", "/a", "/a/b", "/a/b/", "a", "a/b", "./a", "../a", "../../a", "/..", "/../..", ".", "..", "/./a/./b/", "/a//b", "//a", "///a", "/a/../b", "/a%2fb", "/a b", "/ü", "/%zz", "/a;b", "/{a}", "/a|b", "\\a\\b", "/a\\b", "/a:b", "/@a", "a:b", "*"];
function urlText(r) {
  const scheme = r.pick(r.chance(0.6) ? SCHEMES.slice(0, 6) : SCHEMES);
  const slashes = r.chance(0.75) ? "//" : r.pick(["", "/", "///", "////", "\\\\", "\\/"]);
  const auth = r.maybe(0.2, () => `${r.pick(["u", "u:p", "u%40:p", "", ":", "a@b", "ü:%zz", "a:b:c", "u/x", "%C3%A9"])}@`);
  const host = r.chance(0.85) ? r.pick(r.chance(0.6) ? HOSTS.slice(0, 4) : HOSTS) : letters(r);
  const port = r.maybe(0.3, () => `:${r.pick(["80", "443", "8080", "", "0", "99999", "abc", "80a", "-1", "65536"])}`);
  const search = r.maybe(0.4, () => `?${r.of("", "a=1", "a=1&b=2", "?", "a=b#c", "a=%20+b", "x=é", () => letters(r))}`);
  const hash = r.maybe(0.3, () => `#${r.of("", "h", "#", "a?b", "é", () => letters(r))}`);
  const whole = r.maybe(0.05, () => r.pick([" ", "\t", "\n"])) + scheme + slashes + auth + host + port + r.pick(PATHS) + search + hash + r.maybe(0.05, () => " ");
  return r.chance(0.15) ? spoiled(r, whole) : whole;
}
const reference = (r) => (r.chance(0.5) ? urlText(r) : r.pick(PATHS) + r.maybe(0.4, () => `?${letters(r)}`) + r.maybe(0.3, () => `#${letters(r)}`));
function urlObject(r) {
  const parts = {
    protocol: () => js(r.pick(["http", "http:", "file:", "mailto", "foo:", "javascript:", ""])),
    slashes: () => r.pick(["true", "false", "null"]), auth: () => js(r.pick(["u:p", "u", "a@b", "ü:", ""])), host: () => js(r.pick(["a.b", "a:80", "", "a/b"])),
    hostname: () => js(r.pick(["a.b", "::1", "a:b", "", "ü"])), port: () => r.pick(["80", '"81"', '""', "0", "null"]),
    pathname: () => js(r.pick(["/a", "a", "", "a?b", "a#b", "//a", "/ü"])), search: () => js(r.pick(["?a=1", "a=1", "?", "", "a#b", "?a?b"])),
    query: () => r.pick(['"a=1"', "{ a: 1, b: [2, 3] }", "{}", '""', "null", '{ a: "é", c: null }']), hash: () => js(r.pick(["#h", "h", "#", "", "a#b"])), href: () => '"http://x/"',
  };
  return `{ ${Object.keys(parts).filter(() => r.chance(0.45)).map((key) => `${key}: ${parts[key]()}`).join(", ")} }`;
}
const anything = (r) => r.pick(["undefined", "null", "0", "1.5", "true", "{}", "[]", "() => 1", "Symbol('s')", "1n", '""', "NaN"]);
const urls = (r) => r.of(
  () => `url.parse(${args(r, js(urlText(r)), r.pick(["true", "false"]), r.pick(["true", "false"]))})`,
  () => `url.parse(${args(r, js(reference(r)), "true", "true")})`,
  () => `url.resolve(${js(reference(r))}, ${js(reference(r))})`,
  () => `url.resolve(${js(urlText(r))}, ${js(reference(r))})`,
  () => `url.resolveObject(${js(urlText(r))}, ${js(reference(r))})`,
  () => `url.format(${urlObject(r)})`,
  () => `url.format(${js(reference(r))})`,
  () => `url.format(url.parse(${js(urlText(r))}))`,
  () => `url.format(new URL(${js(`${r.pick(["http:", "file:", "foo:"])}//${r.pick(["u:p@", "u@", ""])}${r.pick(["a.b", "日本.jp", "[::1]"])}/p?q#h`)}), { ${["auth", "fragment", "search", "unicode"].filter(() => r.chance(0.5)).map((k) => `${k}: ${r.pick(["true", "false", "0", '""'])}`).join(", ")} })`,
  () => `url.urlToHttpOptions(new URL(${js(urlText(r))}))`,
  () => `url.fileURLToPath(${js(`file://${r.pick(["", "localhost", "host"])}${r.pick(PATHS)}`)})`,
  () => `url.pathToFileURL(${js(`${r.pick(["/", ""])}${text(r)}`)}).href`,
  () => `url.domainToASCII(${js(r.pick(HOSTS))})`,
  () => `url.domainToUnicode(${js(r.pick([...HOSTS, "xn--iñvalid.com", "xn--wgv71a.jp"]))})`,
  () => `url.${r.pick(["parse", "format", "fileURLToPath", "pathToFileURL"])}(${anything(r)})`,
);

// ---- buffer

const ENCODINGS = ["utf8", "utf-8", "UTF8", "hex", "base64", "base64url", "latin1", "binary", "ascii", "ucs2", "utf16le", "UCS-2", "utf-16le"];
const encoding = (r) => js(r.chance(0.95) ? r.pick(ENCODINGS) : r.pick(["nope", "", "utf32"]));
function encodable(r) {
  return js(r.of(() => text(r), () => text(r, 2), "deadbeef", "DEADBEE", "00zz11", "aGVsbG8=", "aGVsbG8", "a-_b", "a+/b==", "a G\nVsbG8=", "=aa", "ab=cd", "漢字", "é", "🙂", "\ud83d", "abcabcabc", () => "ab".repeat(r.int(9))));
}
const bytes = (r, high = 12) => `[${r.many(0, high, () => (r.chance(0.5) ? r.pick([0, 1, 97, 98, 127, 128, 255]) : r.int(256))).join(", ")}]`;
const buffer = (r) => r.of(() => `Buffer.from(${bytes(r)})`, () => `Buffer.from(${encodable(r)})`, () => `Buffer.from(${encodable(r)}, ${encoding(r)})`, () => `Buffer.alloc(${r.int(12)})`, () => `Buffer.from("abcabcabcabc")`);
const view = (r) => r.of(() => buffer(r), () => `new Uint8Array(${bytes(r)})`, () => `new Uint16Array(${bytes(r, 6)})`, () => `new Uint8Array(${bytes(r)}).buffer`, () => `new DataView(new Uint8Array(${bytes(r)}).buffer)`);
const offset = (r) => (r.chance(0.85) ? String(r.between(-6, 14)) : r.pick(["undefined", "null", "NaN", "Infinity", "-Infinity", "1.5", "-1.5", '"2"', "{}", "2 ** 31", "2 ** 32", "[]", "true"]));
/** How much memory a call asks for: never much. */
const size = (r) => (r.chance(0.85) ? String(r.between(-2, 20)) : r.pick(["undefined", "null", "NaN", "-Infinity", "1.5", '"2"', "{}", "2 ** 53"]));
const needle = (r) => r.of(() => js(r.pick(["a", "b", "bc", "abc", "", "é", "ca", "漢"])), () => String(r.between(-300, 400)), () => buffer(r), () => `new Uint8Array(${bytes(r, 2)})`, () => anything(r), "97.9", '"6263"');
const KINDS = ["UInt8", "Uint8", "Int8", "UInt16LE", "UInt16BE", "Int16LE", "Int16BE", "UInt32LE", "UInt32BE", "Int32LE", "Int32BE", "FloatLE", "FloatBE", "DoubleLE", "DoubleBE", "BigInt64LE", "BigInt64BE", "BigUInt64LE", "BigUInt64BE"];
const number = (r) => r.of(() => String(r.between(-300, 70000)), () => String(r.between(0, 255)), "2 ** 31", "2 ** 32", "-(2 ** 31)", "1.7", "NaN", '"12"', "-0", "1e300", "undefined");
const listed = (r) => r.of(() => `[${bytes(r)}, ${bytes(r)}].map((b) => Buffer.from(b))`, () => `[new Uint8Array(${bytes(r)}), ${buffer(r)}]`, "[]", () => `[${buffer(r)}, ${anything(r)}]`);
const buffers = (r) => r.of(
  () => `${buffer(r)}.${r.pick(["indexOf", "lastIndexOf", "includes"])}(${args(r, needle(r), offset(r), encoding(r))})`,
  () => `Buffer.from("abcabcabcabc").${r.pick(["indexOf", "lastIndexOf", "includes"])}(${js(r.pick(["a", "bc", "cab", "", "6162", "YWI"]))}, ${offset(r)}, ${encoding(r)})`,
  () => `Buffer.from(${js(r.pick(["abcabc", "漢字漢字", "aéaé"]))}, "utf16le").${r.pick(["indexOf", "lastIndexOf", "includes"])}(${js(r.pick(["a", "bc", "字", "é"]))}, ${offset(r)}, "utf16le")`,
  () => `Buffer.alloc(${r.int(10)}, ${r.of(() => encodable(r), () => number(r), () => buffer(r), () => anything(r))}${r.maybe(0.4, () => `, ${encoding(r)}`)})`,
  () => `${buffer(r)}.fill(${args(r, r.of(() => encodable(r), () => number(r), () => view(r), () => anything(r)), offset(r), offset(r), encoding(r))})`,
  () => `${buffer(r)}.fill(${encodable(r)}, ${encoding(r)})`,
  () => `${buffer(r)}.compare(${args(r, buffer(r), offset(r), offset(r), offset(r), offset(r))})`,
  () => `Buffer.compare(${view(r)}, ${view(r)})`,
  () => `${buffer(r)}.equals(${r.of(() => view(r), () => anything(r))})`,
  () => `${buffer(r)}.toString(${args(r, encoding(r), offset(r), offset(r))})`,
  () => `Buffer.from(${encodable(r)}, ${encoding(r)})`,
  () => `Buffer.from(${r.of(() => view(r), () => anything(r), () => `{ length: ${r.pick([-1, 0, 2, 3, 1.5, "NaN"])}, 0: 300, 1: "7" }`, () => `{ type: "Buffer", data: ${bytes(r)} }`, "new String('ab')", "[1.9, -1, 256, '3', null]")}${r.maybe(0.3, () => `, ${offset(r)}`)}${r.maybe(0.2, () => `, ${offset(r)}`)})`,
  () => `Buffer.from(new Uint8Array(${bytes(r)}).buffer, ${offset(r)}, ${offset(r)})`,
  () => `Buffer.byteLength(${r.of(() => encodable(r), () => view(r), () => anything(r))}${r.maybe(0.7, () => `, ${encoding(r)}`)})`,
  () => `Buffer.concat(${listed(r)}${r.maybe(0.4, () => `, ${r.pick([0, 1, 5, 20, -1, 1.5, "undefined"])}`)})`,
  () => `((b) => [b.write(${args(r, encodable(r), offset(r), offset(r), encoding(r))}), b])(${buffer(r)})`,
  () => `((b) => [b.write(${encodable(r)}, ${encoding(r)}), b])(${buffer(r)})`,
  () => `((b) => [b.copy(${view(r)}, ${offset(r)}, ${offset(r)}, ${offset(r)}), b])(${buffer(r)})`,
  () => `((t) => [${buffer(r)}.copy(t, ${offset(r)}, ${offset(r)}), t])(Buffer.alloc(8))`,
  () => `${buffer(r)}.${r.pick(["slice", "subarray"])}(${offset(r)}, ${offset(r)})`,
  () => `${buffer(r)}.read${r.pick(KINDS)}(${offset(r)})`,
  () => `((b) => [b.write${r.pick(KINDS)}(${r.chance(0.2) ? `${r.between(-9, 9)}n` : number(r)}, ${offset(r)}), b])(Buffer.alloc(10))`,
  () => `${buffer(r)}.read${r.pick(["UInt", "Int"])}${r.pick(["LE", "BE"])}(${offset(r)}, ${r.between(0, 7)})`,
  () => `((b) => [b.write${r.pick(["UInt", "Int"])}${r.pick(["LE", "BE"])}(${number(r)}, ${offset(r)}, ${r.between(0, 7)}), b])(Buffer.alloc(10))`,
  () => `${buffer(r)}.swap${r.pick([16, 32, 64])}()`,
  () => `${buffer(r)}.toJSON()`,
  () => `util.inspect(${buffer(r)})`,
  () => `buffer.isAscii(${r.of(() => view(r), () => anything(r))})`,
  () => `buffer.isUtf8(${r.of(() => view(r), () => anything(r))})`,
  () => `buffer.transcode(${view(r)}, ${encoding(r)}, ${encoding(r)})`,
  () => `Buffer.isEncoding(${r.of(() => encoding(r), () => anything(r))})`,
  () => `Buffer.${r.pick(["alloc", "allocUnsafe"])}(${r.chance(0.5) ? anything(r) : size(r)}).length`,
  () => `Buffer.copyBytesFrom(${args(r, view(r), offset(r), offset(r))})`,
  () => `Buffer.of(${number(r)}, ${number(r)})`,
  () => `[...${buffer(r)}.${r.pick(["entries", "keys", "values"])}()]`,
  () => `${buffer(r)}.${r.pick(["utf8", "latin1", "hex", "base64", "ascii", "ucs2", "base64url"])}Slice(${args(r, offset(r), offset(r))})`,
  () => `((b) => [b.${r.pick(["utf8", "latin1", "hex", "base64", "ascii", "ucs2", "base64url"])}Write(${args(r, encodable(r), String(r.int(8)), String(r.int(8)))}), b])(Buffer.alloc(10))`,
  () => `buffer.atob(${encodable(r)})`,
  () => `buffer.btoa(${encodable(r)})`,
  () => `((d) => [d.write(${buffer(r)}), d.write(${buffer(r)}), d.end(${r.maybe(0.3, () => buffer(r))})])(new string_decoder.StringDecoder(${encoding(r)}))`,
  () => `Buffer.from(${js("QUJD".repeat(r.between(1, 40)))} + ${encodable(r)}, "base64").length`,
);

// ---- querystring, path, punycode

const query = (r) => js(r.many(0, 5, () => r.of("a=1", "a=2", "=x", "a", "b=%20", "c=%zz", "d=%E6%BC%A2", "a+b=c+d", "", "%61=b", () => `${letters(r)}=${letters(r)}`)).join(r.pick(["&", "&", ";", "&&"])));
const queryValue = (r) => r.of(() => js(text(r, 2)), () => number(r), "true", "null", "undefined", "1n", "[1, 'é', null]", "{}", "[]", "Infinity", '"\\ud800"');
const querystrings = (r) => r.of(
  () => `querystring.parse(${args(r, query(r), js(r.pick(["&", ";", "&&", ""])), js(r.pick(["=", ":", "=="])), `{ maxKeys: ${r.pick([0, 1, 2, -1, "Infinity", "undefined"])} }`)})`,
  () => `querystring.stringify({ ${r.many(0, 4, () => `${js(letters(r))}: ${queryValue(r)}`).join(", ")} }${r.maybe(0.3, () => `, ${js(r.pick([";", "", "&&"]))}, ${js(r.pick([":", "=="]))}`)})`,
  () => `querystring.escape(${r.of(() => js(text(r)), () => anything(r))})`,
  () => `querystring.unescape(${js(r.of("%20", "%zz%20", "%E6%BC%A2", "a%", "%C3%28", "%ff", () => text(r)))})`,
  () => `[...querystring.unescapeBuffer(${js(r.of("%20a", "%zz", "%4", () => letters(r)))})]`,
  () => `querystring.${r.pick(["parse", "stringify"])}(${anything(r)})`,
);
const pathText = (r) => js(r.many(0, 6, () => r.pick(["/", "/", "a", "b.c", ".", "..", "...", ".d", "e.", "\\", "C:", "c:\\", "\\\\srv\\share", " ", "é", "x.y.z", "?", "con", ":", "//"])).join(r.pick(["", "/", "\\"])));
const paths = (r) => {
  const which = r.pick(["path", "path.posix", "path.win32", "path.win32"]);
  return r.of(
    () => `${which}.${r.pick(["normalize", "dirname", "extname", "isAbsolute", "parse", "toNamespacedPath"])}(${pathText(r)})`,
    () => `${which}.basename(${args(r, pathText(r), js(r.pick([".c", "c", ".d", "", "b.c", "a"])))})`,
    () => `${which}.join(${r.many(0, 4, () => pathText(r)).join(", ")})`,
    () => `${which}.resolve(${js(r.pick(["/", "C:\\", "/x/y", "D:\\z"]))}, ${r.many(0, 3, () => pathText(r)).join(", ")})`,
    () => `${which}.relative(${js(r.pick(["/a/b", "C:\\a\\b", "/a"]))} + ${pathText(r)}, ${js(r.pick(["/a/c", "C:\\a\\c", "/"]))} + ${pathText(r)})`,
    () => `${which}.format({ ${["root", "dir", "base", "name", "ext"].filter(() => r.chance(0.5)).map((k) => `${k}: ${js(r.pick(["/", "a", ".c", "", "c", "/x"]))}`).join(", ")} })`,
    () => `${which}.format(path.parse(${pathText(r)}))`,
    () => `${which}.matchesGlob(${pathText(r)}, ${js(r.pick(["*", "**", "a/*", "**/b.c", "?", "[ab]", "{a,b.c}", "*.c"]))})`,
    () => `${which}.${r.pick(["normalize", "join", "basename", "dirname", "extname", "isAbsolute", "parse", "format", "resolve"])}(${anything(r)})`,
  );
};
const punycodes = (r) => `punycode.${r.of(() => `toASCII(${js(text(r, 2))})`, () => `toUnicode(${js(r.pick(["xn--maana-pta.com", "xn--", "a.xn--wgv71a", "XN--WGV71A"]))})`, () => `encode(${js(text(r, 2))})`, () => `decode(${js(r.pick(["maana-pta", "--", "a-", "zzzz", "é"]))})`, () => `ucs2.decode(${js(text(r, 2))})`)}`;

// ---- util

function value(r, depth = 3) {
  const inner = () => value(r, depth - 1);
  const simple = () => r.of(() => js(text(r, 2)), () => number(r), "undefined", "null", "true", "-0", "10n", "Symbol('a b')", "Symbol()", "NaN", "() => 1", "function f() {}", "class A {}", "class B extends Map {}", "async () => {}", "function* g() {}", "new Date(0)", "new Date(NaN)", "/a\\/b/gi", "new String('ab')", "new Number(-0)", "Object(1n)", "Object(Symbol('x'))", "new Boolean(false)", "123456789.123", '"it\'s"', '"a\\nb"', '`"\'\\``', "Math", "JSON", "globalThis.Atomics");
  if (depth <= 0) return simple();
  return r.of(
    simple, simple,
    () => `[${r.many(0, 8, inner).join(", ")}]`,
    () => `[${r.many(0, 30, () => r.int(1000)).join(", ")}]`,
    () => `[${r.many(0, 30, () => js(letters(r, 20))).join(", ")}]`,
    () => `({ ${r.many(0, 6, () => `${js(r.pick(["a", "b c", "1", "constructor2", "é", "", "longer_name", "a-b"]))}: ${inner()}`).join(", ")} })`,
    () => `new Map([[${inner()}, ${inner()}], [${inner()}, ${inner()}]])`,
    () => `new Set([${r.many(0, 4, inner).join(", ")}])`,
    () => `[${inner()}, , ${inner()}, , , ]`,
    () => `Object.assign([${inner()}], { extra: ${inner()}, [-1]: 2 })`,
    () => `Object.assign(Object.create(null), { a: ${inner()} })`,
    () => `new (class Foo { constructor() { this.a = ${inner()}; } })()`,
    () => `new (class Foo extends Map { get [Symbol.toStringTag]() { return "bar"; } })([[1, ${inner()}]])`,
    () => `({ get a() { return 1; }, set b(v) {}, get c() { return ${inner()}; }, set c(v) {} })`,
    () => `({ [Symbol("k")]: ${inner()}, [Symbol.toStringTag]: "T" })`,
    () => `Object.defineProperty({ a: 1 }, "hidden", { value: ${inner()} })`,
    () => `new Uint8Array(${bytes(r)})`, () => `new Float64Array([1.5, -0, NaN])`, () => `new Uint8Array(${bytes(r)}).buffer`, () => `new DataView(new ArrayBuffer(2))`, () => `new BigInt64Array([1n])`,
    () => `Promise.resolve(${inner()})`, "new Promise(() => {})", "(() => { const p = Promise.reject(3); p.catch(() => {}); return p; })()",
    () => `new WeakMap()`, () => `new WeakSet()`, () => `new Map([[1, 2]]).entries()`, () => `new Set([${inner()}]).values()`, () => `new Map([[1, 2]]).keys()`, () => `[1, 2][Symbol.iterator]()`, () => `"ab"[Symbol.iterator]()`, "(function () { return arguments; })(1, 2)", "(function* () { yield 1; })()",
    () => `(() => { const a = { x: ${inner()} }; a.self = a; a.list = [a, { a }]; return a; })()`,
    () => `({ a: { b: { c: { d: ${inner()} } } } })`,
    () => `new Proxy({ a: ${inner()} }, {})`, "new Proxy(function f() {}, {})",
    () => `Object.assign(function named() {}, { p: ${inner()} })`,
    () => `({ [util.inspect.custom](depth, options) { return "custom " + depth + typeof options.stylize; } })`,
    () => `new URL("http://u:p@a.b:81/p?q#h")`, () => `new URLSearchParams("a=1&b=2&a=3")`, () => `Buffer.from(${bytes(r)})`,
    () => js("word ".repeat(r.between(10, 60))), () => js("line\n".repeat(r.between(2, 8))), () => js("x".repeat(r.between(60, 300))),
  );
}
const inspectOptions = (r) => `{ ${Object.entries({ showHidden: ["true"], depth: ["0", "1", "2", "null", "Infinity", "-1"], colors: ["true"], customInspect: ["false"], showProxy: ["true"], maxArrayLength: ["0", "1", "3", "null"], maxStringLength: ["0", "5", "null"], breakLength: ["20", "60", "80", "128", "Infinity"], compact: ["true", "false", "0", "1", "3", "5"], sorted: ["true", "(a, b) => (a < b ? 1 : -1)"], getters: ["true", '"get"', '"set"'], numericSeparator: ["true"] }).filter(() => r.chance(0.15)).map(([key, values]) => `${key}: ${r.pick(values)}`).join(", ")} }`;
const formats = (r) => r.many(0, 4, () => r.of("%s", "%d", "%i", "%f", "%j", "%o", "%O", "%c", "%%", "%", "%x", () => letters(r))).join(r.pick(["", " "]));
const utils = (r) => r.of(
  () => `util.inspect(${value(r)})`, () => `util.inspect(${value(r)})`, () => `util.inspect(${value(r)}, ${inspectOptions(r)})`, () => `util.inspect(${value(r)}, ${inspectOptions(r)})`,
  () => `util.format(${js(formats(r))}${r.many(0, 4, () => `, ${value(r, 2)}`).join("")})`,
  () => `util.format(${r.many(0, 3, () => value(r, 2)).join(", ")})`,
  () => `util.formatWithOptions(${inspectOptions(r)}, ${js(formats(r))}, ${value(r, 2)})`,
  () => `util.isDeepStrictEqual(${value(r, 2)}, ${value(r, 2)})`,
  () => `((v) => Object.keys(util.types).filter((name) => util.types[name](v)))(${value(r, 1)})`,
  () => `util.stripVTControlCharacters(${js(r.many(0, 4, () => r.of("\x1b[31m", "\x1b[0m", "\x1b]8;;http://a\x07", "\x9b1m", "\x1b(B", "\x1b[1;2H", "a", () => letters(r))).join(""))})`,
  () => `util.styleText(${r.of(() => js(r.pick(["red", "bold", "nope", "bgBlue", "none"])), '["red", "bold"]', "[]", () => anything(r))}, ${r.chance(0.9) ? js(letters(r)) : anything(r)}, { validateStream: false })`,
  () => `util.toUSVString(${js(text(r))})`,
  () => `util.parseArgs({ args: [${r.many(0, 5, () => js(r.pick(["-f", "--foo", "--foo=1", "-fx", "--no-foo", "--", "pos", "-b", "1", "--bar", "-", "--bar=", "-fb"]))).join(", ")}], options: { foo: { type: ${js(r.pick(["boolean", "string"]))}, short: "f"${r.maybe(0.3, () => ", multiple: true")}${r.maybe(0.2, () => ', default: "d"')} }, bar: { type: "string", short: "b" } }, strict: ${r.pick(["true", "false"])}, allowPositionals: ${r.pick(["true", "false"])}, allowNegative: ${r.pick(["true", "false"])}, tokens: ${r.pick(["true", "false"])} })`,
  () => `util.parseEnv(${js(r.many(0, 4, () => r.of("A=1", "B='x y'", "C=\"a\\nb\"", "# c", "export D=4", "E = 5 # c", "F=`a`", "G=", "=H", "I", "J='a\nb'", () => text(r, 2))).join("\n"))})`,
  () => `(util.promisify((a, cb) => cb(${r.pick(["null", "new Error('x')"])}, a))(${value(r, 1)}))`,
  () => `String(new util.MIMEType(${js(r.of("text/plain; charset=utf-8", "a/b;c=\"d;e\"", "a", "/", "A/B; X=Y;x=z", () => text(r)))}))`,
  () => `util.getSystemErrorName(${r.pick(["-2", "-13", "-4095", "0", "1", '"a"'])})`,
  () => `util.${r.pick(["inherits", "deprecate", "promisify", "callbackify", "stripVTControlCharacters", "inspect", "format"])}(${anything(r)})`,
);

// ---- zlib

const FORMATS = [["gzipSync", "gunzipSync"], ["deflateSync", "inflateSync"], ["deflateRawSync", "inflateRawSync"], ["brotliCompressSync", "brotliDecompressSync"], ["gzipSync", "unzipSync"], ["deflateSync", "unzipSync"]];
const zipped = (r) => r.of(() => buffer(r), () => js(text(r)), () => `Buffer.alloc(${r.int(3000)}, ${js(r.pick(["abc", "x", "hello world "]))})`, () => `new Uint16Array(${bytes(r, 6)})`, () => `new Uint8Array(${bytes(r)}).buffer`);
const zipOption = (r) => `{ ${Object.entries({ level: ["-1", "0", "1", "9", "10", "-2", '"9"', "NaN"], windowBits: ["8", "9", "15", "16", "0", "7"], memLevel: ["1", "9", "10", "0"], strategy: ["0", "1", "4", "5"], chunkSize: ["64", "63", "1000", "Infinity"], maxOutputLength: ["1", "10", "0", "100000"], finishFlush: ["2", "4", "0", "5", "7"], flush: ["2", "0", "9"], info: ["true"], dictionary: ['Buffer.from("abc")', '"abc"', "new Uint8Array(3)"] }).filter(() => r.chance(0.12)).map(([key, values]) => `${key}: ${r.pick(values)}`).join(", ")} }`;
const zips = (r) => {
  const [pack, unpack] = r.pick(FORMATS);
  return r.of(
    () => `zlib.${unpack}(zlib.${pack}(${zipped(r)}, ${zipOption(r)}))`,
    () => `zlib.${unpack}(zlib.${pack}(${zipped(r)}), ${zipOption(r)})`,
    () => `zlib.${unpack}(Buffer.concat([zlib.${pack}(${zipped(r)}), ${buffer(r)}]))`,
    () => `zlib.${unpack}(zlib.${pack}(${zipped(r)}).subarray(0, -${r.int(6)}))`,
    () => `zlib.${unpack}(${buffer(r)})`,
    () => `zlib.crc32(${zipped(r)}${r.maybe(0.3, () => `, ${number(r)}`)})`,
    () => `zlib.${r.pick([pack, unpack])}(${anything(r)})`,
    () => `new Promise((resolve) => zlib.${unpack.slice(0, -4)}(${buffer(r)}, (error, result) => resolve([error, result])))`,
    () => `((z) => [z.constructor.name, z._level, z._strategy, z.bytesWritten, Object.keys(z._events).length > 0])(zlib.create${r.pick(["Gzip", "Deflate", "Inflate", "Gunzip", "DeflateRaw", "InflateRaw", "Unzip"])}(${zipOption(r)}))`,
    () => `new Promise((resolve) => { const parts = []; const z = zlib.create${r.pick(["Gunzip", "Inflate", "Unzip", "BrotliDecompress"])}(${zipOption(r)}); z.on("data", (d) => parts.push(d)).on("end", () => resolve(Buffer.concat(parts))).on("error", (e) => resolve([e, e.errno])); z.write(zlib.${pack}(${zipped(r)})); z.end(${r.maybe(0.2, () => buffer(r))}); })`,
    () => `new Promise((resolve) => { const z = zlib.createDeflate(); z.params(${r.between(-2, 10)}, ${r.between(-1, 5)}, (e) => { z.end(${js(text(r))}); z.resume(); z.on("end", () => resolve([e, z.bytesWritten])); }); })`,
  );
};

// ---- crypto

const HASHES = ["sha256", "SHA1", "md5", "sha512", "sha384", "sha224", "RSA-SHA256", "sha512-256", "sha3-256", "ripemd160", "blake2b512", "shake128"];
const key = (r, size) => `Buffer.alloc(${r.chance(0.95) ? size : size + r.between(-2, 2)}, ${js(letters(r) || "k")})`;
const CIPHERS = [["aes-128-cbc", 16, 16], ["aes-256-cbc", 32, 16], ["aes-192-ctr", 24, 16], ["aes-256-ecb", 32, 0], ["aes-128-gcm", 16, 12], ["aes-256-gcm", 32, 12], ["chacha20-poly1305", 32, 12], ["aes-256-ctr", 32, 16], ["AES-128-CBC", 16, 16], ["id-aes128-GCM", 16, 12], ["des-ede3-cbc", 24, 8], ["aes-128-ofb", 16, 16], ["aes-128-cfb8", 16, 16]];
const outEncoding = (r) => r.of("", () => encoding(r), '"buffer"');
const PAIRS = `
const pair = (() => { let made; return (kind) => (made ??= {
  rsa: crypto.generateKeyPairSync("rsa", { modulusLength: 1024 }), ec: crypto.generateKeyPairSync("ec", { namedCurve: "P-256" }), ed: crypto.generateKeyPairSync("ed25519"), x: crypto.generateKeyPairSync("x25519"),
})[kind]; })();
`;
const cryptos = (r) => {
  const [name, keySize, ivSize] = r.pick(CIPHERS), aead = /gcm|GCM|poly1305/.test(name), tag = aead ? `, { authTagLength: ${r.pick([16, 16, 12, 4, 17, 3])} }` : "";
  const hash = js(r.chance(0.95) ? r.pick(HASHES) : "nope"), kind = r.pick(["rsa", "ec", "ed"]), digest = kind === "ed" ? r.pick(["null", "undefined", '"sha256"']) : r.pick(['"sha256"', '"SHA1"', '"sha512"', "undefined", "null", '"nope"']);
  const keyOptions = (which) => r.of(`pair("${kind}").${which}`, `{ key: pair("${kind}").${which} }`, `{ key: pair("${kind}").${which}, padding: crypto.constants.${r.pick(["RSA_PKCS1_PSS_PADDING", "RSA_PKCS1_PADDING"])}, saltLength: ${r.pick(["20", "crypto.constants.RSA_PSS_SALTLEN_DIGEST", "undefined"])} }`, `{ key: pair("${kind}").${which}, dsaEncoding: ${js(r.pick(["der", "ieee-p1363", "nope"]))} }`, `pair("${kind}").${which}.export({ type: ${js(which === "publicKey" ? "spki" : "pkcs8")}, format: ${js(r.pick(["pem", "der"]))} })`, `{ key: pair("${kind}").${which}.export({ type: ${js(which === "publicKey" ? "spki" : "pkcs8")}, format: "der" }), type: ${js(which === "publicKey" ? "spki" : "pkcs8")}, format: "der" }`, `{ key: pair("${kind}").${which}.export({ format: "jwk" }), format: "jwk" }`);
  return r.of(
    () => `crypto.createHash(${hash}${r.maybe(0.1, () => `, { outputLength: ${r.pick([0, 1, 16, 20, 32, 64, -1])} }`)}).update(${r.of(() => encodable(r), () => view(r), () => anything(r))}${r.maybe(0.3, () => `, ${encoding(r)}`)}).digest(${outEncoding(r)})`,
    () => `crypto.hash(${hash}, ${zipped(r)}${r.maybe(0.5, () => `, ${encoding(r)}`)})`,
    () => `crypto.createHmac(${hash}, ${r.of(() => buffer(r), () => encodable(r), () => `crypto.createSecretKey(${buffer(r)})`, () => anything(r))}).update(${encodable(r)}).digest(${outEncoding(r)})`,
    () => `((c) => [c.update(${encodable(r)}, ${encoding(r)}${r.maybe(0.5, () => `, ${encoding(r)}`)}), c.final(${outEncoding(r)})${aead ? ", c.getAuthTag()" : ""}])(crypto.createCipheriv(${js(name)}, ${r.chance(0.3) ? `crypto.createSecretKey(${key(r, keySize)})` : key(r, keySize)}, ${ivSize ? key(r, ivSize) : r.pick(["null", '""'])}${tag}))`,
    () => `(() => { const k = ${key(r, keySize)}, iv = ${ivSize ? key(r, ivSize) : "null"}; const c = crypto.createCipheriv(${js(name)}, k, iv${tag}); ${aead ? `c.setAAD(${buffer(r)});` : ""} const e = Buffer.concat([c.update(${encodable(r)}), c.final()]); const d = crypto.createDecipheriv(${js(name)}, k, iv${tag}); ${aead ? "d.setAuthTag(c.getAuthTag());" : ""} ${r.maybe(0.2, () => "d.setAutoPadding(false);")} return [e, d.update(e), d.final()]; })()`,
    () => `crypto.getCipherInfo(${r.chance(0.8) ? js(name) : anything(r)}${r.maybe(0.3, () => `, { keyLength: ${r.pick([16, 24, 32])}, ivLength: ${r.pick([8, 12, 16])} }`)})`,
    () => `crypto.pbkdf2Sync(${encodable(r)}, ${encodable(r)}, ${r.pick([1, 2, 10, 0, -1])}, ${r.pick([0, 1, 20, 64, -1])}, ${hash})`,
    () => `crypto.scryptSync(${encodable(r)}, ${encodable(r)}, ${r.pick([0, 16, 32])}, { N: ${r.pick([2, 16, 15, 1])}, r: ${r.pick([1, 8])}, p: 1 })`,
    () => `crypto.hkdfSync(${hash}, ${encodable(r)}, ${encodable(r)}, ${encodable(r)}, ${r.pick([0, 1, 32, 9000, -1])})`,
    () => `crypto.timingSafeEqual(${view(r)}, ${view(r)})`,
    () => `crypto.createSecretKey(${r.of(() => buffer(r), () => `${encodable(r)}, ${encoding(r)}`, () => anything(r))}).export(${r.of("", '{ format: "jwk" }', '{ format: "buffer" }', '{ format: "x" }')})`,
    () => `((k) => [k.type, k.asymmetricKeyType, k.asymmetricKeyDetails && Object.keys(k.asymmetricKeyDetails), k.symmetricKeySize])(${r.of(() => `crypto.createPublicKey(${keyOptions("publicKey")})`, () => `crypto.createPrivateKey(${keyOptions("privateKey")})`, () => `crypto.createPublicKey(${keyOptions("privateKey")})`)})`,
    () => `((s) => [typeof s, s.length > 0, crypto.verify(${digest}, Buffer.from("data"), ${keyOptions("publicKey")}, s)])(crypto.sign(${digest}, Buffer.from("data"), ${keyOptions("privateKey")}))`,
    () => `crypto.createVerify("SHA256").update("data").verify(${keyOptions("publicKey")}, crypto.createSign("SHA256").update("data").sign(${keyOptions("privateKey")}))`,
    () => `crypto.createVerify("RSA-SHA256").update("data").verify(pair("rsa").publicKey, crypto.createSign("sha256").update("data").sign(pair("rsa").privateKey, ${encoding(r)}), ${encoding(r)})`,
    () => `crypto.privateDecrypt(${r.of("pair('rsa').privateKey", "{ key: pair('rsa').privateKey, oaepHash: 'sha256' }", "{ key: pair('rsa').privateKey, padding: crypto.constants.RSA_PKCS1_OAEP_PADDING }")}, crypto.publicEncrypt(${r.of("pair('rsa').publicKey", "{ key: pair('rsa').publicKey, oaepHash: 'sha256' }", "pair('rsa').privateKey")}, Buffer.from(${encodable(r)})))`,
    () => `crypto.publicDecrypt(pair("rsa").publicKey, crypto.privateEncrypt(pair("rsa").privateKey, Buffer.from(${encodable(r)})))`,
    () => `crypto.diffieHellman({ privateKey: pair("x").privateKey, publicKey: pair("x").publicKey }).length`,
    () => `crypto.randomInt(${r.of("1", "5, 6", "0", "-1", "2 ** 48", "1.5", "3, 2")})`,
    () => `crypto.${r.pick(["randomBytes", "randomFillSync", "createSecretKey", "createPublicKey", "createPrivateKey", "createHash", "createSign", "createVerify", "generateKeySync", "generateKeyPairSync", "checkPrimeSync"])}(${anything(r)})`,
    () => `crypto.generateKeySync(${js(r.pick(["hmac", "aes", "des"]))}, { length: ${r.pick([128, 129, 256, 8, 7, 0, "undefined"])} }).symmetricKeySize`,
    () => `crypto.getHashes().includes(${hash})`,
    () => `crypto.randomUUID(${r.of("", "{ disableEntropyCache: true }", "1", "{ disableEntropyCache: 1 }")}).length`,
    () => `crypto.createECDH(${js(r.pick(["prime256v1", "secp256k1", "nope"]))}).setPrivateKey(Buffer.alloc(32, 1)).getPublicKey(${encoding(r)}, ${js(r.pick(["compressed", "uncompressed", "hybrid"]))})`,
  );
};

// ---- tls, timers, events

const certificateNames = ["a.com", "*.com", "*.a.com", "b.a.com", "A.COM", "*", "*a.com", "a*.a.com", "x.*.com", "", "xn--a.com", "1.2.3.4", "a.com."];
const tlses = (r) => `((e) => e && [e.code, e.reason, e.host])(tls.checkServerIdentity(${js(r.pick([...certificateNames, "::1"]))}, { subject: ${r.of("{}", "undefined", () => `{ CN: ${r.of(() => js(r.pick(certificateNames)), () => `[${js(r.pick(certificateNames))}, ${js(r.pick(certificateNames))}]`)} }`)}${r.maybe(0.6, () => `, subjectaltname: ${js(r.many(0, 3, () => r.of(() => `DNS:${r.pick(certificateNames)}`, "IP Address:1.2.3.4", "IP Address:0:0:0:0:0:0:0:1", "URI:http://a.com/", 'DNS:"b.a.com"', "email:x")).join(", "))}`)} }))`;
const timersCalls = (r) => r.of(
  () => `((t) => { const x = t.${r.pick(["ref", "unref", "refresh", "hasRef", "close"])}(); clearTimeout(t); return x === t ? "itself" : x; })(timers.${r.pick(["setTimeout", "setInterval"])}(() => {}, ${r.pick([1, 1000])}))`,
  () => `((t) => { const d = typeof t[Symbol.toPrimitive](); clearTimeout(+t); return [d, t.hasRef(), t.constructor.name]; })(timers.setTimeout(() => {}, 1000))`,
  () => `((t) => { t[Symbol.dispose]?.(); return [t.constructor.name, t.hasRef()]; })(timers.${r.pick(["setImmediate", "setTimeout"])}(() => {}, 1))`,
  () => `timers.promises.setTimeout(1, ${value(r, 1)})`, () => `timers.promises.setTimeout(${anything(r)}, 1)`, () => `timers.${r.pick(["setTimeout", "setInterval", "setImmediate"])}(${r.pick(["undefined", "null", '"x"', "1"])})`,
);
const eventCalls = (r) => `((e, log) => { e.on("a", (...x) => log.push("a", x)); e.${r.pick(["once", "prependListener", "on", "prependOnceListener"])}("a", () => log.push("b")); e.${r.of("emit('a', 1)", "emit('b')", "emit('error', new Error('x'))", "emit('error', 5)", "off('a', () => {})", "removeAllListeners('a')", "setMaxListeners(-1)", "listenerCount('a')", "rawListeners('a').length", "eventNames()", "on('x')")}; e.emit("a", 2); return [log, e.eventNames(), e.listenerCount("a")]; })(new events.EventEmitter(), [])`;

const families = {
  url: urls, buffer: buffers, querystring: querystrings, path: paths, punycode: punycodes, util: utils, zlib: zips, crypto: cryptos, tls: tlses, timers: timersCalls, events: eventCalls,
};
const names = Object.keys(families);

export const prelude = `${Object.entries(IMPORTS).map(([local, module]) => `import ${local} from "${module}";`).join("\n")}\nconst { Buffer } = buffer;${PAIRS}`;

const kindOf = (family, text) => `${family}: ${/[\w.]+(?=\()/.exec(text.replace(/^\(+\w+\) => .*?(?=\w+\.)/, ""))?.[0] ?? "value"}`;
export function program(random) {
  const r = new Choice(random), family = r.pick(names);
  return Array.from({ length: CALLS }, () => {
    const text = families[family](r);
    return { kind: kindOf(family, text), text };
  });
}

// ---- what is known to differ

const probe = readFileSync(new URL("probe.js", import.meta.url), "utf8");
const { describe, describeError } = new Function(`${probe.slice(probe.indexOf("const kObjectTag"), probe.indexOf("const PENDING"))}; return { describe, describeError };`)();
const modules = Object.fromEntries(await Promise.all(Object.entries(IMPORTS).map(async ([local, module]) => [local, (await import(module)).default])));
const scope = { ...modules, Buffer };

/** What Node.js gives, as probe.js has it; undefined for a promise. */
function inNode(text) {
  let value;
  try {
    value = new Function(...Object.keys(scope), `${PAIRS}return (${text});`)(...Object.values(scope));
  } catch (error) {
    return `throws ${typeof error === "object" && error !== null ? describeError(error) : describe(error)}`;
  }
  return value instanceof Promise ? (value.catch(() => {}), undefined) : describe(value);
}

export const known = [
  { cause: "the platform differs from Node.js", reason: "what is given here is what Node.js gives", when: ({ text, here }) => inNode(text) === here },
  { cause: "codes of the errors that zlib calls back with", reason: "as in Node.js; the platform gives them to none", when: ({ kind, here, there }) => kind.startsWith("zlib") && there === here.replace(/^(resolves \[Error) (Z|ERR)_\w+/, "$1") },
  {
    cause: "the code of an error", reason: "errors of the platform's own functions have none, whatever their class; here they have codes, as those of Node.js",
    when: ({ kind, here, there }) => /^(crypto|util|zlib)/.test(kind) && /^throws \w*Error$/.test(there) && /^throws \w*Error \w+$/.test(here),
  },
  { cause: "`util.parseArgs()`", reason: "it is there; the platform has not implemented it", when: ({ kind, there }) => kind === "util: util.parseArgs" && there.startsWith("throws Error") },
  { cause: "what is left in an iterator of a `Map` or `Set`", reason: "`util.inspect()` shows none of it: the engine does not tell", when: ({ kind, here }) => kind.startsWith("util") && /\[(Map|Set) Iterator\] {(  |\\n *\\n)}|\[(Map|Set) Iterat"\.\.\. of/.test(here) },
  { cause: "members of a `WeakMap` or `WeakSet`", reason: "`util.inspect()` with `showHidden` shows none of them: the engine does not tell", when: ({ kind, here }) => kind.startsWith("util") && /Weak(Map|Set) \{/.test(here) },
  { cause: "`util.deprecate()` of what is no function", reason: "refused; the platform gives it back as it is", when: ({ kind }) => kind === "util: util.deprecate" },
  { cause: "negative offsets into an `ArrayBuffer`", reason: "refused with a code; elsewhere the engine refuses them", when: ({ kind, here, there }) => kind === "buffer: Buffer.from" && here === "throws RangeError ERR_BUFFER_OUT_OF_BOUNDS" && there === "throws RangeError" },
  { cause: "which of two mistakes of `Buffer.concat()` is told", reason: "the list is looked at before the length", when: ({ kind, here, there }) => kind === "buffer: Buffer.concat" && here.startsWith("throws") && there.startsWith("throws") },
  { cause: "`crypto.getCipherInfo()`", reason: "OpenSSL's table: more ciphers, its own numbers; no `ivLength` where there is no vector, as in Node.js", when: ({ kind }) => kind === "crypto: crypto.getCipherInfo" },
  { cause: "members of a JWK that are not there", reason: "absent, as in Node.js; the platform has them undefined", when: ({ kind, there }) => kind === "crypto: crypto.createSecretKey" && there.includes("crv: undefined") },
  {
    cause: "options of a signature that do not fit its key", reason: "`saltLength: undefined` and the like are looked over; those that change nothing are too",
    when: ({ kind, text, there }) => kind.startsWith("crypto") && /verify\(|createP\w+Key\(/.test(text) && /^throws (Type)?Error( ERR_INVALID_ARG_(TYPE|VALUE))?$/.test(there),
  },
  { cause: "tags of other lengths than 16 for ChaCha20-Poly1305", reason: "as OpenSSL has them", when: ({ kind, text }) => kind.startsWith("crypto") && /chacha20-poly1305.*authTagLength: (3|4|12|17)/.test(text) },
  { cause: "unknown encodings and forms of `ECDH` keys", reason: "another class of error", when: ({ kind, here, there }) => kind === "crypto: crypto.createECDH" && here.startsWith("throws") && there.startsWith("throws") },
  { cause: "which error an impossible decryption gives", reason: "refused on both", when: ({ kind, here, there }) => kind === "crypto: crypto.privateDecrypt" && here.startsWith("throws") && there.startsWith("throws") },
  { cause: "parts of long texts that differ in what is cut", reason: "iterators of a `Map` or `Set`, as above, beyond what is shown", when: ({ kind, text, here }) => kind.startsWith("util") && / of \d+$/.test(here) && /\.(keys|values|entries)\(\)|Weak(Map|Set)/.test(text) },
  { cause: "tags of 3, 4 or 17 bytes in GCM", reason: "another error, or when they are used; refused on both where they matter", when: ({ kind, text, here }) => kind.startsWith("crypto") && /gcm.*authTagLength: (3|4|17)/.test(text) && here.startsWith("throws") },
  { cause: "the order in which `util.types` has its names", reason: "that of Node.js is not kept", when: ({ kind, here, there }) => kind === "util: Object.keys" && [...(here ?? "")].sort().join() === [...(there ?? "")].sort().join() },
  { cause: "`buffer.transcode()` of bytes that are no UTF-8", reason: "U+FFFD for each; Node.js throws", when: ({ kind, there }) => kind === "buffer: buffer.transcode" && there === "throws Error" },
  { cause: "a UTF-16 text in a Buffer, from an odd offset", reason: "looked for from there; Node.js goes back by a byte", when: ({ kind, text }) => kind === "buffer: Buffer.from" && /indexOf\(.*(utf16le|ucs2|ucs-2)/i.test(text) },
  { cause: "how a Proxy of a function is shown", reason: "as the engine names it", when: ({ kind, text, here }) => kind.startsWith("util") && text.includes("new Proxy(function") && here.includes("ProxyObject") },
  { cause: "details that say nothing about a key", reason: "names without a value are there or not", when: ({ kind, text }) => kind === "crypto: Object.keys" || text === 'crypto.createSecretKey("")' },
  { cause: "`oaepHash` of one side only", reason: "what was encrypted with another hash is refused, as in Node.js", when: ({ kind, here, there }) => kind === "crypto: crypto.privateDecrypt" && here === "throws Error ERR_OSSL_EVP_ERROR" && !there.startsWith("throws") },
  { cause: "listeners and names of the engine that `info` shows", reason: "slots of events that nobody listens to are absent", when: ({ kind, there }) => kind.startsWith("zlib") && there.includes("close: undefined, data: undefined") },
];
