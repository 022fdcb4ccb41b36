import type { BucketStatus, RepairStore } from '../core/ports/repair-stores.js';
import type { BucketRef } from '../core/bucket.js';
import { type RedisConnection, asOperationalError, eachOrFault } from './connection.js';
import { bucketKeys } from './keys.js';
import { asList, markerBody } from './replies.js';
import { Bug, OperationalError } from '../core/errors.js';
import { formatRequestEntry } from '../core/outcome.js';
import type { StoredRequest } from '../core/ports/reconcile-store.js';
import { createRepairAsks } from './repair-asks.js';
import { requestPages } from './scan-hash.js';

/** Number of buckets that are read at once. Keeps the time far below any reply time-out. */
const REFS_AT_ONCE = 500;
/** Requests staged per script call, which takes two or three ms. Other sales get their turn in between. */
const ENTRIES_PER_CALL = 250;

/** Limits the size of a reply: a body has a few kB, at most 4 MiB. */
const BODIES_PER_CALL = 100;

export function createRepairStore({ redis, run }: RedisConnection): RepairStore {
  return {
    ...createRepairAsks(redis),

    async statusOf(refs): Promise<BucketStatus[]> {
      return (await statusOrFault(run, refs)).map((status) => {
        if (status instanceof OperationalError) throw status;
        return status;
      });
    },

    statusOrFault: (refs) => statusOrFault(run, refs),

    async lock(ref, token, leaseMs, seenEpoch): Promise<'locked' | 'busy' | 'moved'> {
      const { sale, stagedRequests, stagedBuyers } = bucketKeys(ref);
      const args = [token, leaseMs, seenEpoch ?? ''];
      const word = await asOperationalError('lock', () => run('lock', [sale, stagedRequests, stagedBuyers], args));
      return oneOf(['locked', 'busy', 'moved'], 'lock', word);
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
      return markers.map(markerBody).filter((body) => body !== null);
    },

    async restoreMarker(batch, bucket, token, isPending): Promise<'restored' | 'superseded'> {
      const { tx, sale, pending } = bucketKeys({ saleId: batch.saleId, bucket });
      const keys = [tx + batch.batchId, sale, pending];
      const args = [token, batch.body, isPending ? batch.batchId : ''];
      const word = await asOperationalError('restore-marker', () => run('restore-marker', keys, args));
      return oneOf(['restored', 'superseded'], 'restore-marker', word);
    },

    async swap(ref, token, rebuilt): Promise<'swapped' | 'superseded'> {
      const { unitsLeft, epoch, state, opensAtMs, closesAtMs, limitPerBuyer, buckets } = rebuilt;
      const args = [token, unitsLeft, epoch, state, opensAtMs, closesAtMs, limitPerBuyer, buckets];
      const word = await asOperationalError('swap', () => run('swap', swapKeys(ref), args));
      return oneOf(['swapped', 'superseded'], 'swap', word);
    },
  };
}

function swapKeys(ref: BucketRef): string[] {
  const { sale, stock, buyers, requests, stagedBuyers, stagedRequests, transfers } = bucketKeys(ref);
  return [sale, stock, buyers, requests, stagedBuyers, stagedRequests, transfers];
}

const encodeEntries = (entries: readonly StoredRequest[]): string =>
  JSON.stringify(entries.map(([key, entry]) => [key, formatRequestEntry(entry)]));

function oneOf<const Word extends string>(words: readonly Word[], script: string, reply: unknown): Word {
  const word = words.find((known) => known === reply);
  if (word === undefined) throw new Bug(`${script} returned the unknown word ${String(reply)}`);
  return word;
}

async function statusOrFault(
  run: RedisConnection['run'],
  refs: readonly BucketRef[],
): Promise<(BucketStatus | OperationalError)[]> {
  const statuses: (BucketStatus | OperationalError)[] = [];
  for (let start = 0; start < refs.length; start += REFS_AT_ONCE) {
    const slice = refs.slice(start, start + REFS_AT_ONCE);
    statuses.push(...(await eachOrFault('read the status of buckets', slice, (ref) => readBucketStatus(run, ref))));
  }
  return statuses;
}

/** Reads state and epoch of a bucket, and whether it was written on this server. @throws what the driver throws */
export async function readBucketStatus(run: RedisConnection['run'], ref: BucketRef): Promise<BucketStatus> {
  const [state, epoch, same] = asList(await run('bucket-status', [bucketKeys(ref).sale], []));
  return {
    state: state === '' ? null : (state as BucketStatus['state']),
    epoch: Number(epoch),
    sameServer: same === 1,
  };
}
