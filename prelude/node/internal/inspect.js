// util.inspect() and util.format() of Node.js, from the package that has them for other engines.
// What only an engine knows is asked for here: tools/build-prelude.mjs puts these functions in the
// place of the package's.
import util from "node-inspect-extracted";

export const { inspect, format, formatWithOptions } = util;
