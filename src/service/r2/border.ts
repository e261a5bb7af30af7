// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
import type { ServiceAnswer } from "../../bindings/border.ts";

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c: onlyIf is [match, noneMatch, after, before, seconds]; callbacks as in prelude/workers/service/call.js
    r2Get(ns: number, withBody: boolean, key: string, onlyIf: unknown[] | undefined, ssec: string | undefined, callback: ServiceAnswer): void;
    r2Put(ns: number, key: string, made: unknown[], checksums: string, http: string, custom: string, storageClass: string, ssec: string | undefined, onlyIf: unknown[] | undefined, callback: ServiceAnswer): void;
    r2Delete(ns: number, keys: string, callback: ServiceAnswer): void;
    r2List(ns: number, prefix: string, delimiter: string, after: string | null, afterIsPrefix: boolean, limit: number, http: boolean, custom: boolean, callback: ServiceAnswer): void;
    r2Note(ns: number, blob: string, announce: boolean, callback: ServiceAnswer): void;
    r2UploadCreate(ns: number, key: string, http: string, custom: string, storageClass: string, ssec: string | undefined, callback: ServiceAnswer): void;
    r2UploadPart(ns: number, key: string, upload: string, number: number, blob: string, size: number, etag: string, ssec: string | undefined, callback: ServiceAnswer): void;
    r2UploadEnd(ns: number, key: string, upload: string, parts: string | null, etag: string | null, checksums: string | null, callback: ServiceAnswer): void;
    r2Uploads(ns: number, key: string | null, upload: string | null, callback: ServiceAnswer): void;

    // natives_body.c: a made body is [blob | null, size, md5, sha | undefined, bytes | undefined]
    r2Writer(ns: number, sha: string | undefined, blobOnly: boolean, key: Uint8Array | undefined): object;
    r2Write(writer: object, bytes: Uint8Array): Promise<void> | undefined;
    r2Finish(writer: object, bytes: Uint8Array | undefined): unknown[] | Promise<unknown[]>;
    r2Abandon(writer: object): void;
    r2Begun(writer: object): string | undefined;
    r2Md5(bytes: Uint8Array): string;
    r2Read(body: object, offset: number, size: number): Promise<Uint8Array>;
    r2Unlock(body: object, key: Uint8Array): void;

    // natives_pipe.c
    respondR2(h: number, body: object, offset: number, size: number, done: (failure?: string) => void): boolean;
  }
}
