// Parts of configurations that many tests have: what is bound, as wrangler.toml says it.

/** Durable Object classes, { BINDING: "Class" }, all of them new and with SQLite. */
export const objects = (classes) =>
  Object.entries(classes).map(([name, class_]) => `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "${class_}"\n`).join("") +
  `[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ${JSON.stringify([...new Set(Object.values(classes))])}\n`;

/** A queue that the worker sends to and, with `consumer` ({} or its options), takes from. */
export const queue = (binding, name, consumer) =>
  `[[queues.producers]]\nbinding = "${binding}"\nqueue = "${name}"\n` +
  (consumer ? `[[queues.consumers]]\nqueue = "${name}"\n${options(consumer)}` : "");

/** KV namespaces, { BINDING: "id" }. */
export const kv = (namespaces) =>
  Object.entries(namespaces).map(([binding, id]) => `[[kv_namespaces]]\nbinding = "${binding}"\nid = "${id}"\n`).join("");

/** Service bindings, { BINDING: "service" } or { BINDING: { service, entrypoint, … } }. */
export const services = (bindings) =>
  Object.entries(bindings).map(([binding, to]) => `[[services]]\nbinding = "${binding}"\n${options(typeof to === "string" ? { service: to } : to)}`).join("");

const options = (values) => Object.entries(values).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join("");
