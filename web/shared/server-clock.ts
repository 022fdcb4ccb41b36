/**
 * The clock of the server, as far as a page can know it: how far it is ahead of the monotonic clock of the browser, in ms. Each
 * answer that names the time is a bound on both sides, since that time was read after the request left and before the answer
 * came. What several answers say holds together; whatever the wall clock of the browser says plays no part.
 */
export interface ServerClock {
  readonly aheadMinMs: number;
  readonly aheadMaxMs: number;
  /** When that was known, on the browser's clock, ms. */
  readonly atMs: number;
  /** The browser may have slept since, and its clock may have stood still: the next answer counts alone. */
  readonly isSuspect: boolean;
}

/** An answer that names the time. The last three are of the monotonic clock of the browser, or lengths, in ms. */
export interface TimeSample {
  /** Unix time, whole ms. */
  readonly serverMs: number;
  readonly sentMs: number;
  readonly receivedMs: number;
  /** How long caches may have kept it. */
  readonly keptMs: number;
}

/** The two clocks may part by so much: a quartz clock is off by 100 millionths at worst. */
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
  return aheadMinMs <= aheadMaxMs ? { ...alone, aheadMinMs, aheadMaxMs } : alone; // one of the clocks was set
}

export const suspectTime = (known: ServerClock | null): ServerClock | null => known && { ...known, isSuspect: true };

/** Rather late than early: the first answer took its time on the way there, with the connection; and a click that comes too early costs a second. */
const BETWEEN = 1 / 4;

/** Unix time on the server, ms, at a moment of the browser's clock. */
export const serverTimeMs = ({ aheadMinMs, aheadMaxMs }: ServerClock, monotonicMs: number): number =>
  monotonicMs + aheadMinMs + (aheadMaxMs - aheadMinMs) * BETWEEN;

/** How far the truth may be from `serverTimeMs`, ms. */
export const clockErrorMs = ({ aheadMinMs, aheadMaxMs }: ServerClock): number =>
  (aheadMaxMs - aheadMinMs) * (1 - BETWEEN);

/** A moment on both clocks of a browser, ms. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** More than a busy browser lets a timer be late; a user who sets the clock is worth a new look, too. */
const STEP_MS = 1000;

/** Whether the two clocks of the browser have parted: it slept, and one stood still, or the wall clock was set. */
export const clocksParted = (before: Moment, now: Moment): boolean =>
  Math.abs(now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs)) > STEP_MS;
