// What the fuzzers in JavaScript share: numbers from a seed, mutations, a loop for so many seconds.
// They run in build/jsrun, with the prelude and nothing else. Parsers that are written in JavaScript
// cannot break memory; what is looked for are wrong exceptions, endless loops and broken promises.
import { deserialize, serialize } from "../../../prelude/internal/serialize.js";

export { deserialize, serialize };

/** xorshift32: the same seed gives the same run. */
export class Random {
  constructor(seed) {
    this.state = seed >>> 0 || 1;
  }
  below(n) {
    let s = this.state;
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    this.state = s >>> 0;
    return this.state % n;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
}

/** Runs `once(random)` until the time is over; a failure is printed with the seed that gives it. */
export function fuzz(name, once) {
  const seconds = globalThis.__seconds ?? 2;
  const first = globalThis.__seed ?? (Math.random() * 2 ** 32) >>> 0;
  const end = __native.monotonicTime() + seconds * 1000;
  let runs = 0;
  for (; __native.monotonicTime() < end; runs++) {
    const seed = (first + runs * 2654435761) >>> 0;
    try {
      once(new Random(seed));
    } catch (error) {
      __native.log(3, `${name}: seed ${seed}: ${error}\n${error.stack}`);
      throw error;
    }
  }
  __native.log(1, `${name}: ${runs} runs, first seed ${first}`);
}

export function check(condition, message) {
  if (!condition) throw new Error(message);
}
