// A function with more than seven parameters takes a struct instead: who calls it cannot tell the fifth from the sixth.
// Prints a line for each definition and prototype in src/ that has more.
import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const MAX = 7;

/** [{ line, name, count }]: the functions of a C file with more parameters than that. */
export function tooMany(text, max = MAX) {
  const found = [];
  // Comments and strings become blanks of the same length, so that lines stay where they are.
  const plain = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g, (part) => part.replace(/[^\n]/g, " "));
  // A definition or prototype begins at the left margin with its type, and goes on to a brace or a semicolon.
  for (const match of plain.matchAll(/^(?![#}])[A-Za-z_][\w \t*]*?[ *](\w+)\(/gm)) {
    let depth = 1, count = 1, at = match.index + match[0].length;
    for (; at < plain.length && depth > 0; at++) {
      if (plain[at] === "(") depth++;
      else if (plain[at] === ")") depth--;
      else if (plain[at] === "," && depth === 1) count++;
    }
    if (count > max && /^\s*(__attribute__|[;{])/.test(plain.slice(at)))
      found.push({ line: plain.slice(0, match.index).split("\n").length, name: match[1], count });
  }
  return found;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.chdir(new URL("..", import.meta.url).pathname);
  for (const name of readdirSync("src", { recursive: true }).filter((each) => /\.[ch]$/.test(each)).sort())
    for (const { line, name: function_, count } of tooMany(readFileSync(`src/${name}`, "utf8"))) {
      console.log(`src/${name}:${line}: ${function_}() has ${count} parameters: more than ${MAX} become a struct`);
      process.exitCode = 1;
    }
}
