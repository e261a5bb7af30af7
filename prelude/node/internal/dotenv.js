// util.parseEnv() and process.loadEnvFile(): lines NAME=value of a .env file.
import { validateString } from "./errors.js";

const LINE = /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*(?:=[ \t]*|:[ \t]+)("(?:\\.|[^"\\])*"|'[^']*'|`[^`]*`|[^#\r\n]*)?[^\r\n]*$/gm;

export function parseEnv(content) {
  validateString(content, "content");
  const values = {};
  for (const [, name, raw = ""] of content.replace(/\r\n?/g, "\n").matchAll(LINE)) {
    const text = raw.trim();
    const quoted = /^(["'`])([^]*)\1$/.exec(text);
    if (quoted === null) values[name] = text;
    else values[name] = quoted[1] === '"' ? quoted[2].replace(/\\n/g, "\n") : quoted[2];
  }
  return values;
}
