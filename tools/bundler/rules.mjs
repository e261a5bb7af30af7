// Which imports are text, data, WebAssembly or JSON rather than code.
//
// As in wrangler: the project's rules come first, then the defaults. Once a rule of a type has not
// said `fallthrough`, later rules of that type do not count.
//
// R1  A glob is held against the specifier as it is written ("../../a/b.md"), and there `*` crosses
//     folders, as in wrangler; besides, against the path within the project, where it does not.
// R2  A rule that says that a file is JavaScript (ESModule, CommonJS) says nothing new of one whose
//     extension tells its language: such files are left to the bundler, whatever the rule.
// R3  In an upload (`inside` of the job) a rule has the path of one module, with "**/" before it, which is
//     compared as it is and is no pattern: who uploads chooses the names, and a pattern made of a
//     name could take for ever.

const defaults = [
  { type: "Text", globs: ["**/*.txt", "**/*.html", "**/*.sql"], fallthrough: true },
  { type: "Data", globs: ["**/*.bin"], fallthrough: true },
  { type: "CompiledWasm", globs: ["**/*.wasm", "**/*.wasm?module"], fallthrough: true },
];

const CODE = /\.([cm]?[jt]sx?|json)$/;
const isCode = (type) => type === "ESModule" || type === "CommonJS";

/** What a glob is compared by: {test(text)}. */
const byName = (glob) => {
  const name = glob.replace(/^\*\*\//, "");
  return { test: (text) => text === name || text.endsWith("/" + name) };
};

/**
 * `literal`: the rules are those of an upload (R3).
 * @returns {{type: string, globs: string[], literal: boolean, written: {test}[], patterns: {test}[]}[]}
 */
export function contentRules(rules, literal) {
  const closed = new Set();
  const list = [];
  const own = rules.map((rule) => ({ ...rule, literal }));
  for (const rule of [...own, ...defaults]) {
    if (closed.has(rule.type)) continue;
    if (!rule.fallthrough) closed.add(rule.type);
    const globs = isCode(rule.type) ? rule.globs.filter((glob) => !CODE.test(glob)) : rule.globs;
    const [written, patterns] = rule.literal ? [[], globs.map(byName)] : [globs.map(writtenPattern), globs.map(globPattern)];
    list.push({ type: rule.type, globs, literal: rule.literal, written, patterns });
  }
  return list;
}

/** Matches every specifier that a rule may be for: by the file name, which paths share with specifiers. */
export function ruleFilter(rules) {
  if (rules.some((rule) => rule.literal)) return /.*/; // an upload imports little
  const written = rules.flatMap((rule) => rule.written).map((pattern) => pattern.source);
  const names = rules.flatMap((rule) => rule.globs).map((glob) => globPattern(glob.slice(glob.lastIndexOf("/") + 1)));
  return new RegExp([...written, ...names.map((name) => name.source.replace("^", "(?:^|/)"))].join("|"));
}

/** The rule for an import, by the specifier as written or the path within the project. */
export function ruleFor(rules, specifier, relative) {
  const plain = specifier.replace(/^(\.\.?\/)+/, "");
  const fits = (rule) =>
    rule.written.some((p) => p.test(specifier)) || rule.patterns.some((p) => p.test(plain) || p.test(relative));
  return rules.find((rule) => !(isCode(rule.type) && CODE.test(specifier)) && fits(rule));
}

/** As wrangler reads a glob: `*` is anything, folders too; everything else is itself. */
function writtenPattern(glob) {
  const source = glob.split(/\*+/).map((text) => text.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${source.join(".*")}$`);
}

/** `*` within a folder, `**` across folders, `{a,b}`; `?` stands for itself, as in "x.wasm?module". */
export function globPattern(glob) {
  let source = "";
  let braces = 0;
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i];
    if (c === "*" && glob[i + 1] === "*") {
      i++;
      if (glob[i + 1] === "/") {
        i++;
        source += "(?:.*/)?";
      } else {
        source += ".*";
      }
    } else if (c === "*") {
      source += "[^/]*";
    } else if (c === "{") {
      braces++;
      source += "(?:";
    } else if (c === "}" && braces > 0) {
      braces--;
      source += ")";
    } else if (c === "," && braces > 0) {
      source += "|";
    } else {
      source += c.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
    }
  }
  return new RegExp(`^${source}${")".repeat(braces)}$`);
}
