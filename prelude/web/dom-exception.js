// DOMException: https://webidl.spec.whatwg.org/#idl-DOMException
//
// A real Error (it has a stack) whose prototype is DOMException.prototype.
import { defineConstants } from "../internal/interface.js";
import { isObject } from "../internal/webidl.js";

const CODES = {
  IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
  NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10,
  InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14,
  InvalidAccessError: 15, TypeMismatchError: 17, SecurityError: 18, NetworkError: 19, AbortError: 20,
  URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23, InvalidNodeTypeError: 24, DataCloneError: 25,
};

export class DOMException {
  constructor(message = "", name = "Error") {
    const options = isObject(name) ? name : { name };
    const error = Reflect.construct(Error, [], new.target);
    const title = options.name === undefined ? "Error" : `${options.name}`;
    const hidden = { writable: true, configurable: true, enumerable: false };
    Object.defineProperties(error, {
      code: { value: CODES[title] ?? 0, ...hidden },
      name: { value: title, ...hidden },
      message: { value: `${message}`, ...hidden },
    });
    if ("cause" in options) Object.defineProperty(error, "cause", { value: options.cause, ...hidden });
    return error;
  }
}
Object.setPrototypeOf(DOMException.prototype, Error.prototype);
Object.defineProperty(DOMException.prototype, Symbol.toStringTag, { value: "DOMException", writable: true, configurable: true });
Object.defineProperty(DOMException, "length", { value: 0, configurable: true });
Object.defineProperty(DOMException, "name", { value: "DOMException", configurable: true }); // the bundler may give it another
defineConstants(DOMException, {
  INDEX_SIZE_ERR: 1, DOMSTRING_SIZE_ERR: 2, HIERARCHY_REQUEST_ERR: 3, WRONG_DOCUMENT_ERR: 4,
  INVALID_CHARACTER_ERR: 5, NO_DATA_ALLOWED_ERR: 6, NO_MODIFICATION_ALLOWED_ERR: 7, NOT_FOUND_ERR: 8,
  NOT_SUPPORTED_ERR: 9, INUSE_ATTRIBUTE_ERR: 10, INVALID_STATE_ERR: 11, SYNTAX_ERR: 12,
  INVALID_MODIFICATION_ERR: 13, NAMESPACE_ERR: 14, INVALID_ACCESS_ERR: 15, VALIDATION_ERR: 16,
  TYPE_MISMATCH_ERR: 17, SECURITY_ERR: 18, NETWORK_ERR: 19, ABORT_ERR: 20, URL_MISMATCH_ERR: 21,
  QUOTA_EXCEEDED_ERR: 22, TIMEOUT_ERR: 23, INVALID_NODE_TYPE_ERR: 24, DATA_CLONE_ERR: 25,
});
