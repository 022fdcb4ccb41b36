/** Runs `work` for each item, at most `lanes` at a time, in this order. */
export async function inLanes<T>(
  lanes: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<unknown>,
): Promise<void> {
  const left = items.entries();
  const lane = async (): Promise<void> => {
    for (const [index, item] of left) await work(item, index);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
