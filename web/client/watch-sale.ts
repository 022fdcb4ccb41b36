import { sleep } from './send.js';
import type { Answer, SaleRead } from './types.js';

/** Used for an answer that does not say how long to wait. */
const POLL_AFTER_MS = 10_000;

/** @param read must retry by itself */
export async function* watchSale(
  read: () => Promise<Answer<SaleRead>>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Answer<SaleRead>, void, undefined> {
  for (;;) {
    const answer = await read();
    yield answer;
    const { pollAfterMs } = (answer.ok ? answer.body : null) ?? {};
    const waitMs = answer.ok ? pollAfterMs : answer.retryAfterMs;
    await sleep((typeof waitMs === 'number' ? waitMs : POLL_AFTER_MS) * (1 + Math.random() / 2), signal);
    await untilVisible(signal);
    signal?.throwIfAborted();
  }
}

/** Resolves at once outside a browser, and when the signal aborts. */
function untilVisible(signal: AbortSignal | undefined): Promise<void> {
  const { document: page } = globalThis as { readonly document?: EventTarget & { readonly visibilityState: string } };
  return new Promise((resolve) => {
    const look = (): void => {
      if (page?.visibilityState === 'hidden' && signal?.aborted !== true) return;
      page?.removeEventListener('visibilitychange', look);
      signal?.removeEventListener('abort', look);
      resolve();
    };
    page?.addEventListener('visibilitychange', look);
    signal?.addEventListener('abort', look);
    look();
  });
}
