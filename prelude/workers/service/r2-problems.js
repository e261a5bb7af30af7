// What can go wrong with R2, in one table: the number that a script sees, S3's word for it, and a sentence.
//
// P1  Every error of R2 has its number here: r2.js throws no other, and enum cn_r2_problem of
//     service/r2/r2.h has no other.
// P2  Every number has a word that S3 knows (s3.js). Only what is the server's own fault, and would be at
//     every next attempt, is its InternalError.
//
import { Code } from "../../../src/bindings/border.ts";

export const INTERNAL = 10001;
const BUSY = 10043;

export const PROBLEMS = {
  10001: ["InternalError", "Unspecified error."],
  10003: ["AccessDenied", "The customer's encryption key (SSE-C) that was given is not the one that the object was stored with."],
  10011: ["EntityTooSmall", "Your proposed upload is smaller than the minimum allowed object size."],
  10012: ["MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size."],
  10020: ["KeyTooLongError", "The specified object name is not valid."],
  10022: ["InvalidArgument", "MaxKeys params must be positive integer <= 1000."],
  10024: ["NoSuchUpload", "The specified multipart upload does not exist."],
  10025: ["InvalidPart", "One or more of the specified parts could not be found."],
  10037: ["BadDigest", "The checksum you specified did not match what we received."],
  10039: ["InvalidRange", "The requested range is not satisfiable"],
  10043: ["ServiceUnavailable", "The bucket cannot be reached at the moment."],
  10048: ["InvalidPart", "There was a problem with the multipart upload: all parts but the last must have the same size."],
  100100: ["EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size."],
};
Object.setPrototypeOf(PROBLEMS, null);

/** Codes that pass. */
const PASSING = [Code.OVERLOADED, Code.NOMEM, Code.READONLY, Code.CLOSED, Code.TIMEOUT];

/** The number for a failed call of the service, by its code. */
export const numberOf = (code) => (PASSING.includes(code) ? BUSY : INTERNAL);
