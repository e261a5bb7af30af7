// All of the streams: evaluated when a script, or the runtime for it, first touches one.
export * from "./index.js";
export * from "./operations.js";
