// A project without node:async_hooks.
import { pause } from "./shared.js";

export const started = await pause(5).then(() => true);
export const hooks = false;
export const within = (_, run) => run();
export const store = () => undefined;
export const extra = {};
