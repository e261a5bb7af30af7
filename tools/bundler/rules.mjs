// Which imports are text, data, WebAssembly or JSON rather than code.
//
// As in wrangler: the project's rules come first, then the defaults. Once a rule of a type has not
// said `fallthrough`, later rules of that type do not count.

const defaults = [
  { type: "Text", globs: ["**/*.txt", "**/*.html", "**/*.sql"], fallthrough: true },
  { type: "Data", globs: ["**/*.bin"], fallthrough: true },
  { type: "CompiledWasm", globs: ["**/*.wasm", "**/*.wasm?module"], fallthrough: true },
];

/** @returns {{type: string, patterns: RegExp[]}[]} */
export function contentRules(rules) {
  const closed = new Set();
  const list = [];
  for (const rule of [...rules, ...defaults]) {
    if (closed.has(rule.type)) continue;
    if (!rule.fallthrough) closed.add(rule.type);
    list.push({ type: rule.type, globs: rule.globs, patterns: rule.globs.map(globPattern) });
  }
  return list;
}

/** Matches every specifier that a rule may be for: by the file name, which specifiers share with globs. */
export function ruleFilter(rules) {
  const names = rules.flatMap((rule) => rule.globs).map((glob) => globPattern(glob.slice(glob.lastIndexOf("/") + 1)));
  return new RegExp(names.map((name) => name.source.replace("^", "(?:^|/)")).join("|"));
}

/** The rule for an import, by the specifier as written or the path within the project. */
export function ruleFor(rules, specifier, relative) {
  const plain = specifier.replace(/^(\.\.?\/)+/, "");
  return rules.find((rule) => rule.patterns.some((p) => p.test(plain) || p.test(relative)));
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
