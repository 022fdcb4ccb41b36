import { randomBytes } from 'node:crypto';
import type { ReconcileRuns, SaleLease } from '../../core/ports/reconcile-runs.js';

/** Renewed with each page. */
const SALE_LEASE_MS = 60_000;

type Taken = Extract<SaleLease, { readonly outcome: 'taken' }>;
export type LeaseTaken = Taken & { readonly saleId: string };

class LeaseLost extends Error {
  readonly lease: Taken;

  constructor(lease: Taken) {
    super('another run is reconciling the sale now');
    this.lease = lease;
  }
}

/** @param work calls `keepLease` each minute, which throws after a takeover. @throws OperationalError mysql */
export async function withSaleLease<T>(
  saleId: string,
  actor: string,
  runs: ReconcileRuns,
  work: (keepLease: () => Promise<void>) => Promise<T>,
): Promise<T | LeaseTaken> {
  const owner = `${actor.slice(0, 64)}-${randomBytes(6).toString('hex')}`;
  const keepLease = async (): Promise<void> => {
    const lease = await runs.lease(saleId, owner, SALE_LEASE_MS);
    if (lease.outcome === 'taken') throw new LeaseLost(lease);
  };
  try {
    await keepLease();
    try {
      return await work(keepLease);
    } finally {
      await runs.free(saleId, owner);
    }
  } catch (error) {
    if (error instanceof LeaseLost) return { ...error.lease, saleId };
    throw error;
  }
}
