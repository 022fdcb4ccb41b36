import { purchaseKey, requestName } from './purchase.js';

/**
 * Differences between Redis and MySQL in a sale.
 * - `leak`: Redis holds units for a request that has no row and will get none, because its batch is neither in the
 *   re-drive nor parked
 * - `overdue`: batches in the re-drive that no worker has recorded for far too long
 * - `not_loaded`: a sale that may have sold, of which Redis lacks or may have lost a part; its repair is due
 * - `oversell`: more was sold, or counts as sold, than exists; or the last guard had to refuse purchases
 * - `miscount`: `sales.sold` differs from the live rows, or the units of the buyers in Redis from their requests
 * - `drift`: units that are neither left in Redis nor counted for a buyer there, or both
 * - `not_marked`: the order is live, but its request is still `held` in Redis
 * - `unreleased`: the row has ended, but Redis still keeps its units
 * - `order_lost`: Redis says `ordered` without a row; or `released`, because the request had become an order or a late
 *   batch found no units for it. An operator resolves it
 * - `unheld`: the order is live, but Redis holds nothing for it
 * - `stale_marker`: markers of a closed sale that no check-back can need
 * - `stuck_outbox`: an outbox row that is old or was tried too often, but is not done
 */
export const FINDING_KINDS = [
  'leak',
  'overdue',
  'not_loaded',
  'oversell',
  'miscount',
  'drift',
  'not_marked',
  'unreleased',
  'order_lost',
  'unheld',
  'stale_marker',
  'stuck_outbox',
] as const;
export type FindingKind = (typeof FINDING_KINDS)[number];

/** The kinds that a compensation job can repair. The other kinds are reported to people. */
export const COMPENSATED_KINDS = [
  'leak',
  'not_marked',
  'unreleased',
  'drift',
  'stale_marker',
  'stuck_outbox',
] as const satisfies readonly FindingKind[];
export type CompensatedKind = (typeof COMPENSATED_KINDS)[number];

export const isCompensated = (kind: FindingKind): kind is CompensatedKind =>
  COMPENSATED_KINDS.some((known) => known === kind);

/** A request that differs between Redis and MySQL. */
interface RequestFinding {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
  /** The batch that holds its units, or the batch that wrote its row. */
  readonly batchId: string | null;
  readonly quantity: number;
}

export type SaleFinding =
  | (RequestFinding & { readonly kind: 'leak' | 'not_marked' | 'unreleased' | 'order_lost' | 'unheld' })
  /** `why` is for people. `units`: beyond the stock, of refused purchases, or the surplus of a miscount. */
  | { readonly kind: 'oversell' | 'miscount'; readonly saleId: string; readonly units: number; readonly why: string }
  | { readonly kind: 'not_loaded'; readonly saleId: string }
  /** `oldestMs` is the time since the oldest batch was deducted, on the clock of Redis. */
  | { readonly kind: 'overdue'; readonly saleId: string; readonly requests: number; readonly oldestMs: number }
  /** Stock in MySQL, minus units left, minus units counted for buyers. Negative if Redis has too many. */
  | { readonly kind: 'drift'; readonly saleId: string; readonly units: number }
  | { readonly kind: 'stale_marker'; readonly saleId: string; readonly markers: number }
  | {
      readonly kind: 'stuck_outbox';
      readonly saleId: string;
      readonly outboxId: string;
      readonly attempts: number;
      /** Time since the transaction, ms on the clock of MySQL. */
      readonly ageMs: number;
    };

/** At most one job per kind and subject. */
export function subjectOf(finding: SaleFinding): string {
  if ('requestId' in finding) return requestName(finding.saleId, finding);
  if (finding.kind === 'stuck_outbox') return `${finding.saleId}/outbox/${finding.outboxId}`;
  return finding.saleId;
}

export function describeFinding(finding: SaleFinding): string {
  switch (finding.kind) {
    case 'leak':
      return `${finding.quantity} units are held for ${purchaseKey(finding)} by batch ${finding.batchId}, but there is no order`;
    case 'not_marked':
      return `${purchaseKey(finding)} is an order, but Redis still has it as held`;
    case 'unreleased':
      return `the order of ${purchaseKey(finding)} has ended, but Redis still holds ${finding.quantity} units`;
    case 'order_lost':
      return finding.batchId === null
        ? `Redis says that ${purchaseKey(finding)} became an order, but MySQL has no order`
        : `batch ${finding.batchId} found no units for ${purchaseKey(finding)}, but MySQL has no failed order`;
    case 'unheld':
      return `${purchaseKey(finding)} is an order, but Redis holds nothing for it`;
    case 'oversell':
    case 'miscount':
      return finding.why;
    case 'not_loaded':
      return 'Redis does not have this sale, or may have lost part of it. The keeper repairs it';
    case 'overdue':
      return `${finding.requests} accepted purchases are not recorded; the oldest has waited ${Math.round(finding.oldestMs / 1000)} s`;
    case 'drift':
      return finding.units > 0
        ? `${finding.units} units are neither in the stock nor with a buyer`
        : `Redis has ${-finding.units} units that the sale does not have`;
    case 'stale_marker':
      return `${finding.markers} markers of a closed sale are no longer needed`;
    case 'stuck_outbox':
      return `outbox row ${finding.outboxId} is not done after ${finding.attempts} attempts and ${Math.round(finding.ageMs / 1000)} s`;
  }
}
