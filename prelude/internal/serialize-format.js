// Tags of the byte format for values; docs/reference/structured-clone.md describes it byte by byte.
export const VERSION = 1;

export const UNDEFINED = 0x00;
export const NULL = 0x01;
export const FALSE = 0x02;
export const TRUE = 0x03;
export const INT = 0x04;
export const DOUBLE = 0x05;
export const BIGINT = 0x06;
export const BIGINT_NEGATIVE = 0x07;
export const LATIN1 = 0x08;
export const UTF16 = 0x09;
export const REFERENCE = 0x0a;
export const EXTERNAL = 0x0b;
export const HOLE = 0x0c;

export const OBJECT = 0x10;
export const ARRAY = 0x11;
export const ARRAY_WITH_KEYS = 0x12;
export const DATE = 0x13;
export const REGEXP = 0x14;
export const MAP = 0x15;
export const SET = 0x16;
export const BOXED = 0x17;
export const BUFFER = 0x18;
export const BUFFER_RESIZABLE = 0x19;
export const VIEW = 0x1a;
export const VIEW_WHOLE = 0x1b;
export const ERROR = 0x1c;
export const DOM_EXCEPTION = 0x1d;

export { HOST_FIRST, HOST_LAST } from "./serialize-hosts.js";

export const SHORT_STRING = 0x40; // to 0x5f: Latin-1 of 0 to 31 characters
export const SHORT_STRING_MAX = 31;
export const SMALL_INT = 0x80; // to 0xff: -16 to 111
export const SMALL_INT_MIN = -16;
export const SMALL_INT_MAX = 111;

// A key of an object starts with a number whose two low bits say what follows.
export const KEY_END = 0;
export const KEY_LATIN1 = 1;
export const KEY_UTF16 = 2;
export const KEY_REFERENCE = 3;

export const ERROR_TYPES = ["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError", "AggregateError"];
export const ERROR_HAS_MESSAGE = 1;
export const ERROR_HAS_STACK = 2;

export const VIEW_TYPES = [
  DataView,
  Uint8Array,
  Int8Array,
  Uint8ClampedArray,
  Uint16Array,
  Int16Array,
  Uint32Array,
  Int32Array,
  Float32Array,
  Float64Array,
  BigUint64Array,
  BigInt64Array,
  typeof Float16Array === "function" ? Float16Array : null,
];
export const VIEW_TRACKS_LENGTH = 0x80; // added to the type: no length, the view follows its buffer

/** Deeper nesting is refused on both sides: the recursion must not end the stack. */
export const DEPTH_MAX = 2000;
