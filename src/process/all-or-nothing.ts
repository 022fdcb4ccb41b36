/** Receives the function that closes a part which was just opened. */
export type Opened = (close: () => Promise<unknown>) => void;

/**
 * Opens several parts. If one fails, closes the open parts in reverse order, because a host app that continues without
 * us must not keep their connections.
 * @throws what `open` throws
 */
export async function allOrNothing<T>(open: (opened: Opened) => Promise<T>): Promise<T> {
  const closers: (() => Promise<unknown>)[] = [];
  try {
    return await open((close) => void closers.unshift(close));
  } catch (error) {
    for (const close of closers) await close().catch(() => undefined);
    throw error;
  }
}
