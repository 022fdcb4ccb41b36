import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { newBatchId, sealBatch, type Batch } from '../../src/core/batch.js';
import { loadConfig } from '../../src/core/config/load.js';
import { composeOrderId, SEQUENCE_PER_MS } from '../../src/core/order-id.js';
import type { NewOrder } from '../../src/core/ports/order-repository.js';
import type { Sale } from '../../src/core/sale.js';
import { pendingAnswer } from '../../src/http/routes/purchase.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { createChannelMetrics } from '../../src/rocketmq/metrics.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
import { brokerOf } from '../../test/helpers/broker.js';
import { TEST_SIGNATURES } from '../../test/helpers/signatures.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { BenchError } from '../bench-error.js';
import { startBareServer } from '../load/bare-http.js';
import { userIdOf } from '../load/buyers.js';
import { runClosedLoop } from '../load/closed-loop.js';
import { BUYERS_PER_SECOND, secondsOf, type Context } from './context.js';
import type { Session } from '../session/session.js';

/** The speed of one part alone. */
export interface Limit {
  readonly name: string;
  readonly perSecond: number;
  /** The unit that is counted: requests, purchases, messages or rows. */
  readonly unit: string;
  /** CPU µs per counted unit, of the api and of the servers. */
  readonly micros?: { readonly api: number; readonly servers: number };
}

export interface LimitFigures {
  readonly kind: 'limits';
  readonly scenario: 'limits' | 'crowd';
  readonly limits: readonly Limit[];
}

/** The defaults of the api. */
const { sizeMax: BATCH, inFlightMax } = loadConfig(['batch'], {}).batch;
/** The api's default for full batches, and the best value for batches of one. */
const IN_FLIGHT = { whole: inFlightMax, single: 64 } as const;
/** Loops of the worker, and the number of batches in one of its transactions. */
const WRITERS = 2;
const BATCHES_PER_TRANSACTION = 16;

/**
 * Measures each part of the path alone, on an otherwise idle machine. No combination of parts can be faster than the
 * slowest of these.
 */
export async function limits(context: Context): Promise<LimitFigures> {
  const { session } = context;
  const seconds = secondsOf(context, 'limits');
  const options = (inFlight: number): ThroughputOptions => ({ inFlight, seconds, signal: session.signal });
  const found: Limit[] = [];
  const add = async (name: string, unit: string, run: () => Promise<number>): Promise<void> => {
    session.progress(`limits: ${name}`);
    const perSecond = await run();
    found.push({ name, unit, perSecond });
  };

  await add('node:http', 'requests/s', () => bareHttp(context, seconds));
  await add(`deduct, batches of ${BATCH}`, 'purchases/s', () => deductLimit(session, BATCH, options(IN_FLIGHT.whole)));
  await add('deduct, batches of 1', 'purchases/s', () => deductLimit(session, 1, options(IN_FLIGHT.single)));
  await add(`half + commit, batches of ${BATCH}`, 'messages/s', () =>
    halfMessageLimit(session, BATCH, options(IN_FLIGHT.whole)),
  );
  await add('half + commit, batches of 1', 'messages/s', () => halfMessageLimit(session, 1, options(IN_FLIGHT.single)));
  const many = { batches: BATCHES_PER_TRANSACTION, size: BATCH };
  await add(`insert, ${BATCHES_PER_TRANSACTION} × ${BATCH} rows`, 'rows/s', () =>
    insertLimit(session, many, options(WRITERS)),
  );
  await add(`insert, 1 × ${BATCH} rows`, 'rows/s', () =>
    insertLimit(session, { batches: 1, size: BATCH }, options(WRITERS)),
  );
  await add('insert, 1 row', 'rows/s', () => insertLimit(session, { batches: 1, size: 1 }, options(WRITERS)));
  return { kind: 'limits', scenario: 'limits', limits: found };
}

async function bareHttp({ session, options, buyers }: Context, seconds: number): Promise<number> {
  const path = '/v1/sales/1/purchases';
  const bare = await startBareServer(pendingAnswer('1', '00000000-0000-0000-0000-000000000000', 'accepted'));
  try {
    const ask = (askSeconds: number) => {
      const slice = buyers.take(askSeconds * BUYERS_PER_SECOND.soldOut);
      const { connections } = options;
      return runClosedLoop({ port: bare.port, path, buyers: slice, connections, seconds: askSeconds }, session.signal);
    };
    await ask(2);
    const { answered, startedAtMs, endedAtMs } = await ask(seconds);
    return answered / ((endedAtMs - startedAtMs) / 1000);
  } finally {
    await bare.stop();
  }
}

/** MySQL does not have this sale, so the keeper re-drives none of its batches. */
const SALE_ID = '900000000000000001';
const UNITS = 100_000_000;
const DAY_MS = 86_400_000;

/** Measures purchases per second through form, encode and deduct, without anything else. */
async function deductLimit({ stores }: Session, size: number, options: ThroughputOptions): Promise<number> {
  const { redis } = stores;
  const sale: Sale = {
    saleId: SALE_ID,
    sku: 'bench-deduct',
    title: 'deduct',
    priceCents: 1,
    currency: 'EUR',
    warmBeforeMs: null,
    paymentWindowMs: null,
    stock: UNITS,
    sold: 0,
    limitPerBuyer: 1,
    buckets: 1,
    state: 'open',
    epoch: 1,
    retiredAtMs: null,
    opensAtMs: Date.now() - 1000,
    closesAtMs: Date.now() + DAY_MS,
  };
  await removeKeys(redis.redis);
  const admin = createSaleStore(redis);
  await admin.warm(sale);
  await admin.setState(sale, 'open');
  const store = createStockStore(redis, silentLog);
  const perSecond = await throughput(options, async (place) => {
    const { outcome } = await store.deduct(freshBatch(SALE_ID, place, size));
    if (outcome !== 'deducted') throw new BenchError(`deduct returned ${outcome}`);
    return size;
  });
  await removeKeys(redis.redis);
  return perSecond;
}

/** The markers stay until Redis is emptied after the scenario. */
async function removeKeys(redis: Session['stores']['redis']['redis']): Promise<void> {
  const { stock, sale, buyers, requests, pending } = bucketKeys({ saleId: SALE_ID, bucket: 0 });
  await redis.unlink(stock, sale, buyers, requests, pending);
}

/** No consumer reads this topic. */
const TOPIC = 'seckill-bench-half';

/** Measures messages per second that are sent as half messages and committed. `size`: purchases per message. */
async function halfMessageLimit(session: Session, size: number, options: ThroughputOptions): Promise<number> {
  const { stack } = session;
  const attributes = { '+message.type': 'TRANSACTION' } as const;
  await stack.applyTopics({
    topics: [{ topicName: TOPIC, readQueueNums: 8, writeQueueNums: 8, perm: 6, attributes }],
    groups: [],
  });
  const channel = await createPurchaseChannel({
    ...brokerOf(stack.env()),
    topic: TOPIC,
    checkBack: () => Promise.resolve('commit'),
    checksInParallel: 8,
    signatures: TEST_SIGNATURES,
    log: silentLog,
    metrics: createChannelMetrics(new Registry()),
  });
  try {
    return await throughput(options, async (place) => {
      const half = await channel.sendHalf(freshBatch('900000000000000002', place, size));
      if (typeof half === 'string') throw new BenchError(`a half message was ${half}`);
      await half.commit();
      return 1;
    });
  } finally {
    await channel.close();
  }
}

const STOCK = 10_000_000;
/** A slot that no worker of the bench gets, because workers take the lowest slots. */
const SLOT = 255;
/** A past time, so that these ids differ from the ids of any worker. */
const FIRST_ID_MS = Date.UTC(2024, 1, 1);

/**
 * Measures rows per second through the writer transaction: orders, outbox, guard, commit.
 * @param shape batches in one transaction, purchases in one batch
 */
async function insertLimit(
  { stores }: Session,
  { batches, size }: { readonly batches: number; readonly size: number },
  options: ThroughputOptions,
): Promise<number> {
  const { saleId } = await stores.openSale('insert', STOCK);
  const repository = createOrderRepository(stores.mysql);
  const terms = await repository.termsOf([saleId]);
  return throughput(options, async (place) => {
    const orders = Array.from({ length: batches }, (_, index) =>
      freshBatch(saleId, place * batches + index, size),
    ).flatMap((batch) =>
      batch.purchases.map((purchase): NewOrder => {
        return { orderId: nextId(purchase.userId), batch, purchase, failure: null };
      }),
    );
    const plan = { terms, orders, releases: [], oneByOne: new Set<string>(), paymentWindowMs: 900_000 };
    const written = await repository.write(plan);
    if (written.outcome === 'again') return 0;
    if (written.outcome !== 'written') throw new BenchError(`the insert ended with ${written.outcome}`);
    return orders.length;
  });
}

/** Makes order ids of one slot. Their time part counts up instead of following a clock. */
let idsGiven = 0;
function nextId(userId: string): string {
  const place = idsGiven++;
  return composeOrderId(FIRST_ID_MS + Math.floor(place / SEQUENCE_PER_MS), SLOT, userId, place % SEQUENCE_PER_MS);
}

/** Makes a batch as the api forms it, of buyers that were never seen before. */
function freshBatch(saleId: string, place: number, size: number): Batch {
  return sealBatch({
    batchId: newBatchId(),
    saleId,
    bucket: 0,
    epoch: 1,
    createdAtMs: Date.now(),
    traceparent: '',
    purchases: Array.from({ length: size }, (_, index) => ({
      userId: userIdOf(place * size + index),
      requestId: randomUUID(),
      quantity: 1,
    })),
  });
}

/** Time before counting, for connections, caches and JIT. */
const WARM_MS = 1000;

interface ThroughputOptions {
  /** Number of concurrent steps. */
  readonly inFlight: number;
  /** Counted time. */
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/**
 * Repeats a step as fast as possible.
 * @param step one unit of work; resolves to the number of things it has done
 * @returns things done per second, after a second of warm-up
 */
async function throughput(
  { inFlight, seconds, signal }: ThroughputOptions,
  step: (place: number) => Promise<number>,
): Promise<number> {
  const countFromMs = performance.now() + WARM_MS;
  const endMs = countFromMs + seconds * 1000;
  let place = 0;
  let done = 0;
  const loop = async (): Promise<void> => {
    while (performance.now() < endMs) {
      signal.throwIfAborted();
      const work = await step(place++);
      const nowMs = performance.now();
      if (nowMs >= countFromMs && nowMs < endMs) done += work;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  return done / seconds;
}
