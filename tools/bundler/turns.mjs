// Makes async code come back to whoever it runs for.
//
// The engine has no hook for `await`: what follows one runs in whichever turn settles the promise, and
// that may be another object's. So the finished script is rewritten, by insertions alone: an async
// function remembers the context it was called in (prelude/internal/turn.js), and wherever it can
// resume, it puts it back:
//
//     async function f(a) {                async function f(a) { const C = here;
//       const x = await g(a);        =>      const x = (V = await W(g(a)), BACK, V);
//       try { await h(x); }                  try { await W(h(x)), BACK; }
//       catch { i(); }                       catch { BACK; i(); }
//     }                                    }
//
// BACK compares one number if the context is still the same; else it enters it, or, while the input gate
// of its object is closed to it, waits: `mark[0] === C.n || T.back(C) || await T.open(C)`. W gives
// thenables that are no promises a then() that runs in the context of now. What `for await` walks over is
// wrapped for a reason of its own (prelude/internal/iteration.js).
//
// W1  Every place at which an async function can resume is followed by BACK before any code of the
//     function runs: behind `await`, at the beginning of a catch or finally block whose statement
//     can resume, in the body of `for await` and behind it. A function that only returns what it
//     awaits runs no code, and is left alone.
// W2  The body of an async generator runs for whoever asks for the next value: behind `yield` the context of
//     now is remembered, not put back, for next() resumes it within the caller's own code.
// W3  No promise and no microtask more than the program has, unless a gate is closed.
// W4  Insertions have no line breaks: a position moves along its line only (moveMap).
import { Parser } from "acorn";

/** The engine is the judge of regular expressions: it may know some that this parser does not, and says where one is wrong. */
const Reader = Parser.extend((Base) => class extends Base {
  validateRegExpFlags() {}
  validateRegExpPattern() {}
});

/** What the rewritten code is called by, with a prefix that the script does not use. */
export function namesFor(script) {
  let prefix = "c$";
  for (let i = 0; script.includes(prefix); i++) prefix = `c${i}$`;
  return { turns: `${prefix}T`, mark: `${prefix}m`, context: `${prefix}c`, value: `${prefix}v` };
}

/** Stands in a wrapper for the declarations. */
export const DECLARED = "/*declared*/";

/** What the script needs in scope, given an expression for the prelude's object `turns`. */
export const declarations = (names, turns) => `var ${names.turns}=${turns},${names.mark}=${names.turns}.mark;`;

/** Whether there may be anything to rewrite: an async function, or an import() that esbuild has left, of a computed name. */
const concerns = (text) => text.includes("async") || /\bimport\s*\(/.test(text);

/**
 * @param {string} script
 * @param {ReturnType<typeof namesFor>} names
 * @param {Set<string>} modules that are in it, as esbuild names them
 * @returns {{script: string, insertions: [number, string][]}} in order of position
 */
export function followTurns(script, names, modules = new Set()) {
  if (!concerns(script)) return { script, insertions: [] };
  const insertions = insertionsByModule(script, names, modules) ?? insertionsIn(script, names);
  const parts = [];
  let at = 0;
  for (const [position, text] of insertions) {
    parts.push(script.slice(at, position), text);
    at = position;
  }
  parts.push(script.slice(at));
  return { script: parts.join(""), insertions };
}

/** Where what goes, of a script or of a list of whole statements. */
export function insertionsIn(text, names) {
  return new Walk(names).run(Reader.parse(text, { ecmaVersion: "latest", sourceType: "script", preserveParens: true, allowHashBang: true }));
}

/** How esbuild names a module of a bundle that is not minified, and how such a bundle ends. */
const MODULE = /(?<=^ {2}(?:\S.*)?[;}]\n+|\{\n)^ {2}\/\/ (.+)$/gm;
const END = /\n {2}return __toCommonJS\(\w+\);\n\}\)\(\);\s/g;

/**
 * The same of a bundle, but only modules that have the word "async" (or an import()) are parsed: parsing is most of the
 * work. Null if the script is not of that form.
 *
 * W5  It is the same as of the whole: a piece begins with a line that names a module of this bundle, behind the
 *     end of a statement of the outermost block. Were such a line within a text of the script, the text
 *     would be cut in two, and no piece that is cut is a program: nothing comes of it here.
 */
export function insertionsByModule(script, names, modules) {
  const ends = [...script.matchAll(END)];
  const starts = [...script.matchAll(MODULE)].filter(([, name]) => modules.has(name)).map((match) => match.index);
  const end = ends.at(-1)?.index ?? -1;
  const begins = starts.filter((start) => start < end);
  if (ends.length !== 1 || begins.length < 2 || begins.length !== starts.length) return null;
  if (concerns(script.slice(0, begins[0])) || concerns(script.slice(end))) return null;
  const all = [];
  try {
    for (let i = 0; i < begins.length; i++) {
      const piece = script.slice(begins[i], begins[i + 1] ?? end);
      if (concerns(piece)) for (const [position, text] of insertionsIn(piece, names)) all.push([begins[i] + position, text]);
    }
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  return all;
}

const isFunction = (node) =>
  node.type === "FunctionDeclaration" || node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression";

class Walk {
  constructor({ turns, mark, context, value }) {
    this.here = `${mark}[0]===${turns}.c.n?${turns}.c:${turns}.make()`;
    this.back = `${mark}[0]===${context}.n||${turns}.back(${context})||await ${turns}.open(${context})`;
    this.wrap = `${turns}.thenable(`;
    this.iterable = `${turns}.iterable(`;
    this.context = context;
    this.value = value;
    this.found = []; // [position, text], in the order of the walk
    this.current = null; // the async function that is walked, or null
  }

  run(tree) {
    this.node(tree, null);
    // Stable: at one position, what was found first (the outer one's beginning) comes first.
    return this.found.filter(([, text]) => text !== "").sort((a, b) => a[0] - b[0]);
  }

  insert(position, text) {
    const entry = [position, text];
    this.found.push(entry);
    return entry;
  }

  /** Walks a node. Returns whether the function that it stands in can resume inside of it. */
  node(node, parent) {
    switch (node.type) {
      case "FunctionDeclaration":
      case "FunctionExpression":
      case "ArrowFunctionExpression":
        return this.function(node);
      case "AwaitExpression":
        return this.awaiting(node, parent);
      case "YieldExpression":
        return this.yielding(node);
      case "TryStatement":
        return this.trying(node);
      case "ForOfStatement":
        return node.await ? this.looping(node) : this.children(node);
      case "ImportExpression":
        this.insert(node.start, "__cairn."); // dispatch.js has a method of that name
        return this.children(node);
      default:
        return this.children(node);
    }
  }

  children(node) {
    let resumes = false;
    for (const key in node) {
      const child = node[key];
      if (child === null || typeof child !== "object") continue;
      if (Array.isArray(child)) {
        for (const each of child) if (each !== null && typeof each.type === "string") resumes = this.statement(each, node, true) || resumes;
      } else if (typeof child.type === "string") {
        resumes = this.statement(child, node, false) || resumes;
      }
    }
    return resumes;
  }

  /** A child, and BACK behind it if it is a loop that awaits; `listed`: among others, so that more may follow. */
  statement(node, parent, listed) {
    let inner = node;
    while (inner.type === "LabeledStatement") inner = inner.body;
    if (inner.type !== "ForOfStatement" || !inner.await || parent.type === "LabeledStatement") return this.node(node, parent);
    if (!listed) this.insert(node.start, "{");
    this.node(node, parent);
    this.insert(node.end, listed ? `${this.back};` : `${this.back};}`);
    return true;
  }

  function(node) {
    const outer = this.current;
    this.current = null;
    for (const parameter of node.params) this.node(parameter, node);
    this.current = node.async ? { remembers: false, kept: [], generator: node.generator } : null;
    const { body } = node;
    const isBlock = body.type === "BlockStatement";
    const directives = isBlock ? body.body.filter((each) => each.directive !== undefined) : [];
    const begin = this.insert(isBlock ? (directives.at(-1)?.end ?? body.start + 1) : body.start, "");
    this.node(body, node);
    if (this.current?.remembers) {
      const { kept, generator } = this.current;
      const remember = `${generator ? "let" : "const"} ${this.context}=${this.here};${kept.length > 0 ? `let ${kept.join()};` : ""}`;
      begin[1] = isBlock ? (directives.length > 0 ? ";" : "") + remember : `{${remember}return `;
      if (!isBlock) this.insert(body.end, "}");
    }
    this.current = outer;
    return false;
  }

  /**
   * A variable for the value of one `await`. None is used twice: the engine may take a variable itself
   * for the value of an expression (of a switch, of what a loop walks over), and would see it change.
   */
  keep() {
    const { kept } = this.current;
    kept.push(`${this.value}${kept.length}`);
    return kept.at(-1);
  }

  awaiting(node, parent) {
    const statement = parent.type === "ExpressionStatement";
    const returned = (parent.type === "ReturnStatement" || isFunction(parent)) && !this.current.generator;
    const general = !statement && !returned;
    const value = general ? this.keep() : null;
    if (general) this.insert(node.start, `(${value}=`);
    const operand = node.argument;
    this.insert(operand.start, (operand.start === node.start + "await".length ? " " : "") + this.wrap);
    this.node(operand, node);
    this.insert(operand.end, ")");
    if (general) {
      this.insert(node.end, `,${this.back},${value})`);
      this.current.remembers = true;
    } else if (statement) {
      this.insert(node.end, `,${this.back}`);
      this.current.remembers = true;
    }
    return true;
  }

  /** What is walked over asynchronously. */
  walked(node, parent) {
    this.insert(node.start, ` ${this.iterable}`);
    this.node(node, parent);
    this.insert(node.end, ")");
  }

  yielding(node) {
    if (this.current === null) return this.children(node); // of a generator that is not async
    const value = this.keep();
    this.insert(node.start, `(${value}=`);
    if (node.delegate) this.walked(node.argument, node);
    else this.children(node);
    const after = node.delegate ? this.back : `${this.context}=${this.here}`;
    this.insert(node.end, `,${after},${value})`);
    this.current.remembers = true;
    return true;
  }

  trying(node) {
    let resumes = this.node(node.block, node);
    if (node.handler) {
      if (resumes) this.blockBegins(node.handler.body);
      resumes = this.node(node.handler, node) || resumes;
    }
    if (node.finalizer) {
      if (resumes) this.blockBegins(node.finalizer);
      resumes = this.node(node.finalizer, node) || resumes;
    }
    return resumes;
  }

  blockBegins(block) {
    this.insert(block.start + 1, `${this.back};`);
    this.current.remembers = true;
  }

  looping(node) {
    this.node(node.left, node);
    this.walked(node.right, node);
    this.current.remembers = true;
    if (node.body.type === "BlockStatement") {
      this.blockBegins(node.body);
      this.node(node.body, node);
    } else {
      this.insert(node.body.start, `{${this.back};`);
      this.statement(node.body, node, true);
      this.insert(node.body.end, "}");
    }
    return true;
  }
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const VALUES = new Uint8Array(128);
for (let i = 0; i < DIGITS.length; i++) VALUES[DIGITS.charCodeAt(i)] = i;

/** The first number of a segment, and what comes behind it: [value, rest]. Columns only grow along a line. */
function firstNumber(segment) {
  let value = 0, shift = 0, i = 0, digit;
  do {
    digit = VALUES[segment.charCodeAt(i++)];
    value += (digit & 31) << shift;
    shift += 5;
  } while (digit & 32);
  return [value & 1 ? -(value >>> 1) : value >>> 1, segment.slice(i)];
}

function writeNumber(value) {
  let text = "", rest = value << 1;
  do {
    const digit = rest & 31;
    rest >>>= 5;
    text += DIGITS[rest > 0 ? digit | 32 : digit];
  } while (rest > 0);
  return text;
}

/**
 * The source map of a script, for the script with the insertions (W4). Only the first number of a segment, the
 * distance in the script from the segment before it on the line, is another; the rest stays as it is written.
 */
export function moveMap(map, script, insertions) {
  if (insertions.length === 0) return map;
  const lines = map.mappings.split(";");
  let next = 0; // insertion
  let begin = 0; // of the line
  for (let line = 0; line < lines.length && next < insertions.length; line++) {
    const newline = script.indexOf("\n", begin);
    const end = newline < 0 ? script.length : newline;
    if (insertions[next][0] <= end && lines[line] !== "") {
      let column = begin, moved = 0, written = 0;
      lines[line] = lines[line].split(",").map((segment) => {
        const [distance, rest] = firstNumber(segment);
        column += distance;
        while (next < insertions.length && insertions[next][0] <= column && insertions[next][0] <= end) moved += insertions[next++][1].length;
        const step = column + moved - begin - written;
        written += step;
        return writeNumber(step) + rest;
      }).join(",");
    }
    while (next < insertions.length && insertions[next][0] <= end) next++;
    begin = end + 1;
  }
  return { ...map, mappings: lines.join(";") };
}
