// DOMException: https://webidl.spec.whatwg.org/#idl-DOMException
import { test, assert, assertEquals } from "../harness.js";

test("is an Error with name, message and code", () => {
  const e = new DOMException("text", "AbortError");
  assert(e instanceof Error && e instanceof DOMException);
  assertEquals([e.name, e.message, e.code], ["AbortError", "text", 20]);
  assertEquals(String(e), "AbortError: text");
  assertEquals(Object.prototype.toString.call(e), "[object DOMException]");
  assertEquals(typeof e.stack, "string");
});

test("defaults", () => {
  const e = new DOMException();
  assertEquals([e.name, e.message, e.code], ["Error", "", 0]);
  assertEquals(DOMException.length, 0);
});

test("codes of all names that have one", () => {
  const codes = {
    IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
    NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10,
    InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14,
    InvalidAccessError: 15, TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20,
    URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25,
  };
  for (const [name, code] of Object.entries(codes)) assertEquals(new DOMException("", name).code, code, name);
  for (const name of ["EncodingError", "NotAllowedError", "DataError", "OperationError"]) assertEquals(new DOMException("", name).code, 0, name);
});

test("constants, on the constructor and its prototype", () => {
  assertEquals([DOMException.INDEX_SIZE_ERR, DOMException.ABORT_ERR, DOMException.DATA_CLONE_ERR], [1, 20, 25]);
  assertEquals(new DOMException().TIMEOUT_ERR, 23);
});
