import type { BucketRef } from '../core/ports/stock-store.js';

/**
 * Every key name of the product. The keys of a bucket share one hash tag, so that a script finds them in one slot;
 * ids are checked before they get here (src/core/ids.ts), so none can break a tag.
 */
export interface BucketKeys {
  readonly stock: string;
  readonly sale: string;
  readonly buyers: string;
  readonly requests: string;
  readonly pending: string;
  /** Units lent to other buckets and borrowed from them. */
  readonly moves: string;
  /** The marker of one batch is `tx` + batchId. */
  readonly tx: string;
  /** The new books of a bucket in repair, until they take the place of the old ones. */
  readonly stagedRequests: string;
  readonly stagedBuyers: string;
}

export function bucketKeys({ saleId, bucket }: BucketRef): BucketKeys {
  const tag = `sk:{${saleId}:${bucket}}:`;
  return {
    stock: `${tag}stock`,
    sale: `${tag}sale`,
    buyers: `${tag}buyers`,
    requests: `${tag}requests`,
    pending: `${tag}pending`,
    moves: `${tag}moves`,
    tx: `${tag}tx:`,
    stagedRequests: `${tag}staged:requests`,
    stagedBuyers: `${tag}staged:buyers`,
  };
}

export const snapshotKey = (saleId: string): string => `sk:card:${saleId}`;
export const snapshotLockKey = (saleId: string): string => `sk:card:${saleId}:lock`;

/** Written before each question to the replicas, and never read. */
export const REPLICA_BARRIER_KEY = 'sk:replicas';

/** The channel that tells how the orders of a sale stand. Channels have no slot and no database. */
export const notificationsChannel = (saleId: string): string => `sk:news:${saleId}`;

// What the entry keeps is about no bucket; its keys share one tag, and so one slot.
const ENTRY_TAG = 'sk:{entry}:';
/** The rules that are in force, for every process to see. */
export const RULES_KEY = `${ENTRY_TAG}rules`;

/** What the limits count. Generations of subjects take turns; see lua/take-permits-5.lua. */
export const limitKeys = {
  bucket: (endpoint: string): string => `${ENTRY_TAG}bucket:${endpoint}`,
  /** @param kind whose visits; a window of another length has keys of its own */
  window: (endpoint: string, kind: 'ip' | 'user', windowMs: number): readonly [even: string, odd: string] => {
    const name = `${ENTRY_TAG}window:${endpoint}:${kind}:${windowMs}`;
    return [`${name}:even`, `${name}:odd`];
  },
};

/** What the breakers of all processes say, and how long it counts. */
export const BREAKER_VOTES_KEY = `${ENTRY_TAG}breakers:votes`;
export const BREAKER_UNTIL_KEY = `${ENTRY_TAG}breakers:until`;

export const nonceKey = (keyId: string, nonce: string): string => `${ENTRY_TAG}nonce:${keyId}:${nonce}`;
/** The one-time purchase tokens of a sale. */
export const purchaseTokensKey = (saleId: string): string => `${ENTRY_TAG}tokens:${saleId}`;
