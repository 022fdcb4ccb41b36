import type { Sale } from '../../core/sale.js';
import type { ReconcileStore } from '../../core/ports/reconcile-store.js';
import { measureDrift, type DriftPorts, type SaleUnits } from './measure-drift.js';

export interface HeldPorts extends DriftPorts {
  readonly store: DriftPorts['store'] & Pick<ReconcileStore, 'requests'>;
}

/** Counted so often before a difference is believed. */
const COUNTS = 2;

/**
 * Holds the units of the buyers against the requests that hold them (I4). Drift is worked out from the buyers: where the
 * two differ, somebody has damaged one of them, and neither says what the stock should be.
 * @returns units that the buyers have too many, 0 when they agree; null when units moved while they were counted
 * @throws OperationalError
 */
export async function buyersTooMany(
  sale: Sale,
  ports: HeldPorts,
  limits: { readonly safeAgeMs: number },
  onPage: () => Promise<void> = () => Promise.resolve(),
): Promise<number | null> {
  let told: number | null = null;
  for (let counted = 0; counted < COUNTS; counted++) {
    const before = await measureDrift(sale, ports, limits);
    const held = await countHeld(sale, ports, onPage);
    const after = await measureDrift(sale, ports, limits);
    if (before === null || after === null || !stoodStill(before, after)) return null;
    const tooMany = after.unitsOfBuyers - held;
    if (tooMany === 0) return 0;
    if (told !== null && told !== tooMany) return null;
    told = tooMany;
  }
  return told;
}

/** Whether no unit has moved between the two. */
export function stoodStill(before: SaleUnits, after: SaleUnits): boolean {
  return (
    before.unitsOfBuyers === after.unitsOfBuyers &&
    before.buckets.every((unitsLeft, bucket) => unitsLeft === after.buckets[bucket])
  );
}

async function countHeld(sale: Sale, { store }: HeldPorts, onPage: () => Promise<void>): Promise<number> {
  let held = 0;
  for (let bucket = 0; bucket < sale.buckets; bucket++) {
    const units = new Map<string, number>(); // a request may come twice
    for await (const page of store.requests({ saleId: sale.saleId, bucket })) {
      for (const [key, { state, quantity }] of page) units.set(key, state === 'released' ? 0 : quantity);
      await onPage();
    }
    for (const quantity of units.values()) held += quantity;
  }
  return held;
}
