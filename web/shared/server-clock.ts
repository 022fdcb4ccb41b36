/**
 * The server's clock, as far as a page can know it: how far it is ahead of the browser's monotonic clock, in ms. Each
 * answer that names the time bounds this offset on both sides, because the server read the time after the request left
 * and before the answer came. Several answers together narrow the bounds. The browser's wall clock plays no part.
 */
export interface ServerClock {
  readonly aheadMinMs: number;
  readonly aheadMaxMs: number;
  /** When the bounds were determined, on the browser's clock, ms. */
  readonly atMs: number;
  /**
   * True if the browser may have slept since, so that its clock may have stood still. Then only the next answer counts.
   */
  readonly isSuspect: boolean;
}

/**
 * An answer that names the time. The last three values are moments on the browser's monotonic clock, or durations, in
 * ms.
 */
export interface TimeSample {
  /** Unix time, whole ms. */
  readonly serverMs: number;
  readonly sentMs: number;
  readonly receivedMs: number;
  /** How long caches may have kept the answer. */
  readonly keptMs: number;
}

/** Upper limit for the drift between the two clocks: a quartz clock is off by 100 millionths at worst. */
const DRIFT = 200e-6;

export function learnTime(known: ServerClock | null, sample: TimeSample): ServerClock {
  const { serverMs, sentMs, receivedMs, keptMs } = sample;
  const alone: ServerClock = {
    aheadMinMs: serverMs - receivedMs,
    aheadMaxMs: serverMs + 1 - sentMs + keptMs,
    atMs: receivedMs,
    isSuspect: false,
  };
  if (known === null || known.isSuspect) return alone;
  const driftMs = Math.max(0, receivedMs - known.atMs) * DRIFT;
  const aheadMinMs = Math.max(alone.aheadMinMs, known.aheadMinMs - driftMs);
  const aheadMaxMs = Math.min(alone.aheadMaxMs, known.aheadMaxMs + driftMs);
  return aheadMinMs <= aheadMaxMs ? { ...alone, aheadMinMs, aheadMaxMs } : alone; // no overlap: a clock was set
}

export const suspectTime = (known: ServerClock | null): ServerClock | null => known && { ...known, isSuspect: true };

/**
 * Position of the estimate between the bounds. It tends to be late rather than early: the request of the first answer
 * also had to open the connection, and a click that comes too early costs a second.
 */
const BETWEEN = 1 / 4;

/** Returns the Unix time on the server, ms, at a moment of the browser's clock. */
export const serverTimeMs = ({ aheadMinMs, aheadMaxMs }: ServerClock, monotonicMs: number): number =>
  monotonicMs + aheadMinMs + (aheadMaxMs - aheadMinMs) * BETWEEN;

/** Returns the maximum error of `serverTimeMs`, ms. */
export const clockErrorMs = ({ aheadMinMs, aheadMaxMs }: ServerClock): number =>
  (aheadMaxMs - aheadMinMs) * (1 - BETWEEN);

/** A moment on both clocks of a browser, ms. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Longer than a timer is delayed in a busy browser. A user who sets the clock also triggers a new reading. */
const STEP_MS = 1000;

/**
 * Returns whether the two clocks of the browser have diverged, because the browser slept while one of them stood still,
 * or the wall clock was set.
 */
export const clocksParted = (before: Moment, now: Moment): boolean =>
  Math.abs(now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs)) > STEP_MS;
