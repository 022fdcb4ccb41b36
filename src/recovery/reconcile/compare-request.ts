import { isLive, type OrderState } from '../../core/order.js';
import type { RequestEntry } from '../../core/outcome.js';
import type { FindingKind } from '../../core/sale-finding.js';

export type RequestKind = Extract<FindingKind, 'leak' | 'order_lost' | 'unsettled' | 'unreleased' | 'unheld'>;

/**
 * The one rule by which the two books are held against each other, request by request (I3, I5): whoever is let in has a
 * row, a live row is `ordered`, an ended one is `released`. A sale at rest and a live one are judged by it alike.
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
