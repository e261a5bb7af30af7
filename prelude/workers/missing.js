// Bindings of a kind that this server does not have, which a project was allowed to begin without.

/** What is asked of every value: it must not fail only because it was awaited or printed. */
const harmless = { __proto__: null, then: true, toJSON: true, toString: true, valueOf: true, constructor: true };

/** An object whose every use throws; passing it on does not. */
export function makeMissing({ name, key }) {
  const fail = () => {
    throw new Error(`env.${name} is not there: cairn does not run "${key}", and was started with --allow-missing ${key}`);
  };
  const get = (_, property) => (typeof property === "symbol" || harmless[property] ? undefined : fail());
  return new Proxy({ __proto__: null }, { get, set: fail, deleteProperty: fail, defineProperty: fail });
}
