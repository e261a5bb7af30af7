// URL, URLSearchParams and URLPattern: any text is a URL that survives being written and read again,
// or a TypeError; so after any change by a setter.
import { check, fuzz } from "./lib.js";

const PIECES = [
  "http://", "https:", "file:", "ws://", "data:", "javascript:", "blob:", "//", "///", "/", "\\", "?", "#", ":", "@", "::", "[::1]", "[", "]",
  "user", "pass", "example.com", "EXAMPLE", "xn--", "xn--ls8h", "ü.de", "\u2603", "a%20b", "%", "%2", "%zz", "%00", "%2e", "%2E%2e", ".", "..", "...",
  "0x7f.1", "127.0.0.1", "256.1", "1.2.3.4.5", "65535", "65536", "80", "443", " ", "\t", "\n", "\0", "\u00ad", "\u{1F600}", "\ud800", "\udc00", "C|", "C:",
  "a=b", "&", "&&", "=", "+", "%2B", "~", "'", "\"", "<", ">", "`", "{", "}", "|", "^", "*", ":id", "(", ")", "(.*)", "{a}?", "?", "\\d+",
];
const SETTERS = ["protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash", "href"];
const GETTERS = ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"];

function text(random) {
  let out = "";
  for (let n = random.below(9); n >= 0; n--) out += random.below(8) === 0 ? String.fromCharCode(random.below(0x300)) : random.pick(PIECES);
  return out;
}

function parse(input, base) {
  try {
    return base === undefined ? new URL(input) : new URL(input, base);
  } catch (error) {
    check(error instanceof TypeError, `not a TypeError: ${error}`);
    return null;
  }
}

/** What is written is read as the same, part by part. */
function stable(url, how) {
  const again = parse(url.href);
  check(again !== null, `${how}: ${JSON.stringify(url.href)} cannot be read again`);
  for (const part of GETTERS) {
    check(again[part] === url[part], `${how}: ${part} of ${JSON.stringify(url.href)} is ${JSON.stringify(url[part])}, then ${JSON.stringify(again[part])}`);
  }
  check(/^[\x21-\x7e]*$/.test(url.href.replaceAll(" ", "")), `${how}: ${JSON.stringify(url.href)} is not ASCII`);
}

fuzz("url", (random) => {
  const input = text(random), base = random.below(3) === 0 ? text(random) : undefined;
  check(URL.canParse(input, base) === (parse(input, base) !== null), "canParse() and the constructor disagree");
  const url = parse(input, base) ?? parse("http://user@example.com:8080/a/../b?c=d#e");
  stable(url, `new URL(${JSON.stringify([input, base])})`);
  for (let n = random.below(4); n > 0; n--) {
    const setter = random.pick(SETTERS), value = text(random);
    const before = url.href;
    try {
      url[setter] = value;
    } catch (error) {
      check(setter === "href" && error instanceof TypeError, `${setter} threw ${error}`);
    }
    stable(url, `${JSON.stringify(before)}.${setter} = ${JSON.stringify(value)}`);
  }
  const params = new URLSearchParams(text(random));
  const list = [...params];
  const again = [...new URLSearchParams(params.toString())];
  check(JSON.stringify(again) === JSON.stringify(list.map((pair) => pair.map((part) => part.toWellFormed()))), `parameters ${JSON.stringify(list)} become ${JSON.stringify(again)}`);
  url.searchParams.append(text(random), text(random));
  stable(url, "searchParams.append()");
  if (random.below(4) === 0) {
    try {
      new URLPattern(random.below(2) ? text(random) : { pathname: `/${text(random)}` }, "http://example.com").exec(url.href);
    } catch (error) {
      check(error instanceof TypeError, `URLPattern threw ${error}`);
    }
  }
});
