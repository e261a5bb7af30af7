// The event "scheduled": https://developers.cloudflare.com/workers/runtime-apis/handlers/scheduled/
import { currentTrace } from "../internal/turn.js";
import { native } from "../internal/native.js";
import { finishInterface } from "../internal/interface.js";
import trace from "part:../internal/trace.js";

const token = Symbol("construct");

class ScheduledController {
  constructor(key, cron, scheduledTime) {
    if (key !== token) throw new TypeError("Illegal constructor");
    this.cron = cron;
    this.scheduledTime = scheduledTime;
  }
  get type() {
    return "scheduled";
  }
  noRetry() {
    // A run that fails is not repeated anyway.
  }
}
finishInterface(ScheduledController);

export async function handleScheduled(entry, bytes) {
  const { cron, scheduledTime } = JSON.parse(native.utf8Decode(bytes));
  if (currentTrace() !== 0) trace().noteScheduled(cron, scheduledTime);
  await entry.handle("scheduled", new ScheduledController(token, cron, scheduledTime));
  return new Uint8Array(0);
}
