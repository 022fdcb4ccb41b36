/**
 * For a promise about time on a machine that may be busy: one measurement can be late by chance, and a product that is late is so each
 * time.
 * @param measure one try, on things of its own, in ms
 * @returns the first time that keeps the promise, else the last one
 */
export async function timeOfTries(promisedMs: number, measure: () => Promise<number>, tries = 3): Promise<number> {
  let tookMs = Infinity;
  for (let left = tries; left > 0 && tookMs >= promisedMs; left--) tookMs = await measure();
  return tookMs;
}
