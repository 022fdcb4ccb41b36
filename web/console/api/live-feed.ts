import { pause } from '../../../src/core/after.js';
import { backOffMs } from '../../client/back-off.js';
import { EventStreamReader, type StreamedEvent } from '../../client/event-stream.js';
import type { LiveStore } from '../logic/live-store.js';
import { ApiError, apiErrorOf } from './api-error.js';
import type { Snapshot } from './types.js';

/** A stream that lasted this long counts as good: the pauses after it start short again. */
const GOOD_AFTER_MS = 10_000;
/**
 * Snapshots come every second. A stream that is silent for this long counts as dead, even if the network looks fine.
 */
const SILENT_MAX_MS = 8_000;

/** The part of the API that is used here. */
export interface Streams {
  events(path: string, call: { readonly signal: AbortSignal }, parser: EventStreamReader): AsyncIterable<StreamedEvent>;
}

/**
 * Follows `GET /admin/v1/live` until the signal aborts. There is a pause after every stream, even after a normal end,
 * because an API process that stops ends the streams of all consoles at the same moment. Never rejects.
 * @param network its event `online` means that an attempt is worthwhile
 */
export async function followLive(
  api: Streams,
  store: LiveStore,
  network: EventTarget,
  signal: AbortSignal,
): Promise<void> {
  let tries = 0;
  while (!signal.aborted) {
    const beganMs = performance.now();
    store.connecting();
    const { why, retryMs } = await readStream(api, store, signal);
    if (signal.aborted) return;
    tries = performance.now() - beganMs > GOOD_AFTER_MS ? 1 : tries + 1;
    if (why !== null) store.lost(why);
    await pauseUntilOnline(backOffMs(tries, retryMs, Math.random()), signal, network);
  }
}

/**
 * @returns why the stream failed, or null if it ended normally, and the wait that the API asks for, ms, or null if it
 * asks for none
 */
async function readStream(
  api: Streams,
  store: LiveStore,
  signal: AbortSignal,
): Promise<{ readonly why: ApiError | null; readonly retryMs: number | null }> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENT_MAX_MS);
  const parser = new EventStreamReader();
  const ended = (why: ApiError | null) => ({ why, retryMs: parser.retryMs });
  let snapshots = 0;
  try {
    const call = { signal: AbortSignal.any([signal, silence.signal]) };
    for await (const { event, data } of api.events('/admin/v1/live', call, parser)) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MAX_MS);
      if (event !== 'snapshot') continue;
      store.take(JSON.parse(data) as Snapshot, performance.now());
      snapshots++;
    }
    return ended(snapshots > 0 ? null : new ApiError(0, 'unreachable', 'the stream ended before its first snapshot'));
  } catch (error) {
    return ended(apiErrorOf(error));
  } finally {
    clearTimeout(timer);
  }
}

/** Ends early when the network comes back, or the signal aborts. */
async function pauseUntilOnline(ms: number, signal: AbortSignal, network: EventTarget): Promise<void> {
  const online = new AbortController();
  const wake = (): void => online.abort();
  network.addEventListener('online', wake);
  await pause(ms, AbortSignal.any([signal, online.signal]));
  network.removeEventListener('online', wake);
}
