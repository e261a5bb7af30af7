// The modules of Node.js that a script can import, each evaluated when it is first asked for.
// names.json is the same list for those who must not evaluate any of it: the bundler and the part of
// the prelude that is in every context. A module's default export is what require() gives.

const LOADERS = {
  __proto__: null,
  "cloudflare:node": () => require("./cloudflare.js"),
  "node:_http_agent": () => require("./internal/legacy.js").agent(),
  "node:_http_client": () => require("./internal/legacy.js").client(),
  "node:_http_common": () => require("./internal/legacy.js").common(),
  "node:_http_incoming": () => require("./internal/legacy.js").incoming(),
  "node:_http_outgoing": () => require("./internal/legacy.js").outgoing(),
  "node:_http_server": () => require("./internal/legacy.js").server(),
  "node:_stream_duplex": () => require("./internal/legacy.js").stream("Duplex"),
  "node:_stream_passthrough": () => require("./internal/legacy.js").stream("PassThrough"),
  "node:_stream_readable": () => require("./internal/legacy.js").stream("Readable"),
  "node:_stream_transform": () => require("./internal/legacy.js").stream("Transform"),
  "node:_stream_wrap": () => require("./internal/legacy.js").streamWrap(),
  "node:_stream_writable": () => require("./internal/legacy.js").stream("Writable"),
  "node:_tls_common": () => require("./internal/legacy.js").tlsCommon(),
  "node:_tls_wrap": () => require("./internal/legacy.js").tlsWrap(),
  "node:assert": () => require("./assert.js"),
  "node:assert/strict": () => ({ default: require("./assert.js").default.strict }),
  "node:async_hooks": () => require("./async_hooks.js"),
  "node:buffer": () => require("./buffer.js"),
  "node:console": () => require("./console.js"),
  "node:constants": () => ({ default: Object.freeze(require("./data/constants.json")) }),
  "node:crypto": () => require("./crypto.js"),
  "node:diagnostics_channel": () => require("./diagnostics_channel.js"),
  "node:dns": () => require("./dns.js"),
  "node:dns/promises": () => ({ default: require("./dns.js").default.promises }),
  "node:events": () => require("./events.js"),
  "node:fs": () => require("./fs.js"),
  "node:fs/promises": () => ({ default: require("./fs.js").default.promises }),
  "node:http": () => require("./http.js"),
  "node:https": () => require("./https.js"),
  "node:module": () => require("./module.js"),
  "node:net": () => require("./net.js"),
  "node:os": () => require("./os.js"),
  "node:path": () => require("./path.js"),
  "node:path/posix": () => require("./path.js"),
  "node:path/win32": () => ({ default: require("./path.js").default.win32 }),
  "node:perf_hooks": () => require("./perf_hooks.js"),
  "node:process": () => require("./process.js"),
  "node:punycode": () => require("./punycode.js"),
  "node:querystring": () => require("./querystring.js"),
  "node:stream": () => require("./stream.js"),
  "node:stream/consumers": () => require("./stream_consumers.js"),
  "node:stream/promises": () => ({ default: require("./stream.js").default.promises }),
  "node:stream/web": () => require("./stream_web.js"),
  "node:string_decoder": () => require("./string_decoder.js"),
  "node:sys": () => require("./util.js"),
  "node:test": () => { const { mock, MockFunctionContext, MockTracker } = require("./test.js"); return { default: { mock, MockFunctionContext, MockTracker } }; },
  "node:timers": () => require("./timers.js"),
  "node:timers/promises": () => ({ default: require("./timers.js").default.promises }),
  "node:tls": () => require("./tls.js"),
  "node:url": () => require("./url.js"),
  "node:util": () => require("./util.js"),
  "node:util/types": () => ({ default: require("./util.js").default.types }),
  "node:zlib": () => require("./zlib.js"),
  "node:child_process": () => ({ default: require("./nonfunctional.js").childProcess() }),
  "node:cluster": () => require("./nonfunctional.js").cluster(),
  "node:dgram": () => ({ default: require("./nonfunctional.js").dgram() }),
  "node:domain": () => ({ default: require("./nonfunctional.js").domain() }),
  "node:http2": () => ({ default: require("./nonfunctional.js").http2() }),
  "node:inspector": () => ({ default: require("./nonfunctional.js").inspector(false) }),
  "node:inspector/promises": () => ({ default: require("./nonfunctional.js").inspector(true) }),
  "node:readline": () => ({ default: require("./nonfunctional.js").readline() }),
  "node:readline/promises": () => ({ default: require("./nonfunctional.js").readlinePromises() }),
  "node:repl": () => ({ default: require("./nonfunctional.js").repl() }),
  "node:sqlite": () => ({ default: require("./nonfunctional.js").sqlite() }),
  "node:trace_events": () => ({ default: require("./nonfunctional.js").traceEvents() }),
  "node:tty": () => ({ default: require("./nonfunctional.js").tty() }),
  "node:v8": () => ({ default: require("./nonfunctional.js").v8() }),
  "node:vm": () => ({ default: require("./nonfunctional.js").vm() }),
  "node:wasi": () => ({ default: require("./nonfunctional.js").wasi() }),
  "node:worker_threads": () => ({ default: require("./nonfunctional.js").workerThreads() }),
};

const loaded = new Map();

/**
 * The namespace of a module: { default, ...names }. Names that only the namespace has (`extras`)
 * are on the default export too, where nobody sees them: the bundler takes names from there.
 */
export function load(name) {
  let module = loaded.get(name);
  if (module === undefined) {
    const { default: value, extras = {} } = LOADERS[name]();
    for (const key of Object.keys(extras)) {
      if (!Object.hasOwn(value, key)) Object.defineProperty(value, key, { value: extras[key], writable: true, configurable: true, enumerable: false });
    }
    module = Object.create(null);
    for (const key of new Set([...Object.keys(value), ...Object.keys(extras)])) if (key !== "default") Object.defineProperty(module, key, { get: () => value[key], enumerable: true });
    Object.defineProperty(module, "default", { value, enumerable: true });
    loaded.set(name, module);
  }
  return module;
}
