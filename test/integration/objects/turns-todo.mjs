// What code that runs in a turn that is not its own does wrong today: tests (turns*.test.mjs) that are
// expected to fail. A pattern for each, of "suite: name".
const open = [
  /^ways: /,
  /^foreign: /,
  /^sections: (?!after (nothing|storage|section)$)/,
  /^outside: /,
  /^rules: (?!an object that was reset writes nothing|a message sent on another|a cursor that is read)/,
  // Lowering async functions changes these.
  /^syntax with hooks: (arguments, this|functions are|async generators)/,
  // The engine never settles these: iterators of arrays have no return().
  /^syntax: .* with a rejected promise$/,
  /^syntax with hooks: Array.fromAsync with a rejected promise$/,
];

/** For the option `todo` of a test. */
export const todo = (suite, name) => (open.some((pattern) => pattern.test(`${suite}: ${name}`)) ? "turns" : false);
