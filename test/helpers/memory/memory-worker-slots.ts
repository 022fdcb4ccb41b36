import { OperationalError } from '../../../src/core/errors.js';
import { WORKER_SLOTS } from '../../../src/core/order-id.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { WorkerSlotLease, WorkerSlots } from '../../../src/core/ports/order-repository.js';

/** A slot is given to another owner only this long after its lease has ended. */
export const SLOT_GRACE_MS = 5000;

/** Slots in memory, leased on the injected clock. */
export class MemoryWorkerSlots implements WorkerSlots {
  readonly #clock: Clock;
  /** Slots that were ever taken. */
  readonly #slots: { owner: string | null; untilMs: number }[] = [];
  /** While true, every call fails. */
  broken = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async acquire(owner: string, leaseMs: number): Promise<WorkerSlotLease> {
    this.#failIfBroken();
    const nowMs = this.#clock.nowMs();
    let slot = this.#slots.findIndex((one) => one.owner === owner);
    if (slot < 0) slot = this.#slots.findIndex((one) => one.untilMs + SLOT_GRACE_MS < nowMs);
    if (slot < 0 && this.#slots.length < WORKER_SLOTS) slot = this.#slots.length;
    if (slot < 0) throw new OperationalError('mysql', 'all 256 order-id slots are taken', { retryable: true });
    const before = this.#slots[slot];
    const restedSinceMs = before === undefined || before.owner === owner ? 0 : before.untilMs;
    this.#slots[slot] = { owner, untilMs: nowMs + leaseMs };
    return { slot, restedSinceMs, nowMs };
  }

  async free(owner: string): Promise<void> {
    this.#failIfBroken();
    for (const one of this.#slots)
      if (one.owner === owner) Object.assign(one, { owner: null, untilMs: this.#clock.nowMs() });
  }

  #failIfBroken(): void {
    if (this.broken) throw new OperationalError('mysql', 'fault of the test', { retryable: true });
  }
}
