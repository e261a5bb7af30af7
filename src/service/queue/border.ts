// Functions of this folder for the prelude: src/bindings/border.ts says how they are described.
import type { Bytes } from "../../bindings/border.ts";

/** Forms of messages in a queue. C: CN_QUEUE_ in service/queue/queue.h */
export const enum MessageType { JSON = 0, TEXT = 1, BYTES = 2, V8 = 3 }

declare module "../../bindings/border.ts" {
  interface Native {
    // natives.c: [count, bytes, oldest]
    queueSend(ns: number, bodies: (string | Bytes)[], types: number[], delays: number[], callback: (metrics?: number[], failure?: string, code?: number) => void): void;
    queueMetrics(ns: number, callback: (metrics?: number[], failure?: string, code?: number) => void): void;
  }
}
