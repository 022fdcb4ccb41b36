/** Maximum number of full takes in one run. A run works off a whole backlog, but it must end. */
const TAKES_MAX = 20;

/**
 * Takes due items, at most `max` at a time, and works on all items of a take at once, until no item is left. The next
 * take follows when half of the items are done, so that a few items that wait for a hanging server do not delay all
 * others.
 * @param lease returns up to `max` due items, leased to us for a while
 * @throws the first error of `handle`, once all taken items are done; no more are taken
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
