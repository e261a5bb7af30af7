// File names in comments and documents that do not exist: a path, or the bare name of a file of the tree.
// Part of `make lint`.
//
// A path is looked for from the root, from src/, prelude/, test/, test/integration/, test/unit/, docs/ and its own folder; a
// name without a folder may stand for any file that is called so. A page may name the files that its reader writes, which
// its recipes name (test/recipes/pages.mjs). Whoever moves a file hears of who speaks of it.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const STARTS = ["", "src", "prelude", "test", "test/integration", "test/unit", "test/conformance", "test/fuzz", "docs", "build", "templates/c-object"];
const NAME = /(?<![\w@$<>*{}/.-])(?:\.{0,2}\/)?[\w-]+(?:[/.][\w-]+)*\.(?:c|h|mjs|js|md)(?![\w/*{}<>(-]|\.\w)/g;

/** What in a text speaks about the code: all of a document, the comments of a program. */
export function prose(file, text) {
  if (file.endsWith(".md")) return text.replace(/^( {4}|```[^]*?^```).*$|<!--[^]*?-->/gm, (block) => block.replace(/[^\n]/g, " "));
  // The rest becomes blanks, so that lines keep their numbers.
  const comments = /\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm;
  let out = "", at = 0;
  for (const match of text.matchAll(comments)) {
    out += text.slice(at, match.index).replace(/[^\n]/g, " ") + match[0];
    at = match.index + match[0].length;
  }
  return out;
}

/** [{ line, name }] of the names in `text`, a file of the tree at `file`, that `files` (a Set of paths) does not have. */
export function missing(file, text, files, bases = new Set([...files].map((each) => path.basename(each)))) {
  const found = [];
  const written = new Set([...text.matchAll(/<!-- recipe: (?:[^]*?; )?(?:file|append) (\S+?)(?:;| -->)/g)].flatMap(([, name]) => [name, path.basename(name)]));
  prose(file, text).split("\n").forEach((line, i) => {
    for (const [name] of line.replace(/https?:\/\/\S+|node:\w+/g, " ").matchAll(NAME)) {
      if (written.has(name)) continue;
      const starts = [...STARTS, path.dirname(file), path.dirname(path.dirname(file))];
      const known = name.includes("/") ? starts.some((start) => files.has(path.normalize(path.join(start, name)))) : bases.has(name);
      if (!known) found.push({ line: i + 1, name });
    }
  });
  return found;
}

/** What a heading becomes in an address. */
const anchor = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}_ -]/gu, "").replaceAll(" ", "-");

/** [{ line, name }] of what a document names in other ways: links and their anchors, programs below build/, patterns such as a/x_*.c. */
export function missingLinks(file, text, files, read = (name) => readFileSync(name, "utf8")) {
  const found = [];
  const all = [...files];
  const headings = (name) => new Set([...read(name).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading)));
  prose(file, text).split("\n").forEach((line, i) => {
    for (const [, link] of line.matchAll(/\]\((?!\w+:)([^)\s]+)\)/g)) {
      const [target, place] = link.split("#");
      const name = target ? path.normalize(path.join(path.dirname(file), target)).replace(/\/$/, "") : file;
      const known = files.has(name) || all.some((each) => each.startsWith(`${name}/`));
      if (!known || (place && name.endsWith(".md") && !headings(name).has(place))) found.push({ line: i + 1, name: link });
    }
    for (const [name, kind, rest] of line.matchAll(/\bbuild\/(unit|crash|bench|replay)\/([\w/]+)/g))
      if (!files.has(`test/${kind === "replay" ? "fuzz" : kind}/${rest}.c`)) found.push({ line: i + 1, name });
    for (const [name] of line.matchAll(/(?<![\w@$<>*{}/.-])[\w-]+(?:\/[\w*-]+)*\/[\w-]*\*[\w*-]*(?:\.\w+)*\.(?:c|h|mjs|js)\b/g)) {
      const pattern = new RegExp(`^${name.replaceAll(".", "\\.").replaceAll("*", "[^/]*")}$`);
      if (!STARTS.some((start) => all.some((each) => each.startsWith(start && `${start}/`) && pattern.test(start ? each.slice(start.length + 1) : each)))) found.push({ line: i + 1, name });
    }
  });
  return found;
}

/** Names that are not of this tree: of projects that are served, of the engine, of what the border's tool makes. FILE.c and the like are no names. */
const ELSEWHERE = new Set(["_worker.js", "StringImpl.h", "OpaqueJSString.h", "build/border/check.c", "file.c", "turns.c", "x.js", "./x.js", "test/integration/security/x.test.mjs", "test/integration/a/x.test.mjs"]);
const isOther = (name) => ELSEWHERE.has(name) || /(^|[/_-])([A-Z]{3,}|OUT-parts)\.\w+$|^(Node|Next)\.js$|(^|\/)OUT\//.test(name);

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.chdir(new URL("..", import.meta.url).pathname);
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" }).split("\n").filter(Boolean);
  const all = new Set(files);
  const bases = new Set(files.map((each) => path.basename(each)));
  let count = 0;
  for (const file of files.filter((each) => /^(README|SECURITY|CHANGELOG|CONTRIBUTING)\.md$|^\.github\/.*\.md$|^docs\/.*\.md$|^(src|prelude|tools)\/.*\.(c|h|js|mjs|ts)$/.test(each))) {
    const text = readFileSync(file, "utf8");
    const links = file.endsWith(".md") ? missingLinks(file, text, all) : [];
    for (const { line, name } of [...missing(file, text, all, bases), ...links]) {
      if (isOther(name)) continue;
      console.log(`${file}:${line}: there is no file ${name}`);
      count++;
    }
  }
  process.exitCode = count > 0 ? 1 : 0;
}
