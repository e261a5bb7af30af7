// Every regular expression that is given text from outside is linear (tools/regexps.mjs).
//
// Looked at are the prelude, the packages that are bundled into it, and what is bundled into Pages projects. One that is not
// linear is refused, and so is one that is made at run time, unless the line above it, or its own, says why no text is long there:
//
//     // bounded: a key has 512 bytes
//     const match = / +$/.exec(key);
//
// Packages are not ours to write in: PACKAGES says why text is not long there.
import { parse } from "acorn";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { whyNotLinear } from "./regexps.mjs";

// The analysis itself: [pattern, flags] that are not linear, and that are.
const NOT_LINEAR = ["[ ]+$", "^\\s+|\\s+$", "(a+)+$", "^(a|a)*b", "^a*a*b", "<a>([^]*?)</a>", "(a?b?)*c", "[^,]*,", "x(?=.*y)", "^(?:\\w+\\s*)*:", "(.)\\1", "(a{1,100})b", ["^\\s+x", "m"]];
const LINEAR = ["^[ ]+$", " +", "(ab)+", "^a+b+$", "^(?:[^\\\\]|\\\\.)*$", "^\\d+(\\.\\d+)?$", ["a+b", "y"], ["^[ \\t]+x", "m"], "^(?:a+b)+$", "%[0-9a-f]{2}", "^(?:;\\d{0,4})*$"];
const PACKAGES = {
  "node-inspect-extracted/dist/inspect.js": "they read the source of a class, which is the script's own code",
  "readable-stream/lib/internal/validators.js": "nobody calls validateLinkHeaderValue()",
  "brace-expansion/dist/esm/index.js": "a pattern has PATTERN_MAX characters (prelude/node/internal/glob.js)",
  "minimatch/dist/esm/index.js": "as brace-expansion",
  "@isaacs/nonrecursive-glob-match/dist/esm/index.js": "made for one character",
  "@isaacs/nonrecursive-glob-match/dist/esm/parse-class.js": "made for one character",
  "@isaacs/nonrecursive-glob-match/dist/esm/numeric-range.js": "made for one character",
};

const problems = [];
for (const each of NOT_LINEAR) if (!whyNotLinear(...[each].flat())) problems.push(`tools/regexps.mjs takes /${[each].flat()[0]}/ for linear`);
for (const each of LINEAR) if (whyNotLinear(...[each].flat())) problems.push(`tools/regexps.mjs takes /${[each].flat()[0]}/ for one that is not linear`);

const below = (folder) => readdirSync(folder, { recursive: true }).filter((name) => /\.m?js$/.test(name)).map((name) => path.join(folder, name));
/** The files of packages that the prelude is made of, as the last build knows them. */
const packaged = () => ["build/prelude.js.d", "build/prelude-node.js.d"].filter((file) => existsSync(file)).flatMap((file) => readFileSync(file, "utf8").match(/node_modules\/[^\s:]+\.m?js/g) ?? []);

/** Calls `visit` with each node of a tree. */
function walk(node, visit) {
  if (node === null || typeof node !== "object") return;
  if (typeof node.type === "string") visit(node);
  for (const key of Object.keys(node)) if (key !== "loc") walk(node[key], visit);
}

function check(file) {
  const text = readFileSync(file, "utf8"), lines = text.split("\n");
  const tree = parse(text, { ecmaVersion: "latest", sourceType: /^(import|export)\b/m.test(text) ? "module" : "script", locations: true, allowReturnOutsideFunction: true, allowHashBang: true });
  const isBounded = (line) => /\/[/*] ?bounded: /.test(lines[line - 1]) || /^\s*\/\/ bounded: /.test(lines[line - 2] ?? "");
  walk(tree, (node) => {
    let why = null;
    if (node.regex) why = whyNotLinear(node.regex.pattern, node.regex.flags);
    else if ((node.type === "NewExpression" || node.type === "CallExpression") && node.callee.name === "RegExp" && node.arguments[0]?.type !== "Literal") why = "it is made at run time";
    if (why && !isBounded(node.loc.start.line)) problems.push(`${file}:${node.loc.start.line}: ${node.raw ?? "RegExp()"}: ${why}`);
  });
}
for (const file of [...below("prelude"), "tools/bundler/pages-runtime.mjs"]) check(file);
for (const file of new Set(packaged())) if (!PACKAGES[file.slice("node_modules/".length)]) check(file);
for (const text of [...new Set(problems)]) console.log(text);
process.exit(problems.length ? 1 : 0);
