import type { Sale } from '../../src/core/sale.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { BenchError } from '../bench-error.js';
import type { Session } from '../session/session.js';
import { freshBatch } from './batches.js';
import { throughput, type ThroughputOptions } from './throughput.js';

/** MySQL knows no such sale, so the keeper looks after none of its batches. */
const SALE_ID = '900000000000000001';
const UNITS = 100_000_000;
const DAY_MS = 86_400_000;

/** Purchases per second that form, encode and deduct take, without anything around them. */
export async function deductLimit({ books }: Session, size: number, options: ThroughputOptions): Promise<number> {
  const { redis } = books;
  const sale: Sale = {
    saleId: SALE_ID,
    sku: 'bench-deduct',
    title: 'deduct',
    priceCents: 1,
    stock: UNITS,
    sold: 0,
    limitPerBuyer: 1,
    buckets: 1,
    state: 'open',
    epoch: 1,
    opensAtMs: Date.now() - 1000,
    closesAtMs: Date.now() + DAY_MS,
  };
  await forget(redis.redis);
  const admin = createSaleStore(redis);
  await admin.warm(sale);
  await admin.setState(sale, 'open');
  const store = createStockStore(redis, silentLog);
  const perSecond = await throughput(options, async (place) => {
    const { outcome } = await store.deduct(freshBatch(SALE_ID, place, size));
    if (outcome !== 'deducted') throw new BenchError(`deduct said ${outcome}`);
    return size;
  });
  await forget(redis.redis);
  return perSecond;
}

/** The markers stay until Redis is emptied after the scenario. */
async function forget(redis: Session['books']['redis']['redis']): Promise<void> {
  const { stock, sale, buyers, requests, pending } = bucketKeys({ saleId: SALE_ID, bucket: 0 });
  await redis.unlink(stock, sale, buyers, requests, pending);
}
