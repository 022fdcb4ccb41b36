import type { BucketRef } from '../core/bucket.js';

/**
 * Every key name of the product. The keys of a bucket share one hash tag, so that a script finds them in one slot;
 * ids are checked before they get here (src/core/ids.ts), so none can break a tag. User ids, which may hold anything visible,
 * are fields and members only, never part of a key.
 */
export interface BucketKeys {
  readonly stock: string;
  readonly sale: string;
  readonly buyers: string;
  readonly requests: string;
  readonly pending: string;
  /** Until when the re-drive leaves batches alone; expires by itself. */
  readonly redrives: string;
  /** Transfers to other buckets, and the last transfer that came from each. */
  readonly transfers: string;
  /** The marker of one batch is `tx` + batchId. */
  readonly tx: string;
  /** What a repair has staged, until `swap` puts it in the place of `requests` and `buyers`. */
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
    redrives: `${tag}redrives`,
    transfers: `${tag}moves`,
    tx: `${tag}tx:`,
    stagedRequests: `${tag}staged:requests`,
    stagedBuyers: `${tag}staged:buyers`,
  };
}

// In the slot of the first bucket: a server that is away takes the snapshots of its own sales with it, and no others.
export const snapshotKey = (saleId: string): string => `sk:card:{${saleId}:0}`;
export const snapshotLockKey = (saleId: string): string => `sk:card:{${saleId}:0}:lock`;

/** Closed sales that somebody needs and that cannot be trusted: the keeper rebuilds these. */
export const REPAIR_ASKS_KEY = 'sk:asked';

/** Written before each WAIT, and never read. */
export const REPLICA_BARRIER_KEY = 'sk:replicas';

/** The channel for notifications about the orders of a sale. Channels have no slot and no database. */
export const notificationsChannel = (saleId: string): string => `sk:news:${saleId}`;

// The keys of admission belong to no bucket; they share one tag, and so one slot.
const ENTRY_TAG = 'sk:{entry}:';
/** The current rules, read by every process. */
export const RULES_KEY = `${ENTRY_TAG}rules`;
/** Which rules each api follows: its report, and the processes that have one. */
export const RULE_REPORTERS_KEY = `${ENTRY_TAG}rules:apis`;

/** Counters of the limits. Two generations of subjects take turns; see lua/take-permits-5.lua. */
export const limitKeys = {
  bucket: (endpoint: string): string => `${ENTRY_TAG}bucket:${endpoint}`,
  /** @param kind whose requests are counted; a window of another length has keys of its own */
  window: (endpoint: string, kind: 'ip' | 'user', windowMs: number): readonly [even: string, odd: string] => {
    const name = `${ENTRY_TAG}window:${endpoint}:${kind}:${windowMs}`;
    return [`${name}:even`, `${name}:odd`];
  },
};

/** The state of the breakers of each process, and until when it counts. */
export const BREAKER_VOTES_KEY = `${ENTRY_TAG}breakers:votes`;
export const BREAKER_UNTIL_KEY = `${ENTRY_TAG}breakers:until`;

/** Which sales buyers want: the report of each api, and the processes that have one. */
export const HOT_PROCESSES_KEY = `${ENTRY_TAG}hot`;
export const hotReportKey = (processId: string): string => `${ENTRY_TAG}hot:${processId}`;

export const nonceKey = (keyId: string, nonce: string): string => `${ENTRY_TAG}nonce:${keyId}:${nonce}`;
/** Since when its server has forgotten no nonce. */
export const NONCES_KEY = `${ENTRY_TAG}nonces`;
/** The one-time purchase tokens of a sale: who has one, when each ends, and those that one address fetched. */
export const purchaseTokenKeys = {
  tokens: (saleId: string): string => `${ENTRY_TAG}tokens:${saleId}`,
  ends: (saleId: string): string => `${ENTRY_TAG}tokens:${saleId}:ends`,
  from: (saleId: string, address: string): string => `${ENTRY_TAG}tokens:${saleId}:from:${address}`,
};

// What operators watch belongs to no bucket either; its keys share a tag of their own.
const LIVE_TAG = 'sk:{live}:';
/** What buyers heard in a block of seconds. @param of a sale, `all` together, or `others`, which are not counted apart */
export const answersKey = (block: number, of: string): string => `${LIVE_TAG}answers:${block}:${of}`;
/** Which processes run: the report of each, and those that have one. */
export const PROGRAMS_KEY = `${LIVE_TAG}programs`;
