import { app } from "./api";
import type { Env } from "./env";
import { sampleBatch } from "./sample";

export { Coordinator } from "./coordinator";

export default {
  fetch: app.fetch,

  async scheduled(_event, env) {
    for (let batch = 0; batch < env.BATCHES_PER_RUN; batch++) {
      const { sampled, failed } = await sampleBatch(env);
      if (failed) console.warn(`${failed} of ${sampled + failed} weapons could not be sampled`);
      if (sampled + failed === 0) break;
    }
  },
} satisfies ExportedHandler<Env>;
