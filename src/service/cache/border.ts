// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
export {};

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c
    cacheGet(key: string): [status: number, head: string, stored: number, size: number, body: Uint8Array | object] | undefined;
    cachePut(key: string, status: number, head: string, seconds: number, body: Uint8Array | object, place: string, tags: string[]): boolean;
    cacheDelete(key: string): boolean;
    cachePurge(tags: string[], paths: string[], everything: boolean, callback: (failure?: string) => void): boolean;
    cacheFile(): object | undefined;
    cacheWrite(file: object, bytes: Uint8Array): Promise<void>;
    cacheRead(file: object, offset: number, size: number): Promise<Uint8Array>;
  }
}
