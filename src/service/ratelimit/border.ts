// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
export {};

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c
    rateLimit(ns: number, key: string, limit: number, period: number, callback: (success?: boolean, failure?: string, code?: number) => void): void;
  }
}
