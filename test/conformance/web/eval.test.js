// Code from strings: only while the script starts.
import { test, assertEquals, assertThrows } from "../harness.js";

const atStart = (0, eval)("1 + 1");
const noStart = { differs: { jsrun: "there is no start-up phase there" } };
const MESSAGE = "Code generation from strings disallowed for this context";

test("eval() works while the script starts", () => assertEquals(atStart, 2));

test("eval() and function constructors throw afterwards", () => {
  assertThrows(EvalError, () => (0, eval)("1"), MESSAGE);
  assertThrows(EvalError, () => new Function("return 1"), MESSAGE);
  assertThrows(EvalError, () => (async () => {}).constructor("return 1"), MESSAGE);
  assertThrows(EvalError, () => Object.getPrototypeOf(function* () {}).constructor("yield 1"), MESSAGE);
}, noStart);
