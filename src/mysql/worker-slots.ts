import { slotsOfCell } from '../core/cell.js';
import { OperationalError } from '../core/errors.js';
import type { WorkerSlotLease, WorkerSlots } from '../core/ports/order-repository.js';
import { execute, inMs, knex, msAgo, now, select, WAIT_SLACK_MS } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';
import type { WorkerSlotRow } from './tables.js';

/** Rest of a slot after its lease, because clocks differ. Beyond it, the primary key refuses equal ids. */
const GRACE_MS = 5000;
/** A worker of an earlier release may be configured for an hour. */
const LEASE_MAX_MS = 3_600_000;

/** Leased on the time of the database. @param cell 0 if there are no cells */
export function createWorkerSlots(pool: MysqlPool, cell = 0): WorkerSlots {
  return {
    acquire: (owner, leaseMs): Promise<WorkerSlotLease> => pool.transaction((tx) => take(tx, cell, owner, leaseMs)),

    async free(owner): Promise<void> {
      await execute(pool, knex('worker_slots').where({ owner }).update({ owner: null, leased_until: now() }));
    },
  };
}

async function take(tx: Transaction, cell: number, owner: string, leaseMs: number): Promise<WorkerSlotLease> {
  const [own] = await select(tx, columns('owner').where({ owner }).forUpdate());
  const taken = own ?? (await longestFree(tx, slotsOfCell(cell)));
  if (taken === undefined) {
    throw new OperationalError('mysql', 'all order-id slots are taken', { retryable: true });
  }
  const { slot } = taken;
  await execute(
    tx,
    knex('worker_slots')
      .where({ slot })
      .update({ owner, leased_until: inMs(leaseMs) }),
  );
  const nowMs = taken.found_at.getTime();
  const restedSinceMs = own === undefined ? Math.min(taken.leased_until.getTime(), nowMs) : 0;
  return { slot, restedSinceMs, nowMs };
}

type FoundSlot = Pick<WorkerSlotRow, 'slot' | 'leased_until'> & { readonly found_at: Date };

const columns = (index: 'owner' | 'leased') =>
  knex
    .from(knex.raw('worker_slots FORCE INDEX (??)', [index]))
    .select<FoundSlot[]>('slot', 'leased_until', knex.raw('UTC_TIMESTAMP(3) AS found_at'));

/**
 * Takes the slot that has been free for the longest time. Slots with leases in the future come last. The index avoids a
 * sort, which would lock all slots.
 */
async function longestFree(tx: Transaction, slots: [number, number]): Promise<FoundSlot | undefined> {
  const [free] = await select(
    tx,
    columns('leased')
      .whereBetween('slot', slots)
      .where((free) => {
        void free
          .where('leased_until', '<', msAgo(GRACE_MS))
          .orWhere('leased_until', '>', inMs(LEASE_MAX_MS + WAIT_SLACK_MS));
      })
      .orderBy(['leased_until', 'slot'])
      .limit(1)
      .forUpdate()
      .skipLocked(),
  );
  return free;
}
