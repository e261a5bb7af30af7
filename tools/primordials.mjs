// The prelude takes the engine's builtins before any code of a user runs, so that a script that patches
// them (Map.prototype.get, Function.prototype.call, Object.keys, globalThis.Promise) neither sees what is inside nor
// changes what happens there. Nobody writes that by hand: this rewrites every module of prelude/ while it is bundled.
//
//     new Map()              the name of a global is imported from internal/primordials.js
//     Object.keys(x)         $Object.keys(x): a copy of Object's functions, without a prototype
//     map.get(key)           $get1(map, key): while Map.prototype.get and WeakMap.prototype.get are what they were, the same
//                            call; otherwise, the original for a Map or WeakMap, and what the object has for others
//
// What is not rewritten, because a patched one sees only texts and numbers: methods of strings and numbers, of regular
// expressions, and `length` and its like of buffers; and the modules of Node.js, which work on what the script gives them. Natives
// check whatever they are given anyway. test/integration/security/patched.test.mjs replaces all builtins and uses everything: none of
// them is given a native, or anything of another script.
//
// `node tools/primordials.mjs` prints internal/primordials.js, which the tree keeps; tools/lint compares.
import { parse } from "acorn";
import path from "node:path";

const METHODS = {
  Map: ["get", "set", "has", "delete", "clear", "forEach"],
  WeakMap: ["get", "set", "has", "delete"],
  Set: ["add", "has", "delete", "clear", "forEach"],
  WeakSet: ["add", "has", "delete"],
  Array: ["push", "pop", "shift", "unshift", "splice", "map", "filter", "forEach", "find", "findIndex", "some", "every", "sort", "flatMap", "reduce"],
  TypedArray: ["set"],
  Promise: ["then", "catch", "finally"],
  Function: ["call", "apply", "bind"],
};
const ARITY_MAX = 4;
// Whose functions are copied; those that need their receiver are bound to it.
const STATICS = { Object: [], Reflect: [], JSON: [], Array: ["from", "of", "fromAsync"], Promise: null, Number: [], ArrayBuffer: [], Symbol: [] };
// Date is not among them: installTime() gives it another clock, for the prelude too.
const GLOBALS = [
  "Array", "ArrayBuffer", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView", "Error", "EvalError", "FinalizationRegistry", "Float32Array", "Float64Array", "Function", "Int16Array",
  "Int32Array", "Int8Array", "JSON", "Map", "Math", "Number", "Object", "Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "String", "Symbol", "SyntaxError", "TypeError",
  "URIError", "Uint16Array", "Uint32Array", "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "decodeURIComponent", "encodeURIComponent",
];
const owners = new Map(); // method -> owners
for (const [owner, names] of Object.entries(METHODS)) for (const name of names) owners.set(name, [...(owners.get(name) ?? []), owner]);

/** The text of internal/primordials.js. */
export function generate() {
  const lines = [
    "// Made by tools/primordials.mjs, which says what for. Not to be edited.",
    ...GLOBALS.map((name) => `export const ${name} = globalThis.${name};`),
    "const { apply, getPrototypeOf, ownKeys } = Reflect;",
    "const { defineProperty } = Object;",
    "const isArray = Array.isArray;",
    "const isView = ArrayBuffer.isView;",
    "const hasInstance = Function.prototype[Symbol.hasInstance];",
    "/** The functions of an object as they are now; `bound`: with it as their receiver (null: all of them). */",
    "function copy(object, bound) {",
    "  const made = { __proto__: null };",
    "  const keys = ownKeys(object);",
    "  for (let i = 0; i < keys.length; i++) {",
    '    if (typeof keys[i] !== "string" || keys[i] === "prototype" || keys[i] === "name" || keys[i] === "length") continue;',
    "    const value = object[keys[i]];",
    '    const binds = typeof value === "function" && (bound === null || bound.includes(keys[i]));',
    "    defineProperty(made, keys[i], { __proto__: null, value: binds ? value.bind(object) : value, enumerable: true });",
    "  }",
    "  return made;",
    "}",
    ...Object.entries(STATICS).map(([name, bound]) => `export const $${name} = /* @__PURE__ */ copy(${name}, ${JSON.stringify(bound)});`),
  ];
  for (const [owner, names] of Object.entries(METHODS)) {
    lines.push(`const ${owner}_ = ${owner === "TypedArray" ? "getPrototypeOf(Uint8Array.prototype)" : `${owner}.prototype`};`);
    for (const name of names) lines.push(`const ${owner}_${name} = ${owner}_.${name};`);
  }
  lines.push(
    "/** Whether a builtin works on `object`: it throws if not. */",
    "const works = (method, object, args) => { try { apply(method, object, args); return true; } catch { return false; } };",
    "const is = {",
    "  __proto__: null,",
    "  Map: (o) => works(Map_has, o, [o]),",
    "  WeakMap: (o) => works(WeakMap_has, o, [o]),",
    "  Set: (o) => works(Set_has, o, [o]),",
    "  WeakSet: (o) => works(WeakSet_has, o, [o]),",
    "  Array: (o) => isArray(o),",
    "  TypedArray: (o) => isView(o),",
    "  Promise: (o) => apply(hasInstance, Promise, [o]),",
    '  Function: (o) => typeof o === "function",',
    "};",
  );
  for (const [name, list] of owners) {
    const fits = list.map((owner) => `is.${owner}(o) ? apply(${owner}_${name}, o, args) : `).join("");
    lines.push(`const slow_${name} = (o, args) => ${fits}apply(o.${name}, o, args);`);
    const pristine = list.map((owner) => `${owner}_.${name} === ${owner}_${name}`).join(" && ");
    for (let arity = 0; arity <= ARITY_MAX; arity++) {
      const args = ["a", "b", "c", "d"].slice(0, arity).join(", ");
      if (arity === 0) lines.push(`export const $${name}All = (o, args) => ${pristine} ? o.${name}(...args) : slow_${name}(o, args);`);
      lines.push(`export const $${name}${arity} = (o${args && `, ${args}`}) => ${pristine} ? o.${name}(${args}) : slow_${name}(o, [${args}]);`);
    }
  }
  return lines.join("\n") + "\n";
}

/** Calls visit(node, parent) on every node, parents first. */
function walk(node, parent, visit) {
  if (visit(node, parent) === false) return;
  for (const key of Object.keys(node)) {
    const value = node[key];
    if (Array.isArray(value)) for (const item of value) { if (item && typeof item.type === "string") walk(item, node, visit); }
    else if (value && typeof value.type === "string") walk(value, node, visit);
  }
}

/** Whether an identifier is a reference, and not the name of a property or a label. */
function isReference(node, parent) {
  if (parent.type === "MemberExpression") return parent.object === node || parent.computed;
  if (parent.type === "Property") return parent.computed || parent.value === node;
  if (parent.type === "MethodDefinition" || parent.type === "PropertyDefinition") return parent.computed || parent.value === node;
  return !["ImportSpecifier", "ImportDefaultSpecifier", "ImportNamespaceSpecifier", "ExportSpecifier", "LabeledStatement", "BreakStatement", "ContinueStatement", "MetaProperty"].includes(parent.type);
}

/** The names that a module declares anywhere, in whatever scope. */
function declared(tree) {
  const names = new Set();
  const pattern = (node) => {
    if (!node) return;
    if (node.type === "Identifier") names.add(node.name);
    else if (node.type === "ObjectPattern") for (const p of node.properties) pattern(p.type === "RestElement" ? p.argument : p.value);
    else if (node.type === "ArrayPattern") node.elements.forEach(pattern);
    else if (node.type === "AssignmentPattern") pattern(node.left);
    else if (node.type === "RestElement") pattern(node.argument);
  };
  walk(tree, null, (node) => {
    if (node.type === "VariableDeclarator") pattern(node.id);
    else if (/Function/.test(node.type)) { if (node.id) names.add(node.id.name); node.params.forEach(pattern); }
    else if (/^Class/.test(node.type)) { if (node.id) names.add(node.id.name); }
    else if (node.type === "CatchClause") pattern(node.param);
    else if (/^Import.*Specifier$/.test(node.type)) names.add(node.local.name);
  });
  return names;
}

/** A module of the prelude, rewritten. `take(names)` is a statement that gives it those of internal/primordials.js. */
export function protect(text, take) {
  const tree = parse(text, { ecmaVersion: "latest", sourceType: "module" });
  const own = declared(tree);
  const namespaces = new Set(["native", "console"]);
  walk(tree, null, (node) => { if (node.type === "ImportNamespaceSpecifier") namespaces.add(node.local.name); });
  const used = new Set(), edits = [], skipped = [];
  const replace = (start, end, by) => edits.push({ start, end, by });
  const isGlobal = (node) => node.type === "Identifier" && GLOBALS.includes(node.name) && !own.has(node.name);
  walk(tree, null, (node, parent) => {
    if (node.type === "Identifier" && parent && isGlobal(node) && isReference(node, parent)) used.add(node.name);
    if (node.type === "VariableDeclarator" && node.id.type === "ObjectPattern" && node.init && isGlobal(node.init) && STATICS[node.init.name] !== undefined) {
      used.add(`$${node.init.name}`);
      replace(node.init.start, node.init.end, `$${node.init.name}`);
      return;
    }
    if (node.type !== "CallExpression" || node.callee.type !== "MemberExpression" || node.callee.computed) return;
    const { object, property } = node.callee;
    if (isGlobal(object) && STATICS[object.name] !== undefined) {
      used.add(`$${object.name}`);
      replace(object.start, object.end, `$${object.name}`);
      return;
    }
    if (!owners.has(property.name) || property.type !== "Identifier") return;
    if (object.type === "Super" || (object.type === "Identifier" && (namespaces.has(object.name) || isGlobal(object)))) return;
    if (node.optional || node.callee.optional || hasOptional(object)) {
      skipped.push(text.slice(node.start, node.end).split("\n")[0]);
      return;
    }
    const list = node.arguments.length > ARITY_MAX || node.arguments.some((a) => a.type === "SpreadElement");
    const helper = `$${property.name}${list ? "All" : node.arguments.length}`;
    used.add(helper);
    replace(node.start, node.start, `${helper}(`);
    // ".name(" goes, and what is between: parentheses around the object stay.
    const open = text.indexOf("(", property.end);
    const from = object.end + trailing(text, object.end);
    const lines = "\n".repeat(text.slice(from, open).split("\n").length - 1); // stays on its lines
    replace(from, open + 1, lines + (list ? ",[" : node.arguments.length > 0 ? "," : ""));
    if (list) replace(node.end - 1, node.end - 1, "]");
  });
  if (skipped.length > 0) throw new Error(`a call that may be left out cannot be protected: write it with if or ?: instead\n${skipped.join("\n")}`);
  if (used.size === 0) return text;
  // From the end; at one place, the outermost call was found first and is inserted first.
  edits.forEach((edit, i) => (edit.order = i));
  edits.sort((a, b) => b.start - a.start || b.order - a.order);
  let out = text;
  for (const { start, end, by } of edits) out = out.slice(0, start) + by + out.slice(end);
  return `${take([...used])} ${out}`;
}

/** How many characters after an expression are its closing parentheses, which the tree does not tell. */
function trailing(text, at) {
  let end = at;
  for (let i = at; i < text.length; i++) {
    if (text[i] === ")") end = i + 1;
    else if (text[i] === "." ) break;
    else if (!/\s/.test(text[i])) break;
  }
  return end - at;
}

/** Whether a chain that may be cut short is inside: a call in it cannot be turned around. */
function hasOptional(node) {
  if (node.type === "MemberExpression") return node.optional || hasOptional(node.object);
  if (node.type === "CallExpression") return node.optional || hasOptional(node.callee);
  return false;
}

/**
 * For esbuild: modules below `folder` are protected when they are loaded. Those of a part ask the core for what they use;
 * `asked` gets the names.
 */
export const primordials = (folder, readFile, asked) => ({
  name: "primordials",
  setup(build) {
    const home = path.join(folder, "internal/primordials.js");
    build.onLoad({ filter: /\.js$/, namespace: "file" }, ({ path: file }) => {
      if (!file.startsWith(folder + path.sep) || file === home) return undefined;
      const relative = path.relative(path.dirname(file), home);
      const specifier = JSON.stringify(relative.startsWith(".") ? relative : `./${relative}`);
      const take = asked
        ? (names) => { for (const name of names) asked.add(name); return `const { ${names.join(", ")} } = __core("internal/primordials.js");`; }
        : (names) => `import { ${names.join(", ")} } from ${specifier};`;
      return { contents: protect(readFile(file), take), resolveDir: path.dirname(file) };
    });
  },
});

if (process.argv[1]?.endsWith("primordials.mjs")) process.stdout.write(generate());
