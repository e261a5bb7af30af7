// Queues: env.QUEUE.send(), sendBatch(), metrics(), and the batch that a queue() handler gets.
// https://developers.cloudflare.com/queues/configuration/javascript-apis/
import { MessageType } from "../../../src/service/queue/border.ts";
import { currentTrace } from "../../internal/turn.js";
import { compatibilityFlags, native } from "../../internal/native.js";
import { finishInterface } from "../../internal/interface.js";
import { describeError } from "../../internal/report.js";
import { deserialize, serialize } from "../../internal/serialize.js";
import { isDictionary, parameterError } from "../../internal/webidl.js";
import { contextSettled } from "../context.js";
import { callService } from "./call.js";
import trace from "part:../../internal/trace.js";

const TYPES = ["json", "text", "bytes", "v8"]; // by MessageType
const COUNT_MAX = 100;
const DELAY_MAX_S = 86400;
const ID_LENGTH = 32;

const token = Symbol("construct");

const failure = (text) => new Error(`Queue send failed: ${text}`);

function delayOf(options, fallback) {
  const delay = options?.delaySeconds;
  if (delay === undefined || delay === null) return fallback;
  if (typeof delay !== "number" || !(delay >= 0 && delay <= DELAY_MAX_S)) {
    throw new TypeError(`delaySeconds must be a number from 0 to ${DELAY_MAX_S}`);
  }
  return Math.floor(delay);
}

/** The body as C takes it, and the number of its type. */
function encode(body, contentType, bodies, types) {
  const type = contentType === undefined || contentType === null ? 0 : TYPES.indexOf(`${contentType}`);
  if (type < 0) throw new TypeError(`Unsupported queue message content type: ${contentType}`);
  let encoded;
  if (type === 0) {
    encoded = JSON.stringify(body);
    if (encoded === undefined) throw new TypeError("The body cannot be serialized as JSON");
  } else if (type === 1) {
    if (typeof body !== "string") throw new TypeError('Content Type "text" requires a value of type string');
    encoded = body;
  } else if (type === 2) {
    if (!ArrayBuffer.isView(body) && !(body instanceof ArrayBuffer)) {
      throw new TypeError('Content Type "bytes" requires a value of type ArrayBuffer or ArrayBufferView');
    }
    encoded = body;
  } else {
    encoded = serialize(body);
  }
  bodies.push(encoded);
  types.push(type);
}

const metricsOf = ([backlogCount, backlogBytes, oldest]) => ({
  backlogCount, backlogBytes, oldestMessageTimestamp: oldest === 0 ? undefined : new Date(oldest),
});

class WorkerQueue {
  #ns;
  #delay; // the binding's delivery_delay
  constructor(key, ns, delay) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#ns = ns;
    this.#delay = delay;
  }

  async #send(bodies, types, delays) {
    const metrics = await callService((callback) => {
      try {
        native.queueSend(this.#ns, bodies, types, delays, callback);
      } catch (error) {
        throw failure(error.message);
      }
    }, failure);
    return { metadata: { metrics: metricsOf(metrics) } };
  }

  async send(body, options) {
    if (arguments.length === 0 || body === undefined) throw new TypeError("Message body cannot be undefined");
    if (!isDictionary(options)) throw parameterError("send", "WorkerQueue", 2, "SendOptions");
    const bodies = [], types = [];
    encode(body, options?.contentType, bodies, types);
    return this.#send(bodies, types, [delayOf(options, this.#delay)]);
  }

  async sendBatch(messages, options) {
    if (messages === null || typeof messages?.[Symbol.iterator] !== "function") {
      throw new TypeError("sendBatch() takes an iterable of messages");
    }
    if (!isDictionary(options)) throw parameterError("sendBatch", "WorkerQueue", 2, "SendBatchOptions");
    const bodies = [], types = [], delays = [];
    const fallback = delayOf(options, this.#delay);
    for (const message of messages) {
      if (message === null || typeof message !== "object") throw new TypeError("A message of sendBatch() must be an object with a body");
      const { body, contentType } = message;
      if (body === undefined) throw new TypeError("Message body cannot be undefined");
      encode(body, contentType, bodies, types);
      delays.push(delayOf(message, fallback));
      if (bodies.length > COUNT_MAX) throw failure(`batch message count of more than ${COUNT_MAX} exceeds limit of ${COUNT_MAX}`);
    }
    if (bodies.length === 0) throw new TypeError("sendBatch() requires at least one message");
    return this.#send(bodies, types, delays);
  }

  async metrics() {
    return metricsOf(await callService((callback) => native.queueMetrics(this.#ns, callback)));
  }
}
finishInterface(WorkerQueue);

export function makeBinding({ ns, delay }) {
  return new WorkerQueue(token, ns, delay);
}

// --- consumers -----------------------------------------------------------------------------

const ACK = 1;
const RETRY = 2;

function decode(type, bytes) {
  switch (type) {
    case MessageType.JSON: return JSON.parse(native.utf8Decode(bytes));
    case MessageType.TEXT: return native.utf8Decode(bytes);
    case MessageType.BYTES: return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    default: return deserialize(bytes.slice());
  }
}

let verdictOf, idOf;

/** The body is read when it is asked for: many consumers only look at some. */
class Message {
  #id; // what is told back; `id` is the script's
  #type;
  #bytes; // of the whole batch; null once read
  #offset;
  #end;
  #body;
  #timestamp;
  #verdict = 0; // the first of ack() and retry() counts
  #delay = -1;
  constructor(key, id, sent, attempts, type, bytes, offset, end, body) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#body = body;
    this.#id = id;
    this.id = id;
    this.attempts = attempts;
    this.#timestamp = sent;
    this.#type = type;
    this.#bytes = bytes;
    this.#offset = offset;
    this.#end = end;
  }
  get timestamp() {
    return typeof this.#timestamp === "number" ? (this.#timestamp = new Date(this.#timestamp)) : this.#timestamp;
  }
  get body() {
    if (this.#bytes !== null) {
      this.#body = decode(this.#type, this.#bytes.subarray(this.#offset, this.#end));
      this.#bytes = null;
    }
    return this.#body;
  }
  ack() {
    if (this.#verdict === 0) this.#verdict = ACK;
  }
  retry(options) {
    const delay = delayOf(options, -1);
    if (this.#verdict !== 0) return;
    this.#verdict = RETRY;
    this.#delay = delay;
  }
  static {
    verdictOf = (message) => ({ verdict: message.#verdict, delay: message.#delay });
    idOf = (message) => message.#id;
  }
}
finishInterface(Message);

let batchVerdict, messagesOf;

/** `messages` is an array for the script, which may shift() or sort it: verdicts are read from one of our own. */
class MessageBatch {
  #messages;
  #verdict = 0; // the first of ackAll() and retryAll() counts, for those not settled alone
  #delay = -1;
  constructor(key, queue, messages, metrics) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.queue = queue;
    this.#messages = messages;
    this.messages = messages.map((message) => message);
    this.metadata = { metrics: metricsOf(metrics) };
  }
  ackAll() {
    if (this.#verdict === 0) this.#verdict = ACK;
  }
  retryAll(options) {
    const delay = delayOf(options, -1);
    if (this.#verdict !== 0) return;
    this.#verdict = RETRY;
    this.#delay = delay;
  }
  static {
    batchVerdict = (batch) => ({ verdict: batch.#verdict, delay: batch.#delay });
    messagesOf = (batch) => batch.#messages;
  }
}
finishInterface(MessageBatch);

/** A batch that a service binding's queue() brings; `messages` have their bodies. */
export function makeBatch(queue, messages, metrics) {
  const list = messages.map(({ id, timestamp, attempts, body }) => new Message(token, id, timestamp, attempts, MessageType.V8, null, 0, 0, body));
  const { backlogCount = 0, backlogBytes = 0, oldestMessageTimestamp = 0 } = metrics ?? {};
  return new MessageBatch(token, queue, list, [backlogCount, backlogBytes, +oldestMessageTimestamp]);
}

const retryOf = (delay) => (delay < 0 ? {} : { delaySeconds: delay });
export const emptyResult = () => ({ ackAll: false, retryBatch: { retry: false }, explicitAcks: [], retryMessages: [] });

/** What the handler has said about it, for the caller. */
export function batchResult(batch) {
  const result = emptyResult();
  const all = batchVerdict(batch);
  result.ackAll = all.verdict === ACK;
  if (all.verdict === RETRY) result.retryBatch = { retry: true, ...retryOf(all.delay) };
  messagesOf(batch).forEach((message) => {
    const { verdict, delay } = verdictOf(message);
    if (verdict === ACK) result.explicitAcks.push(idOf(message));
    else if (verdict === RETRY) result.retryMessages.push({ msgId: idOf(message), ...retryOf(delay) });
  });
  return result;
}

/** As src/background/consumers.c writes it. */
function unpack(bytes) {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const { queue, metrics, since, ids, numbers } = JSON.parse(native.utf8Decode(bytes.subarray(4, 4 + size)));
  let offset = 4 + size;
  const list = [];
  for (let i = 0; i < numbers.length; i += 4) {
    const end = offset + numbers[i + 3];
    const id = ids.slice(i * (ID_LENGTH / 4), (i + 4) * (ID_LENGTH / 4));
    list.push(new Message(token, id, since + numbers[i], numbers[i + 1], numbers[i + 2], bytes, offset, end));
    offset = end;
  }
  return new MessageBatch(token, queue, list, metrics);
}

const VERDICT_BYTES = 5; // as src/background/consumers.c reads them

/** what was said about a message itself, then about the batch, then how the handler ended. */
function verdicts(batch, failed) {
  const messages = messagesOf(batch), all = batchVerdict(batch);
  const bytes = new Uint8Array(messages.length * VERDICT_BYTES);
  for (let i = 0, at = 0; i < messages.length; i++, at += VERDICT_BYTES) {
    let { verdict, delay } = verdictOf(messages[i]);
    if (verdict === 0) ({ verdict, delay } = all);
    if (verdict === 0) verdict = failed ? RETRY : ACK;
    if (verdict !== RETRY) continue;
    bytes[at] = 1;
    for (let k = 0; k < 4; k++) bytes[at + 1 + k] = delay >> (8 * k);
  }
  return bytes;
}

/**
 * Without the flag queue_consumer_no_wait_for_wait_until, what a handler gives to waitUntil() is part of it: verdicts are read when all
 * of it has settled, and a promise that is rejected is a handler that has failed.
 */
export const settledOf = (context) => (compatibilityFlags.has("queue_consumer_no_wait_for_wait_until") ? undefined : contextSettled(context));

/** The event "queue": bytes of C in, bytes for C out. */
export async function handleQueue(entry, bytes, context) {
  const batch = unpack(bytes);
  let failed = false;
  if (currentTrace() !== 0) trace().noteQueue(batch.queue, messagesOf(batch).length);
  try {
    await entry.handle("queue", batch);
  } catch (error) {
    failed = true;
    if (currentTrace() !== 0) trace().noteFailure(error);
    native.log(4, describeError(error));
  }
  try {
    await settledOf(context);
  } catch {
    failed = true; // it was logged when it was rejected
  }
  return verdicts(batch, failed);
}
