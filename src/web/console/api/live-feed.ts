import { backOffMs } from '../logic/back-off.js';
import type { LiveStore } from '../logic/live-store.js';
import { ApiError } from './api-error.js';
import type { Api } from './client.js';
import type { Snapshot } from './types.js';

/** A stream that lasted so long was a good one: the next failure is the first again. */
const GOOD_AFTER_MS = 10_000;
/** Snapshots come every second; a stream that is silent for so long is dead, whatever the network says. */
const SILENT_MAX_MS = 8_000;

/** Follows `GET /admin/v1/live` until the signal aborts, over and over. Never rejects. */
export async function followLive(api: Api, store: LiveStore, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    const beganMs = performance.now();
    store.connecting();
    const why = await readStream(api, store, signal);
    if (signal.aborted) return;
    if (why === null) {
      failures = 0; // it ended as streams do, and another one is opened at once
      continue;
    }
    failures = performance.now() - beganMs > GOOD_AFTER_MS ? 1 : failures + 1;
    store.lost(why);
    await pause(backOffMs(failures, Math.random()), signal);
  }
}

/** @returns why it failed; null: it came to its end */
async function readStream(api: Api, store: LiveStore, signal: AbortSignal): Promise<ApiError | null> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MAX_MS);
  let snapshots = 0;
  try {
    for await (const { event, data } of api.events('/admin/v1/live', {
      signal: AbortSignal.any([signal, silence.signal]),
    })) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MAX_MS);
      if (event !== 'snapshot') continue;
      store.take(JSON.parse(data) as Snapshot, performance.now());
      snapshots++;
    }
    return snapshots > 0 ? null : new ApiError(0, 'unreachable', 'the stream ended before its first snapshot');
  } catch (error) {
    return error instanceof ApiError ? error : new ApiError(0, 'unreachable', String(error));
  } finally {
    clearTimeout(timer);
  }
}

/** Ends early when the network comes back, or the signal aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      removeEventListener('online', end);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener('online', end);
    signal.addEventListener('abort', end);
  });
}
