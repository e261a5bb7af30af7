// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
import type { ServiceAnswer } from "../../bindings/border.ts";

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c
    tally(ns: number, by: number | undefined, callback: ServiceAnswer): void;
  }
}
