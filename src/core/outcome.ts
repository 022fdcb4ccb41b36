import { assertNever } from './errors.js';
import type { OrderState } from './order.js';

/** The entry of a request in Redis. A `held` request has no order id yet. */
export type RequestEntry =
  | { readonly state: 'held'; readonly batchId: string; readonly quantity: number }
  | { readonly state: 'ordered' | 'released'; readonly orderId: string; readonly quantity: number };

/** `lost-<batchId>` replaces the order id in an entry that `reacquire` has closed, because its row is written later. */
const LOST = 'lost-';

/** Returns the batch that will write the row of an entry. Null if the row existed before the entry. */
export function batchOfEntry(entry: RequestEntry): string | null {
  if (entry.state === 'held') return entry.batchId;
  return entry.orderId.startsWith(LOST) ? entry.orderId.slice(LOST.length) : null;
}

/** Reasons for a refusal. The Lua script, the api and the `code` of the HTTP body use the same word. */
export const REFUSALS = [
  'request_conflict',
  'not_found',
  'loading',
  'not_open',
  'closed',
  'paused',
  'sold_out',
  'not_enough_left',
  'limit_reached',
  'refused_by_store',
  'rate_limited',
  'overloaded',
  'unavailable',
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** The answer of a script for a purchase that it refuses now or that was accepted before. */
export type StoreAnswer =
  | { readonly outcome: 'replayed'; readonly entry: RequestEntry }
  | {
      readonly outcome: Extract<
        Refusal,
        'request_conflict' | 'loading' | 'not_open' | 'closed' | 'paused' | 'sold_out' | 'limit_reached'
      >;
    };

/**
 * - `accepted`: units are held for this buyer and will become an order of this batch
 * - `replayed`: the same key was accepted before; with the current state of that purchase
 * - `outcome_unknown`: units may or may not be held, perhaps by this batch; a repeat with the same key tells
 * - a refusal: this attempt will not lead to an order
 */
export type PurchaseOutcome =
  | { readonly outcome: 'accepted'; readonly batchId?: string }
  | { readonly outcome: 'replayed'; readonly entry: RequestEntry }
  | { readonly outcome: 'outcome_unknown'; readonly batchId?: string }
  | { readonly outcome: Refusal };

/** The answer to a buyer that polls. A poll gets it as `status`, a purchase call as `outcome`. */
export type PurchaseStatus =
  | { readonly status: 'pending' }
  | { readonly status: 'ordered'; readonly orderId: string; readonly orderState: OrderState }
  | { readonly status: 'failed'; readonly orderId: string; readonly reason: string }
  | { readonly status: 'not_found' };

/** Reads `held:<batchId>:<qty>`, `ordered:<orderId>:<qty>` or `released:<orderId or lost-batchId>:<qty>`. */
export function parseRequestEntry(text: string): RequestEntry | null {
  const [, state, id = '', quantity] = /^(held|ordered|released):([^:]+):([1-9]\d*)$/.exec(text) ?? [];
  if (state === 'held') return { state, batchId: id, quantity: Number(quantity) };
  if (state === 'ordered' || state === 'released') return { state, orderId: id, quantity: Number(quantity) };
  return null;
}

export function formatRequestEntry(entry: RequestEntry): string {
  switch (entry.state) {
    case 'held':
      return `held:${entry.batchId}:${entry.quantity}`;
    case 'ordered':
    case 'released':
      return `${entry.state}:${entry.orderId}:${entry.quantity}`;
    default:
      return assertNever(entry);
  }
}
