// The functions that C provides (src/bindings/*.c), described in src/bindings/border.ts. User code cannot
// reach this object: it exists only as a parameter of the function that wraps the bundle.
/* global __native, __options */
/** @type {import("../../src/bindings/border.ts").Native & { turns: any }} */
export const native = __native;
// Options of the context: compatibility flags and dates, as the configuration gives them.
export const options = __options;
// The flags that are on, by name or by date; the configuration gives { flag: boolean }.
export const compatibilityFlags = new Set();
for (const flag of Object.keys(options.compatibilityFlags ?? {})) {
  if (options.compatibilityFlags[flag]) compatibilityFlags.add(flag);
}
/** For what is on unless the configuration (a flag, or an old date) says otherwise; without one everything is as of today. */
export const isFlagOff = (flag) => options.compatibilityFlags?.[flag] === false;
