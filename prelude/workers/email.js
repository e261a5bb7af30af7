// `cloudflare:email`: https://developers.cloudflare.com/email-routing/email-workers/runtime-api/
import { finishInterface } from "../internal/interface.js";
import { isReadableStream } from "../web/streams/internal.js";

/** A message with its envelope: what a binding of `send_email` sends. */
export class EmailMessage {
  #from;
  #to;
  #raw;
  constructor(from, to, raw) {
    if (arguments.length < 3) throw new TypeError("EmailMessage takes a sender, a recipient and the message");
    if (typeof raw !== "string" && !isReadableStream(raw))
      throw new TypeError("The message of an EmailMessage is a string or a ReadableStream");
    this.#from = `${from}`;
    this.#to = to === null || to === undefined ? null : `${to}`; // of a binding that has its one destination
    this.#raw = raw;
  }
  get from() {
    return this.#from;
  }
  get to() {
    return this.#to;
  }
  /** The message as it was given; null of what is no EmailMessage. */
  static raw(message) {
    return #raw in message ? message.#raw : null;
  }
}
export const rawOf = EmailMessage.raw;
delete EmailMessage.raw;
finishInterface(EmailMessage);
