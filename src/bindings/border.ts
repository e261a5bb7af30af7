// The border between C and JavaScript: every number that both sides know by a name, and every function that C
// provides. This is the only description. tools/border.mjs makes of it
//
//     build/border/FILE.h   for src/bindings/FILE.c: prototypes and the table of its functions, and the enums
//                           that are that file's own. The compiler refuses a function that is described and not
//                           there, or there and not described.
//     build/border/NAME/FILE.h   the same for src/service/NAME/FILE.c: the functions of a service are described
//                           in the border.ts of its folder, in the same way, as additions to Native
//     build/border/check.c  compares the enums of C's own headers with those that are here
//
// and the prelude imports the enums, whose numbers the bundler puts in place, and is checked against the types
// by `make lint`. An enum says where it is in C: "C: PREFIX in header", compared with that header, or
// "C: PREFIX for file.c", made from here. A function stands on one line, below the name of its file.
//
// Handles are numbers: o of an object, c of a call under way, h of an event, w of an end of a WebSocket, f of a
// fetch, s of a connection; ns is the number of a namespace of objects or of a service.

/** What runs, and for whom: places in clock(). C: CN_JS_ in js/vm.h */
export const enum Clock { TIME = 0, OBJECT = 1, TRACE = 2, REQUEST_HIGH = 3, REQUEST_LOW = 4, HOPS = 5, EVENT = 6, LAST_CONTEXT = 7, STRAY = 8 }
/** How an object is called. C: CN_CALL_ in object/call.h */
export const enum CallKind { FETCH = 0, RPC = 1, ALARM = 2, OTHER = 3 }
/** Why a call failed, a bit each. C: CN_FAULT_ in object/call.h */
export const enum Fault { REMOTE = 1, RETRYABLE = 2, OVERLOADED = 4, RESET = 8, AWAY = 16 }
/** How a call has ended: with what it returned, with an error, or unheard, because its caller is gone. C: CN_OUTCOME_ in bindings/call.h */
export const enum Outcome { RETURNED = 0, FAILED = 1, DROPPED = 2 }
/** What localCall() says: it is sent; the object is not here, and is called by bytes; the number of the target stands for nothing any more; no call may be made from here, as objectCall() says; an argument is not plain. C: LOCAL_ for localcall.c */
export const enum LocalSend { SENT = 0, ELSEWHERE = 1, FORGOTTEN = 2, TOO_DEEP = 3, NOT_PLAIN = 4 }
/** Codes of failed calls of services that are worded in their own way. C: CN_E in base/err.h */
export const enum Code { OVERLOADED = -10002, NOMEM = -10003, READONLY = -10010, CLOSED = -10012, TIMEOUT = -10013 }
/** What happens to a WebSocket. C: CN_SOCKET_ in object/socket.h */
export const enum SocketEvent { MESSAGE = 0, CLOSE = 1, ERROR = 2 }
/** What wsSend() says. C: SEND_ for websocket.c */
export const enum Sent { CLOSED = 0, DONE = 1, KEPT = 2 }
/** What happens to a fetch. C: FETCH_ for fetch.c */
export const enum FetchEvent { HEAD = 0, DATA = 1, WANT = 2, FAILED = 3 }
/** What happens to a connection. C: CONNECTION_ for sockets.c */
export const enum ConnectionEvent { OPEN = 0, DATA = 1, DRAIN = 2, CLOSED = 3 }
/** Codings of codecOpen(). C: CN_CODEC_ in codec/codec.h */
export const enum Coding { DEFLATE = 0, DEFLATE_RAW = 1, GZIP = 2, INFLATE = 3, INFLATE_RAW = 4, GUNZIP = 5, UNZIP = 6, BROTLI_ENCODE = 7, BROTLI_DECODE = 8, ZSTD_ENCODE = 9, ZSTD_DECODE = 10 }
/** What becomes of what was fed to one. C: CN_CODEC_ in codec/codec.h */
export const enum Flush { RUN = 0, FLUSH = 1, END = 2 }
/** C: CN_HASH_ in crypto/digest.h */
export const enum Hash { SHA1 = 1, SHA256 = 2, SHA384 = 3, SHA512 = 4, MD5 = 5 }
/** C: CN_KEY_ in crypto/key.h */
export const enum Key { RSA = 1, P256 = 2, P384 = 3, P521 = 4, ED25519 = 5, X25519 = 6 }
/** C: CN_SIGN_ in crypto/sign.h */
export const enum Scheme { RSA_PKCS1 = 1, RSA_PSS = 2, ECDSA = 3, ED25519 = 4 }
/** C: CN_CIPHER_ in crypto/cipher.h */
export const enum Cipher { CBC = 1, CTR = 2, GCM = 3, KW = 4 }
/** What nodeX509Ask() is asked. C: CN_CERTIFICATE_ in crypto/certificate.h */
export const enum CertificateQuestion { HOST = 0, EMAIL = 1, IP = 2, ISSUED = 3, PRIVATE_KEY = 4, VERIFY = 5 }
/** Operations of crypto(). C: OP_ for webcrypto.c */
export const enum CryptoOp { DIGEST = 0, HMAC = 1, HMAC_VERIFY = 2, CIPHER = 3, HKDF = 4, PBKDF2 = 5, SIGN = 6, VERIFY = 7, RSA_OAEP = 8, AGREE = 9, GENERATE = 10, IMPORT_PKCS8 = 11, IMPORT_SPKI = 12, IMPORT_RAW = 13, EXPORT_RAW = 14, IMPORT_PARTS = 15, EXPORT_PARTS = 16 }
/** What htmlNext() has found. C: CN_HTML_ in html/rewriter.h */
export const enum HtmlEvent { DONE = 0, NEED_INPUT = 1, ELEMENT = 2, TEXT = 3, COMMENT = 4, DOCTYPE = 5, END_TAG = 6, DOCUMENT_END = 7, PAUSE = 8 }
/** What handlers want to see, a bit each. C: CN_HTML_WANTS_ in html/rewriter.h */
export const enum HtmlWants { ELEMENT = 1, TEXT = 2, COMMENTS = 4, DOCTYPE = 8, END = 16 }
/** Where something is inserted. C: CN_HTML_ in html/rewriter.h */
export const enum HtmlPlace { BEFORE = 0, AFTER = 1, PREPEND = 2, APPEND = 3, REPLACE = 4, INNER = 5 }

/** RETURNED with bytes that are a value; or FAILED, with bits of Fault, and bytes that are the error, if it is known. */
export type Answer = (outcome: Outcome, bytes?: Uint8Array, faults?: number, message?: string) => void;
/** Of a service: a value, or why there is none, with a Code. */
export type ServiceAnswer = (value?: any, failure?: string, code?: number) => void;
export type Bytes = ArrayBufferView | ArrayBuffer;

export interface Native {
  // assets.c
  assetFind(path: string): [string, string | null, Uint8Array | undefined, number] | undefined;
  assetFetch(method: string, host: string, target: string, headers: string): (number | string | null | Uint8Array | undefined)[] | undefined;
  assetRead(path: string, offset: number, size: number): Promise<Uint8Array>;

  // compression.c: kinds and flush modes are the enums of codec.h
  codecOpen(kind: number, level?: number, windowBits?: number, memLevel?: number, strategy?: number, dictionary?: Uint8Array): object;
  codecRun(codec: object, bytes: Bytes | undefined, flush: 0 | 1 | 2, status: Uint32Array): Uint8Array;
  codecRunAsync(codec: object, bytes: Bytes | undefined, flush: 0 | 1 | 2, status: Uint32Array): Promise<Uint8Array>;
  codecClose(codec: object): void;

  // console.c
  log(level: 0 | 1 | 2 | 3 | 4, text: string): void;
  monotonicTime(): number;
  randomFill(view: Bytes): void;
  isProxy(value: unknown): boolean;
  onUnhandledRejection(callback: (promise: Promise<unknown>, reason: unknown) => void): void;
  onErrorStack(callback: (error: Error, touched?: "stack" | "line" | "column" | "sourceURL") => void): void;
  explainStack(text: string): string;

  // dispatch.c: calls to workers; `h` is the handle of an event that did not come by HTTP
  stubTarget(target: string | number): number;
  serviceIsCompiled(worker: string): boolean;
  serviceCall(worker: string, kind: "rpc" | "fetch" | "handler", entrypoint: string | undefined, method: string | undefined, props: Uint8Array | undefined, bytes: Uint8Array, callback: Answer): void;
  eventLends(h: number, address: string, number: number): void;
  eventReply(h: number, bytes: Uint8Array, streams: boolean): void;
  eventEnd(h: number): void;
  eventReject(h: number, message: string, bytes: Uint8Array | undefined): void;
  eventHold(): number;

  // encoding.c
  utf8Encode(text: string): Uint8Array;
  utf8EncodeInto(text: string, bytes: Uint8Array, counts: Uint32Array): void;
  utf8Decode(bytes: Bytes): string;
  utf8DecodeStrict(bytes: Bytes): string | null;
  utf8Valid(bytes: Bytes): boolean;
  latin1Decode(bytes: Bytes): string;
  latin1Slice(bytes: Uint8Array, start: number, end: number): string;
  latin1Write(text: string, bytes: Uint8Array, start: number): boolean;
  encodingId(name: string): number;
  textDecode(id: number, state: Uint8Array, bytes: Uint8Array, flush: boolean, fatal: boolean): string | null;
  base64Encode(text: string): string | null;
  base64Decode(text: string): string | null;

  // fetch.c: `what` is 0 head (status, reason, headers), 1 data (chunk | null), 2 want, 3 failed (text)
  fetchStart(method: string, url: string, headers: string, body: string | Uint8Array | null | undefined, length: number, callback: (what: 0 | 1 | 2 | 3, ...values: unknown[]) => void): number;
  fetchRead(f: number, raw: boolean): Uint8Array | null | undefined;
  fetchWrite(f: number, bytes: Uint8Array): -1 | 0 | 1;
  fetchEnd(f: number): void;
  fetchClose(f: number, keep: boolean): void;

  // html.c: events, places and wants are the enums of html/rewriter.h
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

  // http.c: `h` is the handle of a fetch event
  requestMethod(h: number): string;
  requestUrl(h: number): string;
  requestHeaders(h: number): string;
  requestHeader(h: number, lowerName: string): string | null;
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
  eventFail(h: number, reason: string, overloaded: boolean, told: string): void;
  eventDone(h: number): void;
  scriptStarted(failure: string | undefined): void;

  // localcall.c: the number of a target is negative where its class is a module's, 0: it has none, NaN: none while it is on another node
  targetNew(ns: number, hex: string, name: string | undefined): number;
  localCall(target: number, slot: number, kind: CallKind): LocalSend;
  compiledCall(target: number, slot: number, method: string, ...args: unknown[]): LocalSend;

  // multipart.c: [name, filename, type, start, end] of every part, in one array
  multipartParse(bytes: Uint8Array, boundary: string): (string | number | undefined)[];

  // node.c: evaluates a part of the prelude (parts.js); evaluates the bundle of prelude/node/
  proxyDetails(object: object): [object, object] | undefined;
  promiseState(value: object): [state: number, result: unknown] | undefined;
  nodeBundle(): (native: Native, internals: object) => { load(name: string): object };
  preludePart(name: string, offset: number, length: number): (native: Native, options: object, core: (name: string) => object) => object;

  // node_crypto.c
  nodeHash(name: string, hmacKey: Bytes | undefined): object | null;
  nodeHashUpdate(state: object, bytes: Bytes): void;
  nodeHashFinal(state: object, length: number): Uint8Array;
  nodeHashCopy(state: object): object;
  nodeCipherInfo(name: string): [keyLength: number, ivLength: number, blockSize: number, isAead: boolean] | null;
  nodeCipher(name: string, encrypts: boolean, key: Bytes, iv: Bytes, padding: boolean): object | string;
  nodeCipherUpdate(state: object, bytes: Bytes, isAdditionalData: boolean): Uint8Array | undefined;
  nodeCipherFinal(state: object): Uint8Array | string;
  nodeCipherTag(state: object, tag: Bytes | number): Uint8Array | undefined;
  nodeDerive(background: boolean, hash: string | null, password: Bytes, salt: Bytes, size: number, cost: number, r: number, p: number, memory: number): Uint8Array | Promise<Uint8Array> | null;
  nodeCryptoNames(ciphers: boolean): string;

  // node_dh.c: numbers are big-endian bytes
  nodeModExp(base: Bytes, exponent: Bytes, modulus: Bytes): Uint8Array | null;
  nodeDhGroup(bits: number): Uint8Array | null;
  nodePrime(background: boolean, bits: number, safe: boolean, add?: Bytes, rem?: Bytes): Uint8Array | Promise<Uint8Array>;
  nodeIsPrime(background: boolean, number: Bytes): boolean | Promise<boolean>;
  nodeEcPoint(curve: string, point: Bytes, form: 2 | 4 | 6): Uint8Array | null;
  nodeEcMultiply(curve: string, secret?: Bytes, point?: Bytes): [Uint8Array, Uint8Array] | Uint8Array | null | undefined;
  nodeAgree(privateDer: Bytes, publicDer: Bytes): Uint8Array | null;

  // node_keys.c: a key is [OpenSSL's type, DER, bits, curve]; a string says why it failed
  nodeSpkac(what: 0 | 1 | 2, text: Bytes | string): boolean | Uint8Array | undefined;
  nodeKeyRead(bytes: Bytes, isPrivate: boolean, passphrase: Bytes | undefined): [string, Uint8Array, number, string] | string;
  nodeKeyPublic(der: Uint8Array): [string, Uint8Array, number, string] | string;
  nodeKeyWrite(der: Uint8Array, isPrivate: boolean, format: "PEM" | "DER", structure: string): Uint8Array | string;
  nodeKeyGenerate(background: boolean, type: string, bits: number, exponent: number, curve: string): [string, Uint8Array, number, string] | Promise<[string, Uint8Array, number, string]>;
  nodeSign(hash: string | null, der: Uint8Array, data: Bytes, padding: number, salt: number, signature: Bytes | undefined): Uint8Array | boolean | string;
  nodeRsa(encrypts: boolean, der: Uint8Array, isPrivate: boolean, data: Bytes, padding: number, oaepHash: string): Uint8Array | string;

  // node_x509.c
  nodeX509Read(bytes: Bytes): unknown[] | null;
  nodeX509Ask(der: Bytes, question: CertificateQuestion, about: string | Bytes, flags: number): boolean;

  // node_zlib.c
  zlibOpen(mode: number, windowBits: number, level: number, memLevel: number, strategy: number, dictionary?: Uint8Array): object;
  zlibOpenBrotli(mode: number, params: Int32Array): object | undefined;
  zlibOpenZstd(mode: number, params: Int32Array, pledgedSize: number): object | undefined;
  zlibWrite(handle: object, flush: number, input: Uint8Array, output: Uint8Array, state: Uint32Array): [number, string, string] | undefined;
  zlibParams(handle: object, level: number, strategy: number): [number, string, string] | undefined;
  zlibReset(handle: object): [number, string, string] | undefined;
  zlibClose(handle: object): void;
  zlibCrc32(bytes: Uint8Array, value: number): number;

  // object.c
  idFromName(ns: number, name: string, jurisdiction: number): string;
  idUnique(ns: number, jurisdiction: number): string;
  idCheck(ns: number, hex: string): number;
  objectCall(ns: number, hex: string, name: string | undefined, kind: CallKind, method: string | undefined, bytes: Uint8Array, callback: Answer): void;
  targetCall(address: string, method: string, bytes: Uint8Array, callback: Answer, term: number): void;
  stubTerm(): number;
  lend(o: number, number: number, mark: string): void;
  objectAddress(o: number): string;
  workerAddress(): string;
  callLends(c: number, address: string, number: number): void;
  callReply(c: number, bytes: Uint8Array | undefined): void;
  callFail(c: number, message: string, bytes: Uint8Array | undefined): void;
  objectStarted(o: number, failure: string | undefined, bytes?: Uint8Array): void;
  objectReset(o: number, faults: number, message: string, retryAlarm: boolean, bytes?: Uint8Array): void;
  objectEnd(o: number): boolean;
  objectLock(o: number): void;
  objectUnlock(o: number): void;
  objectWait(o: number): void;
  objectUnwait(o: number): void;
  objectStream(o: number): number;
  objectStreamEnd(o: number, turn: number): void;

  // restore.c
  bookmarkNow(o: number, callback: ServiceAnswer): void;
  bookmarkAt(o: number, milliseconds: number, callback: ServiceAnswer): void;
  restoreNext(o: number, bookmark: string, source: string | undefined, callback: ServiceAnswer): void;

  // sockets.c: `s` is the number of a connection
  socketConnect(host: string, port: number, secure: 0 | 1 | 2, allowHalfOpen: boolean, callback: (what: 0 | 1 | 2 | 3, a: string | Uint8Array | null, b: string | null) => void): number;
  socketRead(s: number): Uint8Array | null | undefined;
  socketWrite(s: number, bytes: Bytes): -1 | 0 | 1;
  socketEnd(s: number): void;
  socketClose(s: number): void;
  socketStartTls(s: number, serverName: string | undefined, callback: ServiceAnswer): void;

  // storage.c
  kvGet(o: number, key: string): Uint8Array | undefined;
  kvPut(o: number, key: string, bytes: Uint8Array): void;
  kvDelete(o: number, key: string): boolean;
  kvList(o: number, start: string | undefined, startAfter: boolean, end: string | undefined, prefix: string | undefined, reverse: boolean, limit: number, each: (key: string, bytes: Uint8Array) => boolean | void): void;
  sqlOut(): Float64Array;
  sqlNames(): string[];
  sqlExec(o: number, query: string, ...bindings: unknown[]): unknown[] | null;
  sqlNext(cursor: number): unknown[] | null;
  databaseSize(o: number): number;
  savepoint(o: number): number;
  savepointEnd(o: number, level: number, keep: boolean): void;
  transactionBegin(o: number): void;
  transactionEnd(o: number): void;
  deleteAll(o: number, alarmToo: boolean): void;
  storageCommit(o: number): void;
  storageSync(o: number, all: boolean, callback: (failure?: string) => void): void;
  outputOpen(o: number): boolean;
  unconfirmedBegin(o: number): boolean;
  unconfirmedEnd(o: number, began: boolean): void;
  alarmGet(o: number): number | null;
  alarmSet(o: number, milliseconds: number | null): void;

  // timers.c
  timerStart(id: number, milliseconds: number, repeats: boolean, callback: () => void): void;
  timerStop(id: number): void;

  // trace.c: only while there is a trace (currentTrace())
  traceIsWhole(): boolean;
  traceEvent(subject: string, members: string): void;
  traceStatus(status: number): void;
  traceFail(): void;
  traceLog(level: string, args: string): void;
  traceException(name: string, message: string, stack?: string): void;
  traceChannel(channel: string, message: string): void;
  traceSpanIds(): string;
  traceTime(): number;
  traceSpan(trace: number, span: string): void;

  // turn.c
  clock(): Float64Array;
  mark(): Float64Array;
  turnSwitch(): boolean;
  objectKick(object: number): void;

  // url.c
  domainToASCII(domain: string): string | null;
  domainToUnicode(domain: string): string;

  // webcrypto.c: numbers as in web/crypto/native-ids.js; a string says why it failed
  crypto(operation: number, background: boolean, n0: number, n1: number, n2: number, n3: number, ...buffers: Bytes[]): Uint8Array | boolean | [Uint8Array, Uint8Array] | string | Promise<Uint8Array | boolean | [Uint8Array, Uint8Array] | string>;
  digestStart(hash: number): object;
  digestUpdate(state: object, bytes: Bytes): void;
  digestFinish(state: object): Uint8Array;
  timingSafeEqual(a: Bytes, b: Bytes): boolean;

  // websocket.c: `w` is the number of an end, `o` of an object; kinds of events are those of src/object/socket.h
  wsPair(): [number, number];
  wsAccept(w: number, callback: ((kind: number, ...values: unknown[]) => void) | undefined): void;
  wsSend(w: number, message: string | Bytes, again: boolean): 0 | 1 | 2;
  wsClose(w: number, code: number, reason: string): void;
  wsState(w: number): 0 | 1 | 2 | 3 | 4;
  wsProtocol(w: number): [protocol: string | null, compresses: boolean];
  wsAttach(w: number, bytes: Uint8Array): void;
  wsAttachment(w: number): Uint8Array | null;
  wsTransit(w: number): string | null;
  wsClaim(address: string): number;
  wsAbandon(w: number): void;
  wsConnect(host: string, port: number, secure: boolean, authority: string, target: string, headers: string, deflate: boolean, callback: (result: string | [status: number, headers: string, w: number, body: Uint8Array | null]) => void): void;
  socketAccept(o: number, w: number, tags: string[], autoReply: boolean): void;
  socketList(o: number, tag: string | undefined): number[];
  socketTags(o: number, w: number): string[] | null;
  socketAutoResponse(o: number, pair: string[] | null): void;
  socketGetAutoResponse(o: number): [request: string, response: string] | null;
  socketAutoResponseTime(o: number, w: number): number;
  socketEventTimeout(o: number, milliseconds: number | undefined): number;
}
