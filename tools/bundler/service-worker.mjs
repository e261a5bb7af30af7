// The older syntax: a script without exports that calls addEventListener("fetch", ...). Its
// handlers become methods of a default export, its bindings globals.
import { DECLARED } from "./turns.mjs";

export function usesServiceWorkerSyntax(source) {
  return /\baddEventListener\s*\(\s*["'`](fetch|scheduled)["'`]/.test(source);
}

/** Runs inside the bundle's function; plain text must come of it, so it uses nothing from outside. */
function record(__cairn) {
  const handlers = {};
  const original = globalThis.addEventListener;
  globalThis.addEventListener = function (type, handler, ...rest) {
    if (type === "fetch" || type === "scheduled") handlers[type] = handler;
    else original?.call(globalThis, type, handler, ...rest);
  };
  const env = __cairn.modules["cloudflare:workers"].env;
  for (const name of Reflect.ownKeys(env)) globalThis[name] ??= env[name];
  return handlers;
}

function replay(handlers) {
  const call = (handler, event) => (typeof handler === "function" ? handler(event) : handler.handleEvent(event));
  const main = {};
  if (handlers.fetch)
    main.fetch = (request, env, ctx) =>
      new Promise((resolve, reject) => {
        let answered = false;
        call(handlers.fetch, {
          type: "fetch",
          request,
          respondWith(response) {
            answered = true;
            Promise.resolve(response).then(resolve, reject);
          },
          waitUntil: (promise) => ctx.waitUntil(promise),
          passThroughOnException: () => ctx.passThroughOnException(),
        });
        if (!answered) reject(new TypeError("The fetch handler returned without calling event.respondWith()"));
      });
  if (handlers.scheduled)
    main.scheduled = (controller, env, ctx) =>
      call(handlers.scheduled, {
        type: "scheduled",
        scheduledTime: controller.scheduledTime,
        cron: controller.cron,
        waitUntil: (promise) => ctx.waitUntil(promise),
      });
  return { default: main };
}

const oneLine = (f) => f.toString().replace(/\s*\n\s*/g, " ");

export const serviceWorkerWrapper = [
  `(function(__cairn){${DECLARED}const __handlers=(${oneLine(record)})(__cairn);\n`,
  `\nreturn (${oneLine(replay)})(__handlers);\n})\n`,
];
