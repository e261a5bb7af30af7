// Every function that C provides. One block per file of src/bindings/.
export interface Native {
  // console.c
  log(level: 0 | 1 | 2 | 3, text: string): void;
  wallTime(): number;
  monotonicTime(): number;
  randomFill(view: ArrayBufferView | ArrayBuffer): void;
  isProxy(value: unknown): boolean;
  onErrorStack(callback: (error: Error, touched?: "stack" | "line" | "column" | "sourceURL") => void): void;
  explainStack(text: string): string;
  onUnhandledRejection(callback: (promise: Promise<unknown>, reason: unknown) => void): void;
  // turn.c
  clock(): Float64Array;
  mark(): Float64Array;
  turnSwitch(): boolean;
  objectKick(object: number): void;
  // trace.c; only while there is a trace (currentTrace())
  traceEvent(subject: string, members: string): void;
  traceStatus(status: number): void;
  traceFail(): void;
  traceLog(level: string, args: string): void;
  traceException(name: string, message: string, stack?: string): void;
  traceChannel(channel: string, message: string): void;
  // timers.c
  timerStart(id: number, milliseconds: number, repeats: boolean, callback: () => void): void;
  timerStop(id: number): void;
  // encoding.c
  utf8Encode(text: string): Uint8Array;
  utf8Decode(bytes: ArrayBufferView | ArrayBuffer): string;
  utf8Valid(bytes: ArrayBufferView | ArrayBuffer): boolean;
  utf8DecodeStrict(bytes: ArrayBufferView | ArrayBuffer): string | null;
  utf8EncodeInto(text: string, bytes: Uint8Array, counts: Uint32Array): void;
  latin1Decode(bytes: ArrayBufferView | ArrayBuffer): string;
  latin1Slice(bytes: Uint8Array, start: number, end: number): string;
  latin1Write(text: string, bytes: Uint8Array, start: number): boolean;
  encodingId(name: string): number;
  textDecode(id: number, state: Uint8Array, bytes: Uint8Array, flush: boolean, fatal: boolean): string | null;
  base64Encode(text: string): string | null;
  base64Decode(text: string): string | null;
  // assets.c
  assetFetch(method: string, host: string, target: string, headers: string): (number | string | null | Uint8Array | undefined)[] | undefined;
  assetRead(path: string, offset: number, size: number): Promise<Uint8Array>;
  // queue.c: [count, bytes, oldest]
  queueSend(ns: number, bodies: (string | BufferSource)[], types: number[], delays: number[], callback: (metrics?: number[], failure?: string, code?: number) => void): void;
  queueMetrics(ns: number, callback: (metrics?: number[], failure?: string, code?: number) => void): void;
  // ratelimit.c
  /** Texts are strings or bytes; throws if they are too long. */
  analyticsWrite(dataset: number, index: string | ArrayBuffer | ArrayBufferView, blobs: (string | ArrayBuffer | ArrayBufferView)[], blobCount: number, doubles: Float64Array): void;
  rateLimit(ns: number, key: string, limit: number, period: number, callback: (success?: boolean, failure?: string, code?: number) => void): void;
  // r2_body.c; a made body is [blob | null, size, md5, sha | undefined, bytes | undefined]
  r2Writer(sha: string | undefined, blobOnly: boolean, key: Uint8Array | undefined): object;
  r2Write(writer: object, bytes: Uint8Array): Promise<void> | undefined;
  r2Finish(writer: object, bytes: Uint8Array | undefined): unknown[] | Promise<unknown[]>;
  r2Abandon(writer: object): void;
  r2Begun(writer: object): string | undefined;
  r2Md5(bytes: Uint8Array): string;
  r2Note(ns: number, blob: string, announce: boolean, callback: Function): void;
  r2Read(body: object, offset: number, size: number): Promise<Uint8Array>;
  r2Unlock(body: object, key: Uint8Array): void;
  // r2_pipe.c
  respondR2(h: number, body: object, offset: number, size: number, done: (failure?: string) => void): boolean;
  // r2.c; onlyIf is [match, noneMatch, after, before, seconds]; callbacks as in service/call.js
  r2Get(ns: number, withBody: boolean, key: string, onlyIf: unknown[] | undefined, ssec: string | undefined, callback: Function): void;
  r2Put(ns: number, key: string, made: unknown[], checksums: string, http: string, custom: string, storageClass: string, ssec: string | undefined, onlyIf: unknown[] | undefined, callback: Function): void;
  r2Delete(ns: number, keys: string, callback: Function): void;
  r2List(ns: number, prefix: string, delimiter: string, after: string | null, afterIsPrefix: boolean, limit: number, http: boolean, custom: boolean, callback: Function): void;
  r2UploadCreate(ns: number, key: string, http: string, custom: string, storageClass: string, ssec: string | undefined, callback: Function): void;
  r2UploadPart(ns: number, key: string, upload: string, number: number, blob: string, size: number, etag: string, ssec: string | undefined, callback: Function): void;
  r2UploadEnd(ns: number, key: string, upload: string, parts: string | null, etag: string | null, checksums: string | null, callback: Function): void;
  r2Uploads(ns: number, key: string | null, upload: string | null, callback: Function): void;
  // cache.c
  cacheGet(key: string): [status: number, head: string, stored: number, size: number, body: Uint8Array | object] | undefined;
  cachePut(key: string, status: number, head: string, seconds: number, body: Uint8Array | object, place: string, tags: string[]): boolean;
  cacheDelete(key: string): boolean;
  cachePurge(tags: string[], paths: string[], everything: boolean): void;
  cacheFile(): object | undefined;
  cacheWrite(file: object, bytes: Uint8Array): Promise<void>;
  cacheRead(file: object, offset: number, size: number): Promise<Uint8Array>;
  // http.c: `h` is the handle of a fetch event
  requestMethod(h: number): string;
  requestUrl(h: number): string;
  requestHeaders(h: number): string;
  requestHeader(h: number, lowerName: string): string | null;
  requestRemote(h: number): string;
  requestHasBody(h: number): boolean;
  requestRead(h: number, later: (chunk?: Uint8Array | null, failure?: string) => void): Uint8Array | null | undefined;
  requestBytes(h: number): Uint8Array | undefined;
  requestText(h: number): string | undefined;
  requestCollect(h: number, asText: boolean, done: (all?: string | Uint8Array, failure?: string) => void): void;
  onAbort(h: number, callback: () => void): boolean;
  respond(h: number, status: number, statusText: string | undefined, headers: string | number, body: string | Uint8Array | null): boolean;
  respondSocket(h: number, headers: string | number, w: number): boolean;
  respondStart(h: number, status: number, statusText: string | undefined, headers: string | number, length: number): boolean;
  respondWrite(h: number, bytes: Uint8Array, later: (_?: undefined, failure?: string) => void): -1 | 0 | 1;
  respondPipe(h: number, done: (failure?: string) => void): boolean;
  respondEnd(h: number): void;
  eventFail(h: number, reason: string, overloaded: boolean): void;
  eventDone(h: number): void;
  scriptStarted(failure: string | undefined): void;
  // node.c: evaluates a part of the prelude (parts.js)
  preludePart(name: string, offset: number, length: number): (native: Native, options: object, core: (name: string) => object) => object;
  // node.c: evaluates the bundle of prelude/node/
  zlibOpen(mode: number, windowBits: number, level: number, memLevel: number, strategy: number, dictionary?: Uint8Array): object;
  zlibOpenBrotli(mode: number, params: Int32Array): object | undefined;
  zlibOpenZstd(mode: number, params: Int32Array, pledgedSize: number): object | undefined;
  zlibWrite(handle: object, flush: number, input: Uint8Array, output: Uint8Array, state: Uint32Array): [number, string, string] | undefined;
  zlibParams(handle: object, level: number, strategy: number): [number, string, string] | undefined;
  zlibReset(handle: object): [number, string, string] | undefined;
  zlibClose(handle: object): void;
  zlibCrc32(bytes: Uint8Array, value: number): number;
  proxyDetails(object: object): [object, object] | undefined;
  nodeBundle(): (native: Native, internals: object) => { load(name: string): object };
  // node_crypto.c
  nodeHash(name: string, hmacKey: BufferSource | undefined): object | null;
  nodeHashUpdate(state: object, bytes: BufferSource): void;
  nodeHashFinal(state: object, length: number): Uint8Array;
  nodeHashCopy(state: object): object;
  nodeCipherInfo(name: string): [keyLength: number, ivLength: number, blockSize: number, isAead: boolean] | null;
  nodeCipher(name: string, encrypts: boolean, key: BufferSource, iv: BufferSource, padding: boolean): object | string;
  nodeCipherUpdate(state: object, bytes: BufferSource, isAdditionalData: boolean): Uint8Array | undefined;
  nodeCipherFinal(state: object): Uint8Array | string;
  // node_dh.c: numbers are big-endian bytes
  nodeModExp(base: BufferSource, exponent: BufferSource, modulus: BufferSource): Uint8Array | null;
  nodeDhGroup(bits: number): Uint8Array | null;
  nodePrime(background: boolean, bits: number, safe: boolean, add?: BufferSource, rem?: BufferSource): Uint8Array | Promise<Uint8Array>;
  nodeIsPrime(background: boolean, number: BufferSource): boolean | Promise<boolean>;
  nodeEcPoint(curve: string, point: BufferSource, form: 2 | 4 | 6): Uint8Array | null;
  nodeEcMultiply(curve: string, secret?: BufferSource, point?: BufferSource): [Uint8Array, Uint8Array] | Uint8Array | null | undefined;
  nodeAgree(privateDer: BufferSource, publicDer: BufferSource): Uint8Array | null;
  // node_x509.c
  nodeX509Read(bytes: BufferSource): unknown[] | null;
  nodeX509Ask(der: BufferSource, question: number, about: string | BufferSource, flags: number): boolean;
  // node_crypto.c
  nodeCipherTag(state: object, tag: BufferSource | number): Uint8Array | undefined;
  nodeDerive(background: boolean, hash: string | null, password: BufferSource, salt: BufferSource, size: number, cost: number, r: number, p: number, memory: number):
    Uint8Array | Promise<Uint8Array> | null;
  nodeCryptoNames(ciphers: boolean): string;
  // node_keys.c; a key is [OpenSSL's type, DER, bits, curve]; a string says why it failed
  nodeKeyRead(bytes: BufferSource, isPrivate: boolean, passphrase: BufferSource | undefined): [string, Uint8Array, number, string] | string;
  nodeKeyPublic(der: Uint8Array): [string, Uint8Array, number, string] | string;
  nodeKeyWrite(der: Uint8Array, isPrivate: boolean, format: "PEM" | "DER", structure: string): Uint8Array | string;
  nodeKeyGenerate(background: boolean, type: string, bits: number, exponent: number, curve: string):
    [string, Uint8Array, number, string] | Promise<[string, Uint8Array, number, string]>;
  nodeSign(hash: string | null, der: Uint8Array, data: BufferSource, padding: number, salt: number, signature: BufferSource | undefined): Uint8Array | boolean | string;
  nodeRsa(encrypts: boolean, der: Uint8Array, isPrivate: boolean, data: BufferSource, padding: number, oaepHash: string): Uint8Array | string;
  // url.c
  domainToASCII(domain: string): string | null;
  domainToUnicode(domain: string): string;
  // multipart.c: [name, filename, type, start, end] of every part, in one array
  multipartParse(bytes: Uint8Array, boundary: string): (string | number | undefined)[];
  // fetch.c: `what` is 0 head (status, reason, headers), 1 data (chunk | null), 2 want, 3 failed (text)
  fetchStart(
    method: string, url: string, headers: string, body: string | Uint8Array | null | undefined, length: number,
    callback: (what: 0 | 1 | 2 | 3, ...values: unknown[]) => void,
  ): number;
  fetchRead(f: number, raw: boolean): Uint8Array | null | undefined;
  fetchWrite(f: number, bytes: Uint8Array): -1 | 0 | 1;
  fetchEnd(f: number): void;
  fetchClose(f: number, keep: boolean): void;
  // compression.c: kinds and flush modes are the enums of codec.h
  codecOpen(kind: number, level?: number, windowBits?: number, memLevel?: number, strategy?: number, dictionary?: Uint8Array): object;
  codecRun(codec: object, bytes: BufferSource | undefined, flush: 0 | 1 | 2, status: Uint32Array): Uint8Array;
  codecRunAsync(codec: object, bytes: BufferSource | undefined, flush: 0 | 1 | 2, status: Uint32Array): Promise<Uint8Array>;
  codecClose(codec: object): void;
  // sockets.c: `s` is the number of a connection
  socketConnect(host: string, port: number, secure: 0 | 1 | 2, allowHalfOpen: boolean,
    callback: (what: 0 | 1 | 2 | 3, a: string | Uint8Array | null, b: string | null) => void): number;
  socketRead(s: number): Uint8Array | null | undefined;
  socketWrite(s: number, bytes: BufferSource): -1 | 0 | 1;
  socketEnd(s: number): void;
  socketClose(s: number): void;
  socketStartTls(s: number, serverName: string | undefined, callback: Function): void;
  // websocket.c: `w` is the number of an end, `o` of an object; kinds of events are those of src/object/socket.h
  wsPair(): [number, number];
  wsAccept(w: number, callback: ((kind: number, ...values: unknown[]) => void) | undefined): void;
  wsSend(w: number, message: string | BufferSource, again: boolean): 0 | 1 | 2;
  wsClose(w: number, code: number, reason: string): void;
  wsState(w: number): 0 | 1 | 2 | 3 | 4;
  wsProtocol(w: number): [protocol: string | null, compresses: boolean];
  wsAttach(w: number, bytes: Uint8Array): void;
  wsAttachment(w: number): Uint8Array | null;
  wsTransit(w: number): string | null;
  wsClaim(address: string): number;
  wsAbandon(w: number): void;
  wsConnect(host: string, port: number, secure: boolean, authority: string, target: string, headers: string, deflate: boolean,
    callback: (result: string | [status: number, headers: string, w: number, body: Uint8Array | null]) => void): void;
  socketAccept(o: number, w: number, tags: string[], autoReply: boolean): void;
  socketList(o: number, tag: string | undefined): number[];
  socketTags(o: number, w: number): string[] | null;
  socketAutoResponse(o: number, pair: [request: string, response: string] | null): void;
  socketGetAutoResponse(o: number): [request: string, response: string] | null;
  socketAutoResponseTime(o: number, w: number): number;
  socketEventTimeout(o: number, milliseconds: number | undefined): number;
  // webcrypto.c: numbers as in web/crypto/native-ids.js; a string says why it failed
  crypto(operation: number, background: boolean, n0: number, n1: number, n2: number, n3: number, ...buffers: BufferSource[]):
    Uint8Array | boolean | [Uint8Array, Uint8Array] | string | Promise<Uint8Array | boolean | [Uint8Array, Uint8Array] | string>;
  digestStart(hash: number): object;
  digestUpdate(state: object, bytes: BufferSource): void;
  digestFinish(state: object): Uint8Array;
  timingSafeEqual(a: BufferSource, b: BufferSource): boolean;
  // html.c: events, places and wants are the enums of html_rewriter.h
  htmlCheck(selector: string): void;
  htmlOpen(): object;
  htmlOn(rewriter: object, selector: string | null, wants: number): void;
  htmlFeed(rewriter: object, bytes: Uint8Array | undefined): void;
  htmlNext(rewriter: object, status: Uint32Array): number;
  htmlOutput(rewriter: object): Uint8Array;
  htmlString(rewriter: object, which: 0 | 1 | 2 | 3 | 4 | 5): string | null;
  htmlRemoved(rewriter: object): boolean;
  htmlAttributes(rewriter: object): string[];
  htmlGetAttribute(rewriter: object, name: string): string | null;
  htmlSetAttribute(rewriter: object, name: string, value: string): void;
  htmlRemoveAttribute(rewriter: object, name: string): void;
  htmlSet(rewriter: object, which: 0 | 1, text: string): void;
  htmlInsert(rewriter: object, place: number, text: string, isHtml: boolean): void;
  htmlRemove(rewriter: object, keepContent: boolean): void;
  htmlOnEndTag(rewriter: object, number: number): void;
  // dispatch.c: calls to workers; `h` is the handle of an event that did not come by HTTP
  serviceCall(worker: string, kind: "rpc" | "fetch" | "handler", entrypoint: string | undefined, method: string | undefined,
    props: Uint8Array | undefined, bytes: Uint8Array, callback: (faults: number, bytes?: Uint8Array, message?: string) => void): void;
  eventReply(h: number, bytes: Uint8Array, streams: boolean): void;
  eventEnd(h: number): void;
  eventReject(h: number, message: string, bytes: Uint8Array | undefined): void;
  eventHold(): number;
  // d1.c: queries are [sql, count, value..., sql, count, ...]; callbacks as in service.h
  d1Query(ns: number, queries: (string | number | null | BufferSource)[], format: 0 | 1 | 2, inSession: boolean,
    callback: (value?: string | [json: string, bookmark: string], failure?: string, code?: number) => void): void;
  // kv.c: `ns` is the number of a namespace; callbacks as in service.h
  kvNamespaceGet(ns: number, key: string, asBytes: boolean,
    callback: (value?: null | string | ArrayBuffer | [string | ArrayBuffer, string], failure?: string, code?: number) => void):
    undefined | string | ArrayBuffer | [string | ArrayBuffer, string];
  kvNamespacePut(ns: number, key: string, body: string | BufferSource, expires: number, isTtl: boolean, metadata: string | undefined,
    callback: (value?: undefined, failure?: string, code?: number) => void): void;
  kvNamespaceDelete(ns: number, key: string, callback: (value?: undefined, failure?: string, code?: number) => void): void;
  kvNamespaceList(ns: number, shard: number, prefix: string, after: string | undefined, limit: number,
    callback: (value?: [json: string, more: boolean], failure?: string, code?: number) => void): void;
}
