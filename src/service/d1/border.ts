// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
import type { Bytes } from "../../bindings/border.ts";

/** Forms of D1's answers. C: CN_D1_ in service/d1/d1.h */
export const enum D1Format { OBJECTS = 0, ROWS = 1, COUNT = 2 }

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c: queries are [sql, count, value..., sql | null: the same, count, ...]; callbacks as in service.h
    d1Query(ns: number, queries: (string | number | null | Bytes)[], format: D1Format, inSession: boolean, callback: (value?: [json: string | null, metas: number[], bookmark: string | null], failure?: string, code?: number) => void): void;
  }
}
