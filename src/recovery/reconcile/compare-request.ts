import { isLive, type OrderState } from '../../core/order.js';
import type { RequestEntry } from '../../core/outcome.js';
import type { FindingKind } from '../../core/sale-finding.js';

export type RequestKind = Extract<FindingKind, 'leak' | 'order_lost' | 'unsettled' | 'unreleased' | 'unheld'>;

/**
 * The one rule for comparing Redis and MySQL request by request (I3, I5): each accepted request has a row; with a live
 * row its entry is `ordered`, with an ended one `released`. It holds for a sale at rest and for one that sells.
 * @param entry what Redis says; null: it does not know the request
 * @param row what MySQL says; undefined: there is no row
 */
export function compareRequest(
  entry: RequestEntry | null,
  row: { readonly state: OrderState } | undefined,
): RequestKind | 'match' {
  if (row === undefined) {
    if (entry === null) return 'match';
    return entry.state === 'held' ? 'leak' : 'order_lost';
  }
  if (isLive(row.state)) {
    if (entry === null || entry.state === 'released') return 'unheld';
    return entry.state === 'ordered' ? 'match' : 'unsettled';
  }
  return entry === null || entry.state === 'released' ? 'match' : 'unreleased';
}
