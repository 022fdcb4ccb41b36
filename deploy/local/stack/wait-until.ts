import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly everyMs: number;
  /** Ends the wait early; the wait then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Asks again and again until the answer is yes.
 * @param check resolves true to end the wait; what it throws is fatal and ends it too
 * @returns false when the time is up
 */
export async function waitUntil(check: () => boolean | Promise<boolean>, options: WaitOptions): Promise<boolean> {
  const endsAtMs = performance.now() + options.timeoutMs;
  while (true) {
    options.signal?.throwIfAborted();
    if (await check()) return true;
    if (performance.now() >= endsAtMs) return false;
    await sleep(options.everyMs);
  }
}
