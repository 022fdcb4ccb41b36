/**
 * How a page learns the result of its purchase, from the best channel to the simplest. Proxies may cut a stream or hold
 * it back, and the API refuses a stream when too many are open. A long poll is answered at once when too many clients
 * wait.
 */
type Channel = 'stream' | 'long_poll' | 'poll';

/**
 * How an attempt to listen ended.
 * - `worked`: an event came, or the stream was open for as long as it should be
 * - `cut`: the stream ended early
 * - `refused`: the server gave another answer, or none
 * - `silent`: the stream was open, but not even its heartbeat came
 */
export type Listened = 'worked' | 'cut' | 'refused' | 'silent';

export interface Listening {
  readonly channel: Channel;
  /** Failed attempts in a row. */
  readonly faults: number;
  /** Successful attempts in a row. */
  readonly good: number;
}

export const LISTENING: Listening = { channel: 'stream', faults: 0, good: 0 };

/** Number of faults tolerated before the next channel is tried. */
const FAULTS_MAX: Readonly<Record<Channel, number>> = { stream: 2, long_poll: 3, poll: Infinity };
const NEXT: Readonly<Record<Channel, Channel>> = { stream: 'long_poll', long_poll: 'poll', poll: 'poll' };
/** Number of successful attempts with a simpler channel after which the best channel is tried again. */
const GOOD_MAX = 12;

export function afterListening({ channel, faults, good }: Listening, listened: Listened): Listening {
  if (listened === 'worked') {
    const isTime = channel !== 'stream' && good + 1 >= GOOD_MAX;
    return isTime ? LISTENING : { channel, faults: 0, good: good + 1 };
  }
  // A stream that was held back or refused would fail again, and the buyer is waiting.
  const count = channel === 'stream' && listened !== 'cut' ? FAULTS_MAX.stream : faults + 1;
  if (count < FAULTS_MAX[channel]) return { channel, faults: count, good: 0 };
  return { channel: NEXT[channel], faults: NEXT[channel] === channel ? count : 0, good: 0 };
}

/**
 * Silence after which a stream is dead. Heartbeats come every 15 s, or as the API is configured, at most every 30 s.
 * Two heartbeats may be lost.
 */
export const SILENT_MS = 70_000;
/** How long the server holds a poll, in seconds. Proxies cut longer requests. */
export const LONG_POLL_SECONDS = 25;

/**
 * Returns the shortest and the longest wait before listening again, ms.
 * @param retryMs requested by a stream; null if no stream requested a wait
 * @param isPending whether the buyer still waits for the order
 */
export function listenAgainIn(
  { channel, faults }: Listening,
  retryMs: number | null,
  isPending: boolean,
): readonly [fromMs: number, toMs: number] {
  const faultMs = Math.min(8000, 500 * 2 ** faults);
  switch (channel) {
    case 'stream': {
      const leastMs = retryMs ?? 1000;
      return faults === 0 ? [leastMs, leastMs * 1.5] : [Math.max(leastMs, faultMs), Math.max(leastMs, faultMs) * 2];
    }
    case 'long_poll':
      if (!isPending) return [5000, 8000]; // answered at once, since nothing is pending
      return faults === 0 ? [0, 300] : [faultMs, faultMs * 2];
    case 'poll':
      return isPending ? [Math.max(1500, faultMs), Math.max(3000, faultMs * 2)] : [5000, 8000];
  }
}
