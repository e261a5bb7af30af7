// Modules that can be imported but not used: their names are there, and say why they fail.

/** A function (or class) that throws when it is called. */
export function unsupported(what) {
  const text = `${what} is not available in this runtime.`;
  return function () {
    throw Object.assign(new Error(text), { code: "ERR_METHOD_NOT_IMPLEMENTED" });
  };
}

const EXTRAS = {
  "node:cluster": { isMaster: true, isPrimary: true, isWorker: false, workers: {}, settings: {} },
  "node:worker_threads": { isMainThread: true, parentPort: null, threadId: 0, workerData: null, resourceLimits: {} },
  "node:http2": { constants: {} },
};

export function stub(name, members) {
  const module = {};
  for (const member of members) {
    module[member] = Object.defineProperty(unsupported(`${member}() of ${name}`), "name", { value: member });
  }
  // A terminal that is asked for is simply not one.
  if (name === "node:tty") module.isatty = () => false;
  if (name === "node:test") Object.assign(module.test, module);
  return Object.assign(name === "node:test" ? module.test : module, EXTRAS[name]);
}
