// fs.glob(): patterns by the package that Node.js uses, over a tree that the caller lists.
import { Minimatch } from "minimatch";

const PATTERN_MAX = 4096; // the package takes time with the square of it
const clean = (pattern) => {
  if (pattern.length > PATTERN_MAX) throw new TypeError(`The pattern is longer than ${PATTERN_MAX} characters`);
  const text = pattern.replace(/^(?:\.\/+)+/, "").replace(/\/{2,}/g, "/");
  return text.length > 1 ? text.replace(/\/$/, "") : text;
};

/** Patterns that lead out of the folder: how many levels, and what is left. */
function climb(pattern) {
  const parts = pattern.split("/");
  let up = 0;
  while (parts[up] === "..") up++;
  return { up, rest: parts.slice(up).join("/") };
}

const OPTIONS = { dot: true, nocomment: true, nonegate: true, optimizationLevel: 2 };

/** A pattern without braces; "a/**" is "a" too, as in Node.js. */
function expand(pattern) {
  return new Minimatch(pattern, OPTIONS).braceExpand().flatMap((each) => {
    const one = clean(each);
    return one.endsWith("/**") && one !== "/**" ? [one.slice(0, -3), one] : [one];
  });
}

export function compileGlob(patterns) {
  const list = patterns.flatMap((pattern) => expand(clean(pattern)));
  const matchers = list.map((pattern) => new Minimatch(pattern, OPTIONS));
  return {
    matches: (path) => matchers.some((matcher) => matcher.match(path)),
    /** What matches below `cwd`: {path, name, parentPath, type}, each once. `list(path)` gives entries. */
    *walk(cwd, entriesOf) {
      const seen = new Set();
      const base = cwd.replace(/\/$/, "");
      for (const pattern of list) {
        const { up, rest } = climb(pattern);
        const absolute = pattern.startsWith("/");
        const start = absolute ? "" : base.split("/").slice(0, up === 0 ? undefined : -up).join("/");
        const prefix = absolute ? "/" : "../".repeat(up);
        const matcher = new Minimatch(absolute ? pattern.slice(1) : rest, OPTIONS);
        const deep = /\*\*/.test(pattern);
        const levels = pattern.split("/").length;
        const queue = [["", 0]];
        if (matcher.match("") || (deep && /^(\.\.\/)*\*\*$/.test(pattern))) {
          const path = absolute ? "/" : ".";
          if (!seen.has(path)) {
            seen.add(path);
            yield { path, name: start.split("/").at(-1) ?? "", parentPath: start.split("/").slice(0, -1).join("/") || "/", type: 2 };
          }
        }
        while (queue.length > 0) {
          const [folder, depth] = queue.shift();
          for (const { name, type } of entriesOf(`${start}/${folder}`)) {
            const inside = folder === "" ? name : `${folder}/${name}`;
            const path = `${prefix}${inside}`;
            if (matcher.match(inside) && !seen.has(path)) {
              seen.add(path);
              yield { path, name, parentPath: `${start}/${folder}`.replace(/\/$/, "") || "/", type };
            }
            if (type === 2 && (deep || depth + 1 < levels)) queue.push([inside, depth + 1]);
          }
        }
      }
    },
  };
}
