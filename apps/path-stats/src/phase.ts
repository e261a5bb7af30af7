// The change-over from the old way (PathCollector objects count, and answer) to the new one (queue, D1), in phases that can be
// gone back: docs/phases.md.
//
//   phase   written        read     ?source=
//   0       old            old      do
//   1, 2    old and new    old      do, d1        compared every minute
//   3       old and new    new      do, d1        compared every minute
//   4, 5    new            new      d1            the old way's endpoints answer 410
import type { Env } from "./env";

export interface Phase {
  phase: number;
  /** Since when both ways are written: what is compared. */
  since: number | null;
}

const KEY = "pipeline:phase";
const KNOWN_FOR_MS = 2_000;
export const PHASE_LAST = 5;

let known: { value: Phase; at: number } | null = null;

/** What is stored. Whoever changes, shows or compares asks here: what a worker remembers may be the phase before. */
export async function storedPhase(env: Env): Promise<Phase> {
  return (await env.KV.get<Phase>(KEY, "json")) ?? { phase: Number(env.PHASE), since: null };
}

/** What a request goes by: the stored phase, as it was at most KNOWN_FOR_MS ago. */
export async function currentPhase(env: Env): Promise<Phase> {
  if (known && Date.now() - known.at < KNOWN_FOR_MS) return known.value;
  const at = Date.now(); // from here on it may change
  const value = await storedPhase(env);
  known = { value, at };
  return value;
}

export const writesOld = ({ phase }: Phase): boolean => phase <= 3;
export const writesNew = ({ phase }: Phase): boolean => phase >= 1;
export const writesBoth = (phase: Phase): boolean => writesOld(phase) && writesNew(phase);
export const readsOld = ({ phase }: Phase): boolean => phase <= 2;

/** Sets the phase. When both ways begin to be written, the old one begins to count anew, from a moment that both know. */
export async function setPhase(env: Env, phase: number, resetOld: (since: number) => Promise<void>): Promise<Phase> {
  const before = await storedPhase(env);
  const value: Phase = { phase, since: before.since };
  if (writesBoth(value) && !(writesBoth(before) && before.since)) {
    // Workers learn of the phase within KNOWN_FOR_MS; from then on every request is written both ways.
    value.since = Date.now() + 2 * KNOWN_FOR_MS;
    await resetOld(value.since);
  }
  if (!writesBoth(value)) value.since = null;
  await env.KV.put(KEY, JSON.stringify(value));
  known = null;
  return value;
}
