import { OperationalError } from '../core/errors.js';
import type { Clock } from '../core/ports/clock.js';
import type { WorkerSlotLease, WorkerSlots } from '../core/ports/worker-slots.js';
import type { MysqlPool, Transaction } from './pool.js';

/**
 * A slot is given to somebody else only this long after its lease ran out: two clocks that differ by less can't mint
 * the same id. (A larger difference ends at the primary key: equal ids are refused there and minted again.)
 */
const GRACE_MS = 5000;

interface SlotRow {
  readonly slot: number;
}

/** Slots for order ids, leased on database time. */
export function createWorkerSlots(pool: MysqlPool, clock: Clock): WorkerSlots {
  return {
    async acquire(owner, leaseMs): Promise<WorkerSlotLease> {
      const askedAtMs = clock.nowMs(); // before the database's own clock starts the lease, so we never overstay it
      const slot = await pool.transaction((tx) => take(tx, owner, leaseMs));
      return { slot, validUntilMs: askedAtMs + leaseMs };
    },

    async free(owner): Promise<void> {
      await pool.execute('UPDATE worker_slots SET owner = NULL, leased_until = UTC_TIMESTAMP(3) WHERE owner = ?', [
        owner,
      ]);
    },
  };
}

async function take(tx: Transaction, owner: string, leaseMs: number): Promise<number> {
  const [mine] = await tx.query<SlotRow>('SELECT slot FROM worker_slots WHERE owner = ? FOR UPDATE', [owner]);
  const slot = mine ?? (await oldestFree(tx));
  if (slot === undefined) {
    throw new OperationalError('mysql', 'all 256 worker slots are taken', { retryable: true });
  }
  await tx.execute(
    'UPDATE worker_slots SET owner = ?, leased_until = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND WHERE slot = ?',
    [owner, leaseMs * 1000, slot.slot],
  );
  return slot.slot;
}

/** The longest unused slot, so that a slot rests as long as it can. Others that are being taken are passed over. */
async function oldestFree(tx: Transaction): Promise<SlotRow | undefined> {
  const [free] = await tx.query<SlotRow>(
    'SELECT slot FROM worker_slots WHERE leased_until < UTC_TIMESTAMP(3) - INTERVAL ? MICROSECOND' +
      ' ORDER BY leased_until, slot LIMIT 1 FOR UPDATE SKIP LOCKED',
    [GRACE_MS * 1000],
  );
  return free;
}
