// Timers of server, page and client. Imports nothing, so every folder may use it.

/** `setTimeout` accepts at most this many ms. With more, it would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * Calls back after `ms`, rounded up, even beyond `setTimeout`'s limit; `Infinity`: never.
 * @returns cancels the timer
 */
export function after(ms: number, callback: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (leftMs: number): void => {
    const nextMs = Math.min(leftMs, TIMER_MAX_MS);
    // `setTimeout` drops the fraction of a millisecond and would fire early.
    timer = setTimeout(() => (leftMs > nextMs ? wait(leftMs - nextMs) : callback()), Math.ceil(nextMs));
  };
  wait(ms);
  return () => clearTimeout(timer);
}

/** Resolves after `ms`, or when the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const wake = (): void => {
      end();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const end = after(ms, wake);
    signal?.addEventListener('abort', wake);
  });
}
