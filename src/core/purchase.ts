import type { Metadata } from './metadata.js';

/** Maximum quantity of one purchase: far above any sensible limit per buyer, and far below the overflow of INT. */
export const QUANTITY_MAX = 1000;

/** Identifies a purchase inside its sale. */
export interface PurchaseName {
  /** User id from the token, never from the body. */
  readonly userId: string;
  /** The caller's Idempotency-Key, unique per buyer and sale. */
  readonly requestId: string;
}

/** A purchase request of a buyer. Its identity is (userId, saleId, requestId); the batch has the saleId. */
export interface Purchase extends PurchaseName {
  /** Units, 1 to QUANTITY_MAX. */
  readonly quantity: number;
  /** Not part of the identity: the first of equal requests counts. Absent if the caller attached no note. */
  readonly metadata?: Metadata;
  /** Trace id by which the purchase can be found. Not part of the identity. Absent if no trace id is to be stored. */
  readonly traceId?: string;
}

/** Returns the name within a sale, which is the field of the `requests` hash that detects duplicates. */
export const purchaseKey = (purchase: PurchaseName): string => `${purchase.userId}/${purchase.requestId}`;

/** Returns the name of a purchase across all sales. Compensation jobs are stored under it. */
export const requestName = (saleId: string, purchase: PurchaseName): string => `${saleId}/${purchaseKey(purchase)}`;

/** Splits a key of `purchaseKey` into user and request. A user id may hold slashes, a request id cannot. */
export function splitPurchaseKey(key: string): PurchaseName {
  const slash = key.lastIndexOf('/');
  return { userId: key.slice(0, Math.max(0, slash)), requestId: key.slice(slash + 1) };
}

export const isQuantity = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= QUANTITY_MAX;

/** The identity of a purchase. `requestId`, the caller's Idempotency-Key, is unique only per buyer and sale. */
export interface RequestRef {
  readonly userId: string;
  readonly saleId: string;
  readonly requestId: string;
}
