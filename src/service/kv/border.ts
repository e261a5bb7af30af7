// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
import type { Bytes } from "../../bindings/border.ts";

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c: `ns` is the number of a namespace; callbacks as in service.h
    kvNamespaceGet(ns: number, key: string, asBytes: boolean, age: number, callback: (value?: null | string | ArrayBuffer | [string | ArrayBuffer, string], failure?: string, code?: number) => void): undefined | string | ArrayBuffer | [string | ArrayBuffer, string];
    kvNamespacePut(ns: number, key: string, body: string | Bytes, expires: number, isTtl: boolean, metadata: string | undefined, callback: (value?: undefined, failure?: string, code?: number) => void): void;
    kvNamespaceDelete(ns: number, key: string, callback: (value?: undefined, failure?: string, code?: number) => void): void;
    kvNamespaceList(ns: number, shard: number, prefix: string, after: string | undefined, limit: number, callback: (value?: [json: string, more: boolean], failure?: string, code?: number) => void): void;
  }
}
