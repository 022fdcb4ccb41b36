import { Bug } from '../core/errors.js';
import { formatRequestEntry } from '../core/outcome.js';
import type { StoredRequest } from '../core/ports/reconcile-store.js';
import type { BucketStatus, RepairStore } from '../core/ports/repair-stores.js';
import type { BucketRef } from '../core/ports/stock-store.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';
import { bodyOf } from './markers.js';
import { requestPages } from './request-pages.js';
import { readBucketStatus } from './standing.js';

/** Buckets asked about at once; a bounded reply, and far below any reply time-out. */
const REFS_PER_PIPELINE = 500;
/** Requests staged by one script call, which takes about 2 ms: other buckets go on selling in between. */
const ENTRIES_PER_CALL = 1000;

/** A bounded reply: a body has some kB, at most 4 MiB. */
const BODIES_PER_CALL = 100;

/** Rebuilds buckets. */
export function createRepairStore({ redis, run }: RedisConnection): RepairStore {
  return {
    async statusOf(refs): Promise<BucketStatus[]> {
      const standings: BucketStatus[] = [];
      for (let start = 0; start < refs.length; start += REFS_PER_PIPELINE) {
        const slice = refs.slice(start, start + REFS_PER_PIPELINE);
        const found = await asOperationalError('look at buckets', () =>
          Promise.all(slice.map((ref) => readBucketStatus(run, ref))),
        );
        standings.push(...found);
      }
      return standings;
    },

    async lock(ref, token, leaseMs, seenEpoch): Promise<'locked' | 'busy' | 'moved'> {
      const { sale, stagedRequests, stagedBuyers } = bucketKeys(ref);
      const args = [token, leaseMs, seenEpoch ?? ''];
      const word = await asOperationalError('locked', () => run('lock', [sale, stagedRequests, stagedBuyers], args));
      return oneOf(['locked', 'busy', 'moved'], 'locked', word);
    },

    requestsWithUnits: (ref) => requestPages(redis, bucketKeys(ref).requests, ({ state }) => state !== 'released'),

    async stage(ref, token, entries): Promise<'staged' | 'superseded'> {
      const { sale, stagedRequests, stagedBuyers } = bucketKeys(ref);
      const keys = [sale, stagedRequests, stagedBuyers];
      let start = 0;
      do {
        const pairs = encodeEntries(entries.slice(start, start + ENTRIES_PER_CALL));
        const word = await asOperationalError('stage', () => run('stage', keys, [token, pairs]));
        if (oneOf(['staged', 'superseded'], 'stage', word) === 'superseded') return 'superseded';
        start += ENTRIES_PER_CALL;
      } while (start < entries.length);
      return 'staged';
    },

    async pendingBodies(ref): Promise<string[]> {
      const { tx, pending } = bucketKeys(ref);
      const markers = await asOperationalError('read pending batches', async () => {
        const batchIds = await redis.zrange(pending, '0', '-1');
        const found: (string | null)[] = [];
        for (let start = 0; start < batchIds.length; start += BODIES_PER_CALL) {
          found.push(...(await redis.mget(batchIds.slice(start, start + BODIES_PER_CALL).map((id) => tx + id))));
        }
        return found;
      });
      return markers.map(bodyOf).filter((body) => body !== null);
    },

    async restoreMarker(batch, bucket, token, isPending): Promise<'restored' | 'superseded'> {
      const { tx, sale, pending } = bucketKeys({ saleId: batch.saleId, bucket });
      const keys = [tx + batch.batchId, sale, pending];
      const args = [token, batch.body, isPending ? batch.batchId : ''];
      const word = await asOperationalError('remember', () => run('restore-marker', keys, args));
      return oneOf(['restored', 'superseded'], 'remember', word);
    },

    async swap(ref, token, rebuilt): Promise<'swapped' | 'superseded'> {
      const { unitsLeft, epoch, state, opensAtMs, closesAtMs, limitPerBuyer, buckets } = rebuilt;
      const args = [token, unitsLeft, epoch, state, opensAtMs, closesAtMs, limitPerBuyer, buckets];
      const word = await asOperationalError('reopen', () => run('swap', reopenKeys(ref), args));
      return oneOf(['swapped', 'superseded'], 'reopen', word);
    },
  };
}

function reopenKeys(ref: BucketRef): string[] {
  const { sale, stock, buyers, requests, stagedBuyers, stagedRequests, moves } = bucketKeys(ref);
  return [sale, stock, buyers, requests, stagedBuyers, stagedRequests, moves];
}

const encodeEntries = (entries: readonly StoredRequest[]): string =>
  JSON.stringify(entries.map(([key, entry]) => [key, formatRequestEntry(entry)]));

function oneOf<const Word extends string>(words: readonly Word[], script: string, said: unknown): Word {
  const word = words.find((known) => known === said);
  if (word === undefined) throw new Bug(`${script} answered the word ${String(said)}`);
  return word;
}
