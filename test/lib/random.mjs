/** Numbers from 0 to 1 at random, the same for the same seed: mulberry32. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The seed of a run: CAIRN_TEST_SEED, which `make test` fixes; otherwise another each time. Whoever takes it prints it. */
export const seedOfRun = () => Number(process.env.CAIRN_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
