import { isLive, type OrderState } from '../../core/order.js';
import type { RequestEntry } from '../../core/outcome.js';
import type { FindingKind } from '../../core/sale-finding.js';

export type RequestKind = Extract<FindingKind, 'leak' | 'order_lost' | 'not_marked' | 'unreleased' | 'unheld'>;

/**
 * The one rule for comparing Redis and MySQL request by request (I3, I5): each accepted request has a row; with a live
 * row its entry is `ordered`, with an ended row `released`. It holds for a sale at rest and for a sale that sells.
 * @param entry the entry in Redis, or null if Redis does not know the request
 * @param row the row in MySQL, or undefined if there is no row
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
    return entry.state === 'ordered' ? 'match' : 'not_marked';
  }
  return entry === null || entry.state === 'released' ? 'match' : 'unreleased';
}
