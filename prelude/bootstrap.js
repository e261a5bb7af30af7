// What is installed in every context, in this order, and what C may call.
//
// The order matters only where a file uses another's interface while it loads; the imports say
// that. Everything else is a list of names.
import "./internal/symbols.js";
import "./internal/iteration.js";
import { defineLazy, expose, exposeEnumerable, exposeLazily } from "./internal/interface.js";
import { installStacks } from "./internal/stacks.js";
import { takeAway } from "./internal/taken.js";
import { AbortController, AbortSignal } from "./web/abort.js";
import { atob, btoa } from "./web/base64.js";
import { Blob, File } from "./web/blob.js";
import { console } from "./web/console.js";
import { Crypto, crypto } from "./web/crypto/crypto.js";
import { DOMException } from "./web/dom-exception.js";
import { TextDecoder } from "./web/encoding/text-decoder.js";
import { TextEncoder } from "./web/encoding/text-encoder.js";
import * as events from "./web/events.js";
import { fetch } from "./web/fetch/fetch.js";
import { Headers } from "./web/fetch/headers.js";
import { Request } from "./web/fetch/request.js";
import { Response } from "./web/fetch/response.js";
import { installGlobalScope } from "./web/global-scope.js";
import { Navigator, navigator } from "./web/navigator.js";
import { scheduler } from "./web/scheduler.js";
import { installTime } from "./web/time.js";
import { installWebAssembly } from "./web/webassembly.js";
import { structuredClone } from "./web/structured-clone.js";
import { setTimeout, setInterval, clearTimeout, clearInterval, queueMicrotask } from "./web/timers.js";
import { installNode } from "./workers/node.js";
import { URL } from "./web/url/url.js";
import { URLSearchParams } from "./web/url/search-params.js";
import cache from "part:./web/cache.js";
import compression from "part:./web/compression.js";
import disposable from "part:./web/disposable.js";
import eventSource from "part:./web/event-source.js";
import htmlRewriter from "part:./web/html-rewriter.js";
import messageChannel from "part:./web/message-channel.js";
import multipart from "part:./web/fetch/multipart.js";
import objects from "part:./workers/object/part.js";
import performance from "part:./web/performance.js";
import streams from "part:./web/streams/part.js";
import subtleCrypto from "part:./web/crypto/part.js";
import textStreams from "part:./web/encoding/text-streams.js";
import urlPattern from "part:./web/url/pattern.js";

for (const f of [
  setTimeout, setInterval, clearTimeout, clearInterval, queueMicrotask, atob, btoa, fetch, structuredClone,
]) exposeEnumerable(f.name, f);

const { Event, EventTarget, CustomEvent, ErrorEvent, MessageEvent, CloseEvent, PromiseRejectionEvent } = events;
const interfaces = {
  DOMException, Event, EventTarget, CustomEvent, ErrorEvent, MessageEvent, CloseEvent, PromiseRejectionEvent,
  AbortController, AbortSignal, Blob, File, Headers, Request, Response, Navigator,
  TextDecoder, TextEncoder, URL, URLSearchParams, Crypto,
};
for (const name of Object.keys(interfaces)) expose(name, interfaces[name]);
exposeLazily(cache, "Cache", "CacheStorage");
exposeLazily(compression, "CompressionStream", "DecompressionStream");
for (const name of ["DisposableStack", "AsyncDisposableStack", "SuppressedError"]) {
  if (globalThis[name] === undefined) exposeLazily(disposable, name);
}
exposeLazily(eventSource, "EventSource");
exposeLazily(htmlRewriter, "HTMLRewriter");
exposeLazily(messageChannel, "MessageChannel", "MessagePort");
exposeLazily(multipart, "FormData");
exposeLazily(performance, "Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure");
exposeLazily(streams, "ReadableStream", "ReadableStreamDefaultReader", "ReadableStreamBYOBReader", "ReadableStreamBYOBRequest",
  "ReadableByteStreamController", "ReadableStreamDefaultController", "TransformStream", "TransformStreamDefaultController",
  "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter", "ByteLengthQueuingStrategy", "CountQueuingStrategy",
  "FixedLengthStream", "IdentityTransformStream");
exposeLazily(subtleCrypto, "CryptoKey", "SubtleCrypto");
exposeLazily(textStreams, "TextDecoderStream", "TextEncoderStream");
exposeLazily(objects, "WebSocket", "WebSocketPair", "WebSocketRequestResponsePair");
exposeLazily(urlPattern, "URLPattern");

expose("console", console);
const globals = { crypto, navigator, scheduler };
for (const name of Object.keys(globals)) exposeEnumerable(name, globals[name]);
defineLazy(globalThis, "caches", () => cache().caches, true);
defineLazy(globalThis, "performance", () => performance().performance, true);
installStacks();
installGlobalScope();
installTime();
installWebAssembly();
// A lane never waits: everybody on it would.
Object.defineProperty(Atomics, "wait", {
  value: function wait() {
    throw new TypeError("Atomics.wait cannot be called in this context");
  },
  writable: true, enumerable: false, configurable: true,
});
takeAway();
installNode();

// What C calls.
export { start, dispatchFetch } from "./workers/dispatch.js";
export { modules } from "./workers/modules.js";
export { objectPress, objectResume } from "./internal/gate.js";
export { dispatchEvent, localReply, objectCreate, objectDeliver, objectDestroy, objectSocket, quiet } from "./workers/objects.js";
