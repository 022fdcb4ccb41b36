/** Takes how to close a part that was just opened. */
export type Opened = (close: () => Promise<unknown>) => void;

/**
 * Opens several parts. When one fails, those that are open are closed, the last first: an app that goes on without us must not keep
 * their connections.
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
