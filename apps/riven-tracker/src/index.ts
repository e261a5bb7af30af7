import { app } from "./api";
import type { Env } from "./env";
import { sampleBatch } from "./sample";

export { RivenCoordinatorDO } from "./coordinator";

export default {
  fetch: app.fetch,

  async scheduled(_event, env) {
    const { sampled, failed } = await sampleBatch(env);
    if (failed) console.warn(`${failed} of ${sampled + failed} weapons could not be sampled`);
  },
} satisfies ExportedHandler<Env>;
