/** Upper edge of the first bucket. Edges grow by 2^(1/4), so a quantile is at most 1.19 times too high. */
const FIRST_EDGE_MS = 0.25;
const PER_OCTAVE = 4;
/** The buckets cover 0.25 ms to 65 s. Slower calls count in the last bucket. */
const OCTAVES = 18;

export const BUCKETS = OCTAVES * PER_OCTAVE + 1;
export const LAST_EDGE_MS = FIRST_EDGE_MS * 2 ** OCTAVES;

export const bucketOf = (latencyMs: number): number => {
  if (!(latencyMs > FIRST_EDGE_MS)) return 0;
  return Math.min(BUCKETS - 1, Math.ceil(PER_OCTAVE * Math.log2(latencyMs / FIRST_EDGE_MS)));
};

/** @returns upper edge of the quantile's bucket, ms; 0 without calls */
export function quantileMs(counts: Uint32Array, calls: number, quantile: number): number {
  if (calls === 0) return 0;
  const rank = Math.ceil(quantile * calls);
  let seen = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    seen += counts[bucket] as number;
    if (seen >= rank) return FIRST_EDGE_MS * 2 ** (bucket / PER_OCTAVE);
  }
  return LAST_EDGE_MS;
}

/** Number of slots in a window. When a new slot begins, the oldest is dropped. */
export const SLOTS = 10;
const P95 = 0.95;

class Slot {
  calls = 0;
  failures = 0;
  readonly latencies = new Uint32Array(BUCKETS);
}

/** Counts the calls of the last `windowMs`, per slot and in total. Memory is bounded; adding allocates nothing. */
export class CallWindow {
  readonly windowMs: number;
  readonly #slotMs: number;
  readonly #slots = Array.from({ length: SLOTS }, () => new Slot());
  readonly #sum = new Slot();
  readonly #sinceMs: number;
  /** Number of the newest slot, counted from time zero. */
  #newest: number;

  constructor(windowMs: number, nowMs: number) {
    this.windowMs = windowMs;
    this.#slotMs = windowMs / SLOTS;
    this.#sinceMs = nowMs;
    this.#newest = Math.floor(nowMs / this.#slotMs);
  }

  add(nowMs: number, failed: boolean, latencyMs: number): void {
    this.#moveTo(nowMs);
    const bucket = bucketOf(latencyMs);
    for (const slot of [this.#slots[this.#newest % SLOTS] as Slot, this.#sum]) {
      slot.calls++;
      if (failed) slot.failures++;
      slot.latencies[bucket] = (slot.latencies[bucket] as number) + 1;
    }
  }

  calls(nowMs: number): number {
    this.#moveTo(nowMs);
    return this.#sum.calls;
  }

  /** Returns the fraction of failed calls, 0 to 1. 0 if there are no calls. */
  failureShare(nowMs: number): number {
    this.#moveTo(nowMs);
    return this.#sum.calls === 0 ? 0 : this.#sum.failures / this.#sum.calls;
  }

  /** Returns the 95th percentile, never too low and at most a fifth too high. 0 if there are no calls. */
  p95Ms(nowMs: number): number {
    this.#moveTo(nowMs);
    return quantileMs(this.#sum.latencies, this.#sum.calls, P95);
  }

  /** Returns the rate over the part of the window that has been counted, at least one slot. */
  callsPerSecond(nowMs: number): number {
    this.#moveTo(nowMs);
    const fromMs = Math.max(this.#sinceMs, (this.#newest - SLOTS + 1) * this.#slotMs);
    return (1000 * this.#sum.calls) / Math.max(this.#slotMs, nowMs - fromMs);
  }

  /** While the clock is set back, the newest slot stays. */
  #moveTo(nowMs: number): void {
    const now = Math.floor(nowMs / this.#slotMs);
    const stale = Math.min(now - this.#newest, SLOTS);
    for (let slot = now - stale + 1; slot <= now; slot++) this.#empty(this.#slots[slot % SLOTS] as Slot);
    if (now > this.#newest) this.#newest = now;
  }

  #empty(slot: Slot): void {
    if (slot.calls === 0) return;
    this.#sum.calls -= slot.calls;
    this.#sum.failures -= slot.failures;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      this.#sum.latencies[bucket] = (this.#sum.latencies[bucket] as number) - (slot.latencies[bucket] as number);
    }
    slot.calls = 0;
    slot.failures = 0;
    slot.latencies.fill(0);
  }
}

const SECOND_MS = 1000;

/**
 * Learns the usual calls per second: an exponentially weighted average over whole seconds, divided by the weight so
 * far, so it is right from the first second on.
 */
export class LearnedRate {
  #sum = 0;
  #weight = 0;
  #learnedMs = 0;
  /** The current second. Calls of earlier seconds are ignored. */
  #second: number;
  #count = 0;

  constructor(nowMs: number) {
    this.#second = nextSecond(nowMs);
  }

  count(nowMs: number, halfLifeMs: number): void {
    this.#learn(nowMs, halfLifeMs);
    if (Math.floor(nowMs / SECOND_MS) === this.#second) this.#count++;
  }

  /** Continues with the next whole second. Omits calls before it. */
  resume(nowMs: number): void {
    this.#second = nextSecond(nowMs);
    this.#count = 0;
  }

  perSecond(nowMs: number, halfLifeMs: number): number {
    this.#learn(nowMs, halfLifeMs);
    return this.#weight === 0 ? 0 : this.#sum / this.#weight;
  }

  /** How much time the average covers. */
  get learnedMs(): number {
    return this.#learnedMs;
  }

  #learn(nowMs: number, halfLifeMs: number): void {
    const ended = Math.floor(nowMs / SECOND_MS) - this.#second;
    if (ended <= 0) return;
    const kept = 0.5 ** (SECOND_MS / halfLifeMs);
    this.#sum = this.#sum * kept + this.#count * (1 - kept);
    this.#weight = this.#weight * kept + (1 - kept);
    const keptOfEmpty = kept ** (ended - 1); // the seconds after that had no calls
    this.#sum *= keptOfEmpty;
    this.#weight = 1 - (1 - this.#weight) * keptOfEmpty;
    this.#learnedMs += ended * SECOND_MS;
    this.#second += ended;
    this.#count = 0;
  }
}

const nextSecond = (nowMs: number): number => Math.floor(nowMs / SECOND_MS) + 1;
