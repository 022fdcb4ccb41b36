import type { BucketStatus } from '../core/ports/repair-stores.js';
import type { BucketRef } from '../core/ports/stock-store.js';
import type { RedisConnection } from './connection.js';
import { bucketKeys } from './keys.js';
import { asList } from './replies.js';

/** How one bucket stands against its server. @throws what the driver throws */
export async function readBucketStatus(run: RedisConnection['run'], ref: BucketRef): Promise<BucketStatus> {
  const [state, epoch, same] = asList(await run('bucket-status', [bucketKeys(ref).sale], []));
  return {
    state: state === '' ? null : (state as BucketStatus['state']),
    epoch: Number(epoch),
    sameServer: same === 1,
  };
}
