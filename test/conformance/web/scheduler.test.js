// scheduler: https://developers.cloudflare.com/workers/runtime-apis/scheduler/
import { test, assert, assertEquals, assertRejects } from "../harness.js";

test("scheduler.wait()", async () => {
  const start = Date.now();
  assertEquals(await scheduler.wait(12), undefined);
  assert(Date.now() - start >= 10);
  await assertRejects("AbortError", scheduler.wait(1000, { signal: AbortSignal.abort() }));
  await assertRejects("TimeoutError", scheduler.wait(1000, { signal: AbortSignal.timeout(5) }));
});
