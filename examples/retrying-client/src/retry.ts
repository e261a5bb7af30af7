// Calls of objects that are tried again where that may help, and only there.
//
//   .retryable    the object was reset, moved or restarted under the call: try again, with pauses that double, and a new stub
//   .overloaded   more waits for it than it can take: trying again at once makes it worse. Say so to whoever asked (503, Retry-After)
//   neither       the call's own error: trying again would give the same
//
// A call that failed may have done its work before: what is tried again must do no harm when it is done twice.
const TRIES_MOST = 5;
const FIRST_MS = 100;
const MOST_MS = 5_000;

export interface ObjectError extends Error {
  retryable?: boolean;
  overloaded?: boolean;
}

/** The pause after so many attempts: up to 100, 200, 400, … ms, at random, so that those who failed together do not come back together. */
export const backOff = (attempt: number, random = Math.random()): number => Math.min(MOST_MS, FIRST_MS * 2 ** (attempt - 1)) * (0.5 + random / 2);

export interface Outcome<T> {
  value: T;
  attempts: number;
}

/** `call` gets its stub itself, so that every attempt has a new one. */
export async function withRetries<T>(call: () => Promise<T>): Promise<Outcome<T>> {
  for (let attempts = 1; ; attempts++) {
    try {
      return { value: await call(), attempts };
    } catch (error) {
      const { retryable, overloaded } = error as ObjectError;
      if (overloaded || !retryable || attempts === TRIES_MOST) throw error;
      await scheduler.wait(backOff(attempts));
    }
  }
}
