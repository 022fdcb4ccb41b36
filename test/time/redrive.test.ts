import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { keepRunning } from '../../src/core/job.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { systemClock as clock } from '../../src/process/system-clock.js';
import { redrive } from '../../src/recovery/redrive.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { connectRedis, serverNowMs, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createDeliverySource } from '../../src/rocketmq/delivery-source.js';
import { createRedriveChannel } from '../../src/rocketmq/plain-channels.js';
import { until } from '../chaos/harness/wait.js';
import { brokerOf } from '../helpers/broker.js';
import { MemoryRepositories } from '../helpers/memory/memory-repositories.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { signaturesOf } from '../helpers/signatures.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';
import { noRecoveryMetrics } from '../helpers/no-metrics.js';

const BATCHES = 8_000;
const KEEPERS = 2;
/** The defaults of the program. */
const [MAX, EVERY_MS, AFTER_MS] = [2_000, 2_000, 60_000];
/** Two keepers publish 100,000 batches in five minutes. */
const NEEDED_PER_SECOND = 100_000 / 300;
/** Ten runs with their pauses may take 24 s for 8,000 batches at the required rate. */
const RUNS_MAX = 10;
const INVISIBLE_MS = 60_000;

describe('keeper: speed of the re-drive after an outage', () => {
  const env = stackEnv();
  const connections: RedisConnection[] = [];
  const closing: (() => Promise<void>)[] = [];
  const connect = async (): Promise<RedisConnection> => {
    const connection = await connectRedis(
      { url: env.REDIS_URL, replyTimeoutMs: 5_000, connectTimeoutMs: 3_000 },
      silentLog,
    );
    connections.push(connection);
    return connection;
  };
  after(async () => {
    for (const close of closing) await close();
    for (const connection of connections) await connection.close();
  });

  /** Deducts batches of fifty purchases each, two minutes in the past. */
  async function deductedLongAgo(connection: RedisConnection, saleId: string): Promise<Batch[]> {
    const { redis } = connection;
    const { pending, tx } = bucketKeys({ saleId, bucket: 0 });
    const nowMs = await serverNowMs(redis, pending);
    const users = Array.from({ length: 50 }, (_, index) => `buyer-${index}`);
    const batches = Array.from({ length: BATCHES }, () => batchOf({ saleId }, purchasesOf(...users)));
    for (let start = 0; start < batches.length; start += 500) {
      const some = batches.slice(start, start + 500);
      await redis
        .pipeline(
          some.flatMap(({ batchId, body }, index) => [
            ['set', tx + batchId, `deducted${body}`],
            ['zadd', pending, nowMs - 120_000 + start + index, batchId],
          ]),
        )
        .exec();
    }
    return batches;
  }

  it('lets two keepers publish the batches of an hour in five minutes, hardly any batch twice [M11]', async () => {
    const sale = saleOf();
    const keepers = await Promise.all(Array.from({ length: KEEPERS }, connect));
    const batches = await deductedLongAgo(keepers[0] as RedisConnection, sale.saleId);
    const sales = new MemoryRepositories({ clock });
    sales.putSale(sale);
    const stopping = new AbortController();
    const counts = keepers.map(() => 0);
    let runs = 0;
    const broker = {
      ...brokerOf(env),
      requestTimeoutMs: 10_000,
      signatures: signaturesOf(env),
      log: silentLog,
    };
    const channels = await Promise.all(keepers.map(() => createRedriveChannel(broker)));
    closing.push(...channels.map((channel) => () => channel.close()));

    const startedMs = performance.now();
    const running = keepers.map((connection, index) => {
      const metrics = {
        ...noRecoveryMetrics,
        redriven: (more: number) => void (counts[index] = (counts[index] ?? 0) + more),
        jobBegan: () => () => undefined,
        jobRan: () => void runs++,
      };
      const channel = channels[index] as (typeof channels)[number];
      const ports = { sales, store: createBatchStore(connection), channel, clock, log: silentLog, metrics };
      const job = redrive(ports, { afterMs: AFTER_MS, max: MAX });
      return keepRunning(job, EVERY_MS, stopping.signal, { clock, log: silentLog, metrics });
    });
    const total = (): number => counts.reduce((sum, count) => sum + count, 0);
    await until('all are published', () => total() >= BATCHES);
    const perSecond = (total() / (performance.now() - startedMs)) * 1_000;
    stopping.abort();
    await Promise.all(running);

    const { redis } = keepers[0] as RedisConnection;
    const { pending, redrives, tx } = bucketKeys({ saleId: sale.saleId, bucket: 0 });
    await redis.unlink(pending, redrives, ...batches.map(({ batchId }) => tx + batchId));
    const received = await drain(sale.saleId);
    console.log(
      `      ${Math.round(perSecond)} batches a second by ${KEEPERS} keepers (${counts.join(' and ')}), ${runs} runs, pauses included; ` +
        `needed: ${Math.round(NEEDED_PER_SECOND)}`,
    );
    expect(runs, 'runs, with a pause after each').to.be.at.most(RUNS_MAX);
    expect(new Set(received).size, 'every batch').to.equal(BATCHES);
    expect(received.length, 'hardly any twice').to.be.lessThan(BATCHES * 1.02);
    for (const count of counts) expect(count, 'both did their part').to.be.greaterThan(BATCHES / 10);
  });

  /** Removes the published messages from the topic, so that no worker of another test receives them. */
  async function drain(saleId: string): Promise<string[]> {
    const source = await createDeliverySource({
      ...brokerOf(env),
      topic: TOPICS.redrive,
      group: GROUPS.redriveWriter,
      invisibleMs: INVISIBLE_MS,
      awaitMs: 1_000,
      requestTimeoutMs: 10_000,
      log: silentLog,
    });
    closing.push(() => source.close());
    const batchIds: string[] = [];
    for (let empty = 0; empty < 3;) {
      const deliveries = await source.receive(32);
      empty = deliveries.length === 0 ? empty + 1 : 0;
      await Promise.all(deliveries.map((delivery) => delivery.ack()));
      const own = deliveries.filter(({ properties }) => properties.get('saleId') === saleId);
      batchIds.push(...own.map(({ properties }) => properties.get('batchId') ?? ''));
    }
    return batchIds;
  }
});
