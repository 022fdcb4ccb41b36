import type { Metadata } from './metadata.js';

/** The largest quantity one purchase may ask for; far above any sensible limit per buyer, far below INT overflow. */
export const QUANTITY_MAX = 1000;

/** What a buyer asked for once. Its identity is (userId, saleId, requestId); the sale is that of its batch. */
export interface Purchase {
  /** From the token, never from the body. */
  readonly userId: string;
  /** The caller's Idempotency-Key; unique per buyer and sale. */
  readonly requestId: string;
  /** Units, 1 to QUANTITY_MAX. */
  readonly quantity: number;
  /** Not part of its identity: of a key that comes again the first one counts. Absent where the caller noted nothing. */
  readonly metadata?: Metadata;
  /** By which it is found; not part of its identity either. Absent where none is to be stored. */
  readonly traceId?: string;
}

/** The name of a purchase inside its sale: the field of the `requests` hash, by which duplicates are found. */
export const purchaseKey = (purchase: { readonly userId: string; readonly requestId: string }): string =>
  `${purchase.userId}/${purchase.requestId}`;

/** The name of a purchase among those of all sales; compensation jobs are stored under it. */
export const requestName = (
  saleId: string,
  purchase: { readonly userId: string; readonly requestId: string },
): string => `${saleId}/${purchaseKey(purchase)}`;

/** The user of a key, as `purchaseKey` makes it, and the request: a user id may hold slashes, a request id cannot. */
export function splitPurchaseKey(key: string): { readonly userId: string; readonly requestId: string } {
  const slash = key.lastIndexOf('/');
  return { userId: key.slice(0, Math.max(0, slash)), requestId: key.slice(slash + 1) };
}

export const isQuantity = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= QUANTITY_MAX;

/** The identity of a purchase; requestId, the caller's Idempotency-Key, is unique per buyer and sale only. */
export interface RequestRef {
  readonly userId: string;
  readonly saleId: string;
  readonly requestId: string;
}
