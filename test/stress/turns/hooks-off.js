// A project without node:async_hooks.
export const started = await Promise.resolve(true);
export const hooks = false;
export const within = (_, run) => run();
export const store = () => undefined;
export const extra = {};
