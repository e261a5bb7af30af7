// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
import type { Bytes } from "../../bindings/border.ts";

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c
    /** Texts are strings or bytes; throws if they are too long. */
    analyticsWrite(dataset: number, index: string | Bytes, blobs: (string | Bytes)[], blobCount: number, doubles: Float64Array): void;
  }
}
