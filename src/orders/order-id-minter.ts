import { OperationalError } from '../core/errors.js';
import { composeOrderId, MINT_BEHIND_MAX_MS, SEQUENCE_PER_MS } from '../core/order-id.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { WorkerSlotLease, WorkerSlots } from '../core/ports/order-repository.js';

/**
 * - `minted`: one id per user, in order, never minted before under this slot
 * - `refused`: no id now; the same call may succeed after about `waitMs`
 */
export type MintOutcome =
  | { readonly outcome: 'minted'; readonly orderIds: readonly string[] }
  | { readonly outcome: 'refused'; readonly reason: 'no_lease' | 'clock_behind'; readonly waitMs: number };
type Refusal = MintOutcome & { readonly outcome: 'refused' };

export interface OrderIdMinter {
  /** Mints one id per user id. Never throws, never waits. */
  mint(userIds: readonly string[]): MintOutcome;
  /** Returns a sentence that says why no id can be minted at present. Null if ids can be minted. */
  problem(): string | null;
  /**
   * Takes a slot, or keeps it for another `leaseMs`. Call it every third of `leaseMs`, even while it fails.
   * @throws OperationalError mysql; the current lease continues until it ends
   */
  renew(): Promise<void>;
  /** Gives the slot back and mints no more. Never rejects: an abandoned lease ends by itself. */
  close(): Promise<void>;
}

/** Maximum lead over the clock when a call starts. 4,096 rows use 16 ms. NTP steps back below this go unnoticed. */
const AHEAD_MAX_MS = 100;
/** Maximum step back of the clock to wait out. After a longer step, another slot has not used those times. */
const WAIT_FOR_CLOCK_MAX_MS = 10_000;
/** How long a caller should wait for a lease, ms. */
const LEASE_WAIT_MS = 250;

interface Lease extends Omit<WorkerSlotLease, 'nowMs'> {
  /** In monotonic ms. */
  readonly untilMs: number;
  /** The lease ends at this time, and another process may get the slot. Ids must be earlier. */
  readonly idsBeforeMs: number;
  /** MySQL's clock minus our monotonic time, ms. */
  readonly mysqlAheadMs: number;
}

/**
 * Mints order ids (layout: src/core/order-id.ts) under a leased worker slot. Refuses if clock or lease do not allow it.
 * @param options `owner` names the lease, unique per process; `leaseMs`: how long a slot is ours without a renewal
 */
export function createOrderIdMinter(
  { slots, clock, log }: { readonly slots: WorkerSlots; readonly clock: Clock; readonly log: Log },
  { owner, leaseMs }: { readonly owner: string; readonly leaseMs: number },
): OrderIdMinter {
  let lease: Lease | null = null;
  let closed = false;
  // The last millisecond used under this slot and its number of ids. Only grows, no matter what the clock does.
  let lastMs = 0;
  let used = 0;
  /** The name of the lease. Each name keeps one slot, so a different slot needs a different name. */
  let name = owner;
  let slotsLeft = 0;
  let renewing: Promise<void> | null = null;

  function refusal(nowMs: number, lastNeededMs: number): Refusal | null {
    if (closed || lease === null || clock.monotonicMs() >= lease.untilMs || lastNeededMs >= lease.idsBeforeMs) {
      return { outcome: 'refused', reason: 'no_lease', waitMs: LEASE_WAIT_MS };
    }
    const behindMs = Math.max(
      lastMs - nowMs - AHEAD_MAX_MS,
      lease.restedSinceMs - nowMs, // times that the previous owner may have used
      lease.mysqlAheadMs + clock.monotonicMs() - nowMs - MINT_BEHIND_MAX_MS,
    );
    return behindMs > 0 ? { outcome: 'refused', reason: 'clock_behind', waitMs: behindMs } : null;
  }

  const isFarBehind = (): boolean => lease !== null && lastMs - clock.nowMs() > WAIT_FOR_CLOCK_MAX_MS;

  async function takeOrKeep(): Promise<void> {
    const leaves = isFarBehind();
    const asked = leaves ? `${owner}-${slotsLeft + 1}` : name;
    const [askedMs, askedAtMs] = [clock.monotonicMs(), clock.nowMs()]; // before MySQL starts the lease, so that it is never overstayed
    const next = await slots.acquire(asked, leaseMs);
    if (closed) return;
    if (leaves) {
      // The lease of the old slot ends by itself, with the times after now unused.
      slotsLeft++;
      name = asked;
      [lastMs, used] = [0, 0];
      log.warn({ from: lease?.slot, to: next.slot }, 'the clock was set back; using another order-id slot');
    } else if (lease !== null && lease.slot !== next.slot) {
      log.warn({ from: lease.slot, to: next.slot }, 'the lease of the order-id slot expired; using another slot');
    }
    lease = {
      slot: next.slot,
      restedSinceMs: next.slot === lease?.slot ? lease.restedSinceMs : next.restedSinceMs,
      untilMs: askedMs + leaseMs,
      idsBeforeMs: askedAtMs + leaseMs,
      mysqlAheadMs: next.nowMs - askedMs,
    };
  }

  const renew = (): Promise<void> => (renewing ??= takeOrKeep().finally(() => (renewing = null)));

  return {
    mint(userIds): MintOutcome {
      const nowMs = Math.floor(clock.nowMs());
      if (nowMs > lastMs) {
        lastMs = nowMs;
        used = 0;
      }
      const lastNeededMs = lastMs + Math.floor(Math.max(0, used + userIds.length - 1) / SEQUENCE_PER_MS);
      const refused = refusal(nowMs, lastNeededMs);
      if (refused !== null || lease === null) {
        if (isFarBehind()) renew().catch((err: unknown) => log.warn({ err }, 'could not claim another order-id slot'));
        return refused as Refusal;
      }
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

    problem(): string | null {
      const nowMs = Math.floor(clock.nowMs());
      const refused = refusal(nowMs, Math.max(nowMs, lastMs));
      if (refused === null) return null;
      if (refused.reason === 'no_lease') return 'this process has no order-id slot; it asks MySQL until a slot is free';
      return `the clock was set back; no order id for another ${Math.ceil(refused.waitMs)} ms. Set the clock of this machine (NTP)`;
    },

    renew,

    async close(): Promise<void> {
      closed = true;
      if (lease === null) return;
      try {
        await slots.free(name);
      } catch (error) {
        if (!(error instanceof OperationalError)) throw error;
        log.warn({ error: error.message }, 'could not release the order-id slot; its lease expires by itself');
      }
    },
  };
}
