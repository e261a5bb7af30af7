// The event "scheduled": https://developers.cloudflare.com/workers/runtime-apis/handlers/scheduled/
import { native } from "../internal/native.js";
import { finishInterface } from "../internal/interface.js";

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
  await entry.handle("scheduled", new ScheduledController(token, cron, scheduledTime));
  return new Uint8Array(0);
}
