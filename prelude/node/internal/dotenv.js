// util.parseEnv() and process.loadEnvFile(): lines NAME=value of a .env file.
import { validateString } from "./errors.js";

const HEAD = /[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*(?:=|:[ \t])[ \t]*/y;

/** Where the quotes that open at `at` close; -1: nowhere. */
function closing(text, at) {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === text[at]) return i;
    if (text[at] === '"' && text[i] === "\\") i++;
  }
  return -1;
}

/** What stands at `at`: in quotes, which may go over lines, or up to a comment or the end of its line. */
function rawAt(text, at, lineEnd) {
  const end = at < text.length && "\"'`".includes(text[at]) ? closing(text, at) : -1;
  return end >= 0 ? text.slice(at, end + 1) : text.slice(at, lineEnd).split("#", 1)[0];
}

/** A value without its quotes. */
function valueOf(raw) {
  const text = raw.trim(), quote = text[0];
  if (text.length < 2 || !"\"'`".includes(quote) || !text.endsWith(quote)) return text;
  const inner = text.slice(1, -1);
  return quote === '"' ? inner.replace(/\\n/g, "\n") : inner;
}

export function parseEnv(content) {
  validateString(content, "content");
  const text = content.replace(/\r\n?/g, "\n"), values = {};
  const lineEndAfter = (at) => (text.indexOf("\n", at) + 1 || text.length + 1) - 1;
  for (let at = 0; at < text.length; at = lineEndAfter(at) + 1) {
    HEAD.lastIndex = at;
    const head = HEAD.exec(text);
    if (head === null) continue;
    const raw = rawAt(text, HEAD.lastIndex, lineEndAfter(HEAD.lastIndex));
    at = HEAD.lastIndex + raw.length;
    values[head[1]] = valueOf(raw);
  }
  return values;
}
