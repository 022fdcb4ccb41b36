/** Maximum number of full takes per run: a run works off a backlog, but it must end. */
const TAKES_MAX = 20;

/**
 * Works off due items, at most `max` at a time. The next take follows when half of the items are done, so items that
 * wait for a hanging server delay few others.
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
