// What is installed in every context, in this order, and what C may call.
//
// The order matters only where a file uses another's interface while it loads; the imports say
// that. Everything else is a list of names.
import { exposeEnumerable } from "./internal/interface.js";
import { setTimeout, setInterval, clearTimeout, clearInterval, queueMicrotask } from "./web/timers.js";

for (const f of [setTimeout, setInterval, clearTimeout, clearInterval, queueMicrotask]) exposeEnumerable(f.name, f);
