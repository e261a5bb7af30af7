// Checks the prelude against the border (src/bindings/border.ts, and the parts of it in src/service/) with TypeScript: every use of `native` is a
// function that is there, with as many arguments as it takes and of their types, as far as they can be told.
// And the other way round: every function of the border, and every enum, is used by the prelude.
//
//     node tools/lint-border.mjs
import { readdirSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { readBorders } from "./border.mjs";

const borders = readBorders();
const files = readdirSync("prelude", { recursive: true }).filter((file) => file.endsWith(".js")).map((file) => path.join("prelude", file));
const program = ts.createProgram([...files, ...borders.map(({ source }) => source)], {
  allowJs: true, checkJs: true, noEmit: true, strict: false, strictNullChecks: false, noImplicitAny: false, allowImportingTsExtensions: true,
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, lib: ["lib.esnext.d.ts", "lib.dom.d.ts"],
  types: [], skipLibCheck: true, maxNodeModuleJsDepth: 0,
});

const used = new Set(), enumsUsed = new Set();
let faults = 0;
const fault = (source, at, text) => {
  const { line } = source.getLineAndCharacterOfPosition(at);
  console.error(`${path.relative(".", source.fileName)}:${line + 1}: ${text}`);
  faults++;
};

/** Whether it is `native` or `__native`, by whatever way it was reached. */
const isNative = (node) => ts.isIdentifier(node) && /^_{0,2}native$/.test(node.text);
/** The places of a file where the border is used: [start, end]. */
function usesOf(source, names) {
  const places = [];
  const look = (node) => {
    if (ts.isPropertyAccessExpression(node) && isNative(node.expression)) {
      const name = node.name.text;
      used.add(name);
      if (!names.has(name) && !OTHERS.has(name)) fault(source, node.getStart(), `${name}() is in no border.ts`);
      places.push(ts.isCallExpression(node.parent) && node.parent.expression === node ? [node.getStart(), node.parent.end] : [node.getStart(), node.end]);
    }
    if (ts.isVariableDeclaration(node) && node.initializer && isNative(node.initializer) && ts.isObjectBindingPattern(node.name)) {
      for (const each of node.name.elements) used.add((each.propertyName ?? each.name).getText());
    }
    if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression)) enumsUsed.add(node.expression.text);
    ts.forEachChild(node, look);
  };
  look(source);
  return places;
}

const names = new Set(borders.flatMap(({ files }) => [...files.values()].flat()));
const OTHERS = new Set(["turns"]); // not C's: what rewritten code uses (internal/turn.js)
used.add("mark"); // by what tools/build-prelude.mjs puts before the prelude
/** Arguments of a wrong type, too few or many, spread where their number matters. */
const ABOUT_CALLS = new Set([2345, 2554, 2555, 2556, 2769]);
for (const source of program.getSourceFiles()) {
  if (!path.relative(".", source.fileName).startsWith("prelude")) continue;
  const places = usesOf(source, names);
  for (const { start, code, messageText } of program.getSemanticDiagnostics(source)) {
    if (!ABOUT_CALLS.has(code) || !places.some(([from, to]) => start >= from && start < to)) continue;
    const text = ts.flattenDiagnosticMessageText(messageText, "\n").split("\n")[0];
    fault(source, start, text);
  }
}
for (const { source, files, enums } of borders) {
  const border = program.getSourceFile(source);
  for (const name of [...files.values()].flat()) if (!used.has(name)) fault(border, 0, `nobody calls ${name}()`);
  for (const { name } of enums) if (!enumsUsed.has(name)) fault(border, 0, `nobody uses ${name}`);
}
process.exit(faults > 0 ? 1 : 0);
