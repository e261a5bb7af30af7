// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
export {};

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c
    emailKeep(bytes: Uint8Array): string;
  }
}
