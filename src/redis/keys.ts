import type { BucketRef } from '../core/bucket.js';

/**
 * Every key name of the product. The keys of a bucket share a hash tag, so scripts find them in one slot. Ids are
 * checked earlier (src/core/ids.ts) and cannot break a tag. User ids may contain any visible character and are never
 * part of a key.
 */
export interface BucketKeys {
  readonly stock: string;
  readonly sale: string;
  readonly buyers: string;
  readonly requests: string;
  readonly pending: string;
  /** Times until which the re-drive leaves batches alone. An entry expires on its own. */
  readonly redrives: string;
  /** Transfers to other buckets, and the last transfer from each bucket. */
  readonly transfers: string;
  /** The marker of a batch is `tx` + batchId. */
  readonly tx: string;
  /** Requests and buyers that a repair has staged, until `swap` replaces `requests` and `buyers` by them. */
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

// Snapshots share the slot of bucket 0, so a server that is down costs only the snapshots of its own sales.
export const snapshotKey = (saleId: string): string => `sk:card:{${saleId}:0}`;
export const snapshotLockKey = (saleId: string): string => `sk:card:{${saleId}:0}:lock`;

/** Closed sales that a caller needs and the keeper has to rebuild. */
export const REPAIR_ASKS_KEY = 'sk:asked';

/** A key that never exists. In a cluster, each server owns some of these keys. */
export const writeProbeKey = (number: number): string => `sk:probe:{${number}}`;

/** The highest outbox id that was ever leased. */
export const OUTBOX_MARK_KEY = 'sk:mark';

/** Written before each WAIT, and never read. */
export const REPLICA_BARRIER_KEY = 'sk:replicas';

/** The channel for notifications about the orders of a sale. A channel belongs to no slot and no database. */
export const notificationsChannel = (saleId: string): string => `sk:news:${saleId}`;

// The keys of admission belong to no bucket. They share a tag, and therefore a slot.
const ENTRY_TAG = 'sk:{entry}:';
export const RULES_KEY = `${ENTRY_TAG}rules`;
/** The canary beside the rules. The previous release does not read it. */
export const canaryKey = (rulesKey: string): string => `${rulesKey}:canary`;
/** Rules in force: the report of each api, and the list of processes that have a report. */
export const RULE_REPORTERS_KEY = `${ENTRY_TAG}rules:apis`;

/** Counters of the limits. Two generations of subjects take turns; see lua/take-permits-5.lua. */
export const limitKeys = {
  bucket: (endpoint: string): string => `${ENTRY_TAG}bucket:${endpoint}`,
  /** @param windowMs a window of a different length has separate keys */
  window: (endpoint: string, kind: 'ip' | 'user', windowMs: number): readonly [even: string, odd: string] => {
    const name = `${ENTRY_TAG}window:${endpoint}:${kind}:${windowMs}`;
    return [`${name}:even`, `${name}:odd`];
  },
};

/** The state of each process's breakers, and the time until which the state counts. */
export const BREAKER_VOTES_KEY = `${ENTRY_TAG}breakers:votes`;
export const BREAKER_UNTIL_KEY = `${ENTRY_TAG}breakers:until`;

/** Hot sales: the report of each api, and the list of processes that have a report. */
export const HOT_PROCESSES_KEY = `${ENTRY_TAG}hot`;
export const hotReportKey = (processId: string): string => `${ENTRY_TAG}hot:${processId}`;

export const nonceKey = (keyId: string, nonce: string): string => `${ENTRY_TAG}nonce:${keyId}:${nonce}`;
/** The time since when the server has kept every nonce. */
export const NONCES_KEY = `${ENTRY_TAG}nonces`;
/** Purchase tokens of a sale: holders, ends, and the tokens fetched by each address. */
export const purchaseTokenKeys = {
  tokens: (saleId: string): string => `${ENTRY_TAG}tokens:${saleId}`,
  ends: (saleId: string): string => `${ENTRY_TAG}tokens:${saleId}:ends`,
  from: (saleId: string, address: string): string => `${ENTRY_TAG}tokens:${saleId}:from:${address}`,
};

/** The waiting room of a sale: its line, the places of buyers, and their lots. Each room has its own slot. */
export const roomKeys = (saleId: string): readonly [line: string, places: string, lots: string] => {
  const tag = `sk:{room:${saleId}}:`;
  return [`${tag}line`, `${tag}places`, `${tag}lots`];
};

// Data for operators belongs to no bucket. Its keys share a separate tag.
const LIVE_TAG = 'sk:{live}:';
/** Answers in a block of seconds. @param of a sale id, `all`, or `others` (sales that are not counted separately) */
export const answersKey = (block: number, of: string): string => `${LIVE_TAG}answers:${block}:${of}`;
/** The running processes: the report of each process, and the list of processes that have a report. */
export const PROGRAMS_KEY = `${LIVE_TAG}programs`;
