/** Full takes of one run: a backlog is worked off in one go, but not for ever. */
const TAKES_MAX = 20;

/**
 * Takes what is due, `max` at a time, and works on each take at once, until there is no more. The next take comes when half of what is
 * under way is done, so that a few which wait for a server that hangs do not hold up all others.
 * @param lease gives up to `max` that are due, to us alone for a while
 * @throws whatever `handle` threw first, when all that were taken are done; nothing more is taken then
 */
export async function workOff<T>(
  lease: () => Promise<readonly T[]>,
  handle: (due: T) => Promise<void>,
  max: number,
): Promise<void> {
  const underWay = new Set<Promise<void>>();
  const errors: unknown[] = [];
  const begin = (due: T): void => {
    const work = handle(due)
      .catch((error: unknown) => void errors.push(error))
      .finally(() => underWay.delete(work));
    underWay.add(work);
  };
  try {
    for (let takes = 1; takes <= TAKES_MAX && errors.length === 0; takes++) {
      const due = await lease();
      due.forEach(begin);
      if (due.length < max) break;
      while (underWay.size > max / 2) await Promise.race(underWay);
    }
  } finally {
    await Promise.all(underWay);
  }
  if (errors.length > 0) throw errors[0];
}
