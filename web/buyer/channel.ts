/**
 * How a page learns what becomes of its purchase, from the best way to the plainest. Proxies may cut a stream or hold it back,
 * and the api refuses one when it has too many; a long poll is answered at once where too many wait.
 */
type Channel = 'stream' | 'long_poll' | 'poll';

/**
 * How one try to listen ended.
 * - `worked`: it said something, or was open for as long as it should
 * - `cut`: it ended before
 * - `refused`: the server, or nobody, answered otherwise
 * - `silent`: it was open, and not even its heartbeat came
 */
export type Listened = 'worked' | 'cut' | 'refused' | 'silent';

export interface Listening {
  readonly channel: Channel;
  /** Tries in a row that did not work. */
  readonly faults: number;
  /** Tries in a row that worked. */
  readonly good: number;
}

export const LISTENING: Listening = { channel: 'stream', faults: 0, good: 0 };

/** So many faults are borne before the next way is tried. */
const FAULTS_MAX: Readonly<Record<Channel, number>> = { stream: 2, long_poll: 3, poll: Infinity };
const NEXT: Readonly<Record<Channel, Channel>> = { stream: 'long_poll', long_poll: 'poll', poll: 'poll' };
/** After so many good tries of a plainer way the best one is tried again. */
const GOOD_MAX = 12;

export function afterListening({ channel, faults, good }: Listening, listened: Listened): Listening {
  if (listened === 'worked') {
    const isTime = channel !== 'stream' && good + 1 >= GOOD_MAX;
    return isTime ? LISTENING : { channel, faults: 0, good: good + 1 };
  }
  // A stream that is held back or refused will be so again, and the buyer is waiting.
  const count = channel === 'stream' && listened !== 'cut' ? FAULTS_MAX.stream : faults + 1;
  if (count < FAULTS_MAX[channel]) return { channel, faults: count, good: 0 };
  return { channel: NEXT[channel], faults: NEXT[channel] === channel ? count : 0, good: 0 };
}

/** Heartbeats come every 15 s, or as the api is configured, at most 30 s; two may be lost. */
export const SILENT_MS = 70_000;
/** Held by the server, in seconds; proxies cut longer ones. */
export const LONG_POLL_SECONDS = 25;

/**
 * How long to wait before listening again, ms, from and to.
 * @param retryMs as a stream has asked; null: it has not
 * @param isPending whether the order is still to come, and the buyer looks at nothing else
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
