/** Full takes of one run: a backlog is worked off in one go, but not for ever. */
const TAKES_MAX = 20;

/**
 * Takes what is due, `max` at a time, and works on each take at once, until there is no more.
 * @param lease gives up to `max` that are due, to us alone for a while
 * @throws whatever `handle` threw first in a take, when all of the take are done
 */
export async function workOff<T>(
  lease: () => Promise<readonly T[]>,
  handle: (due: T) => Promise<void>,
  max: number,
): Promise<void> {
  for (let takes = 1; takes <= TAKES_MAX; takes++) {
    const due = await lease();
    const results = await Promise.allSettled(due.map(handle));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    if (due.length < max) return;
  }
}
