import { OperationalError } from '../core/errors.js';
import { composeOrderId, SEQUENCE_PER_MS } from '../core/order-id.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { WorkerSlotLease, WorkerSlots } from '../core/ports/order-repository.js';

export interface OrderIdMinterOptions {
  /** Unique per process; names the lease. */
  readonly owner: string;
  /** How long a slot stays ours without a renewal, ms. */
  readonly leaseMs: number;
}

/**
 * - `minted`: one id per user, in order, never given before by this slot
 * - `refused`: no id may be minted now; the same call may work after about `waitMs`
 */
export type MintOutcome =
  | { readonly outcome: 'minted'; readonly orderIds: readonly string[] }
  | { readonly outcome: 'refused'; readonly reason: 'no_lease' | 'clock_behind'; readonly waitMs: number };

export interface OrderIdMinter {
  /** Mints one id per user id. Never throws, never waits. */
  mint(userIds: readonly string[]): MintOutcome;
  /**
   * Takes a slot, or keeps it for another `leaseMs`. To be called every third of `leaseMs`, also while it fails.
   * @throws OperationalError mysql; the lease we have goes on until it ends
   */
  renew(): Promise<void>;
  /** Gives the slot back; from now on nothing is minted. Never rejects: a lease left behind ends by itself. */
  close(): Promise<void>;
}

/**
 * How far ahead of the clock a call may start. A transaction of 4,096 rows uses up 16 ms at once, and the next one goes
 * on behind it; so a clock that NTP sets back by less than this is not noticed.
 */
const AHEAD_MAX_MS = 100;
/** How long a caller should wait for a lease: it is renewed at its own pace. */
const LEASE_WAIT_MS = 250;

/**
 * Mints order ids (layout: src/core/order-id.ts) under a leased worker slot; refuses when clock or lease do not allow
 * it (D8).
 */
export function createOrderIdMinter(
  { slots, clock, log }: { readonly slots: WorkerSlots; readonly clock: Clock; readonly log: Log },
  { owner, leaseMs }: OrderIdMinterOptions,
): OrderIdMinter {
  let lease: WorkerSlotLease | null = null;
  let closed = false;
  // The last millisecond used and how many ids it gave. It only grows, whatever the clock does.
  let lastMs = 0;
  let used = 0;

  function refusal(nowMs: number, lastNeededMs: number): MintOutcome | null {
    if (closed || lease === null || lastNeededMs >= lease.validUntilMs) {
      return { outcome: 'refused', reason: 'no_lease', waitMs: LEASE_WAIT_MS };
    }
    const aheadMs = lastMs - nowMs;
    if (aheadMs > AHEAD_MAX_MS) return { outcome: 'refused', reason: 'clock_behind', waitMs: aheadMs - AHEAD_MAX_MS };
    return null;
  }

  return {
    mint(userIds): MintOutcome {
      const nowMs = Math.floor(clock.nowMs());
      if (nowMs > lastMs) {
        lastMs = nowMs;
        used = 0;
      }
      const lastNeededMs = lastMs + Math.floor(Math.max(0, used + userIds.length - 1) / SEQUENCE_PER_MS);
      const refused = refusal(nowMs, lastNeededMs);
      if (refused !== null || lease === null) return refused as MintOutcome;
      const orderIds: string[] = [];
      for (const userId of userIds) {
        if (used === SEQUENCE_PER_MS) {
          lastMs++;
          used = 0;
        }
        orderIds.push(composeOrderId(lastMs, lease.slot, userId, used++));
      }
      return { outcome: 'minted', orderIds };
    },

    async renew(): Promise<void> {
      const next = await slots.acquire(owner, leaseMs);
      if (closed) return;
      if (lease !== null && lease.slot !== next.slot) {
        log.warn({ from: lease.slot, to: next.slot }, 'the lease of the worker slot had ended, another slot is used');
      }
      lease = next;
    },

    async close(): Promise<void> {
      closed = true;
      if (lease === null) return;
      try {
        await slots.free(owner);
      } catch (error) {
        if (!(error instanceof OperationalError)) throw error;
        log.warn({ error: error.message }, 'the worker slot was not given back, its lease ends by itself');
      }
    },
  };
}
