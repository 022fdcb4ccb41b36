import { bucketOf, BUCKETS, quantileMs } from './latency-histogram.js';

/** A window is this many slots, and loses the oldest one when a new one begins. */
export const SLOTS = 10;
const P95 = 0.95;

class Slot {
  calls = 0;
  failures = 0;
  readonly latencies = new Uint32Array(BUCKETS);
}

/**
 * How the calls of the last while went. Memory is bounded whatever comes: slots of counters, and their sums.
 * Adding costs no allocation.
 */
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

  /** 0 to 1; 0 without any call. */
  failureShare(nowMs: number): number {
    this.#moveTo(nowMs);
    return this.#sum.calls === 0 ? 0 : this.#sum.failures / this.#sum.calls;
  }

  /** At least as much as the true one, and at most a fifth more; 0 without any call. */
  p95Ms(nowMs: number): number {
    this.#moveTo(nowMs);
    return quantileMs(this.#sum.latencies, this.#sum.calls, P95);
  }

  /** Over the part of the window that this one has seen, a slot at least. */
  callsPerSecond(nowMs: number): number {
    this.#moveTo(nowMs);
    const fromMs = Math.max(this.#sinceMs, (this.#newest - SLOTS + 1) * this.#slotMs);
    return (1000 * this.#sum.calls) / Math.max(this.#slotMs, nowMs - fromMs);
  }

  /** A clock that goes back stays in the newest slot. */
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
