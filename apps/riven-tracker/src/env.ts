import type { RivenCoordinatorDO } from "./coordinator";

export interface Env {
  COORDINATOR: DurableObjectNamespace<RivenCoordinatorDO>;
  DB: D1Database;
  KV: KVNamespace;
  MARKET_URL: string;
  PLATFORM: string;
  TICK_SECONDS: number;
  SNAPSHOT_SECONDS: number;
  MARKET_TIMEOUT_MS: number;
  MARKET_TRIES: number;
  /** Secret: who may change lists or sample by hand. Without it nobody may. */
  ADMIN_TOKEN?: string;
}

export const coordinatorOf = (env: Env): DurableObjectStub<RivenCoordinatorDO> => env.COORDINATOR.getByName(env.PLATFORM);
export const snapshotKey = (platform: string): string => `riven:latest:${platform}`;
