// A binding of `send_email`: https://developers.cloudflare.com/email-service/api/send-emails/workers-api/
//
// Messages go to the mail server of [cairn.email] (email-smtp.js); `cairn dev` without one writes them to a folder and the log.
import { concat } from "../../web/streams/concat.js";
import { finishInterface } from "../../internal/interface.js";
import { native } from "../../internal/native.js";
import { needsEvent } from "../../internal/startup.js";
import { pumpTo } from "../../web/streams/internal.js";
import email from "part:../email.js";
import { EmailError, MESSAGE_BYTES_MAX, build, checkAddress, checkRaw, tooLarge } from "./email-mime.js";
import { sendMail } from "./email-smtp.js";

const token = Symbol("construct");
/** Of one worker on one lane: messages under way, and those that wait for one of them. */
const RUNNING_MAX = 16;
const WAITING_MAX = 256;
let running = 0;
const waiting = [];

async function inTurn(work) {
  if (running >= RUNNING_MAX) {
    if (waiting.length >= WAITING_MAX) throw new EmailError("E_RATE_LIMIT_EXCEEDED", `More than ${WAITING_MAX} messages wait for the mail server`);
    await new Promise((resolve) => waiting.push(resolve)); // whoever ends hands its place over
  } else {
    running++;
  }
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}

async function bytesOf(raw) {
  if (typeof raw === "string") {
    if (raw.length > MESSAGE_BYTES_MAX) throw tooLarge();
    return native.utf8Encode(raw);
  }
  const chunks = [];
  let size = 0;
  await pumpTo(raw, {
    write(chunk) {
      size += chunk.byteLength;
      if (size > MESSAGE_BYTES_MAX) throw tooLarge();
      chunks.push(chunk.slice());
    },
    close() {},
    abort() {},
  });
  return concat(chunks, size);
}

class SendEmail {
  #binding;
  constructor(key, binding) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.#binding = binding;
  }

  #check({ from, to }) {
    const { destination, destinations, senders } = this.#binding;
    if (senders !== undefined && !senders.includes(from)) throw new EmailError("E_SENDER_NOT_VERIFIED", `email from ${from} not allowed`);
    for (const address of to) {
      if ((destination !== undefined && address !== destination) || (destinations !== undefined && !destinations.includes(address))) {
        throw new EmailError("E_RECIPIENT_NOT_ALLOWED", `email to ${address} not allowed`);
      }
    }
  }

  async #messageOf(given, raw) {
    const { destination } = this.#binding;
    if (raw === null) {
      const message = build(given, destination);
      this.#check(message);
      return message;
    }
    const message = { from: checkAddress(given.from, "from"), to: [checkAddress(given.to ?? destination, "to")] };
    this.#check(message);
    message.bytes = await bytesOf(raw);
    if (message.bytes.length > MESSAGE_BYTES_MAX) throw tooLarge();
    message.messageId = checkRaw(message.bytes, message.from);
    return message;
  }

  async send(message) {
    needsEvent();
    if (message === null || typeof message !== "object") throw new TypeError("send() takes an EmailMessage, or an object with the fields of one");
    const { name, server, kept } = this.#binding;
    if (server === undefined && kept !== true) {
      throw new Error(`env.${name} leads nowhere: name a mail server in the configuration, [cairn.email] url = "smtp://..."`);
    }
    const ready = await this.#messageOf(message, email().rawOf(message));
    if (server !== undefined) {
      await inTurn(() => sendMail(server, ready));
    } else {
      const file = native.emailKeep(ready.bytes);
      native.log(1, `env.${name}.send(): from ${ready.from} to ${ready.to.join(", ")}, ${ready.bytes.length} bytes; written to ${file}`);
    }
    return { messageId: ready.messageId };
  }
}
finishInterface(SendEmail);

export const makeBinding = (binding) => new SendEmail(token, binding);
