// The event "scheduled": https://developers.cloudflare.com/workers/runtime-apis/handlers/scheduled/
import { currentTrace } from "../internal/turn.js";
import { native } from "../internal/native.js";
import { finishInterface } from "../internal/interface.js";
import trace from "part:../internal/trace.js";

const token = Symbol("construct");

let refusesRetry;

class ScheduledController {
  #noRetry = false;
  constructor(key, cron, scheduledTime) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.cron = cron;
    this.scheduledTime = scheduledTime;
  }
  get type() {
    return "scheduled";
  }
  /** A run that fails is not repeated anyway; a service binding's caller is told. */
  noRetry() {
    this.#noRetry = true;
  }
  static {
    refusesRetry = (controller) => controller.#noRetry;
  }
}
finishInterface(ScheduledController);

/** For a service binding's scheduled(): what the handler is shown, and whether it has said noRetry(). */
export function makeScheduled(cron, scheduledTime) {
  const shown = new ScheduledController(token, cron, scheduledTime);
  return { shown, refusesRetry: () => refusesRetry(shown) };
}

export async function handleScheduled(entry, bytes) {
  const { cron, scheduledTime } = JSON.parse(native.utf8Decode(bytes));
  if (currentTrace() !== 0) trace().noteScheduled(cron, scheduledTime);
  await entry.handle("scheduled", new ScheduledController(token, cron, scheduledTime));
  return new Uint8Array(0);
}
