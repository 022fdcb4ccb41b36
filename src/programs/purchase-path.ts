import { randomUUID } from 'node:crypto';
import type { Registry } from 'prom-client';
import type { Config } from '../core/config/schema.js';
import { OperationalError } from '../core/errors.js';
import type { SignedMessages } from '../core/message-signatures.js';
import { HotSales, reportHotSales } from '../sales/hot-sales.js';
import { createChannelMetrics } from '../rocketmq/metrics.js';
import type { Log } from '../core/ports/log.js';
import type { PurchaseNotifications } from '../core/ports/purchase-notifications.js';
import type { DeadLetterParking } from '../core/ports/dead-letters.js';
import type { SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { Tracing } from '../core/ports/tracing.js';
import { placeInSpan, withStepTimes } from '../purchase/batch-steps.js';
import { Batcher } from '../purchase/batcher.js';
import { createCheckBack } from '../purchase/check-back.js';
import { isSaleSoldOut } from '../purchase/gate.js';
import { createPurchaseMetrics } from '../purchase/metrics.js';
import { placeBatch, type PlaceBatchPorts } from '../purchase/place-batch.js';
import { SoldOutFlags } from '../purchase/sold-out-flags.js';
import type { RedisConnection } from '../redis/connection.js';
import { createHotSaleStore } from '../redis/hot-sale-store.js';
import { withReplicaBarrier, openReplicaBarrier, type ReplicaBarrier } from '../redis/replica-barrier.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { createPurchaseChannel } from '../rocketmq/purchase-channel.js';
import type { ChannelHealth } from '../rocketmq/probe.js';
import { SaleSnapshots } from '../sales/sale-snapshots.js';
import { UnitFetcher } from '../sales/stock/gather-units.js';
import { wrapped } from '../process/seams.js';
import { brokerConnection, messageSignatures, openSignedMessages } from '../process/servers.js';
import { systemClock as clock } from '../process/system-clock.js';
import type { BreakerWrappers } from './with-breakers.js';

/** How long an api uses a sale snapshot from its memory. Buyers see a change of the sale with at most this delay. */
const SNAPSHOT_MEMORY_MS = 1000;
/** How long an api uses a sold-out flag. Units that come back are offered again within this time. */
const SOLD_OUT_LIFE_MS = 500;
/** Accepted buyers over all sold-out sales, kept so that a sold-out flag does not refuse them. */
const SOLD_OUT_BUYERS_MAX = 500_000;
/** Maximum number of batches that a purchase goes through before it gets `overloaded`. */
const BATCH_ROUNDS_MAX = 5;
const SALES_IN_MEMORY = 1000;
/** How long one process may hold the right to load a sale snapshot. */
const SNAPSHOT_LOCK_MS = 3000;

export interface PathParts {
  readonly redis: RedisConnection;
  readonly sales: SaleRepository;
  readonly deadLetters: DeadLetterParking;
  readonly cache: SaleSnapshotCache;
  readonly withBreakers: BreakerWrappers;
  readonly notifications: PurchaseNotifications;
  readonly tracing: Tracing;
  readonly registry: Registry;
  readonly log: Log;
  /** Receives an error that is a bug. */
  readonly fail: (error: unknown) => void;
}

/** The path behind the gate: snapshots, sold-out flags, batches, and the producer that answers check-backs. */
export interface PurchasePath {
  readonly store: StockStore;
  readonly snapshots: SaleSnapshots;
  readonly units: UnitFetcher;
  readonly flags: SoldOutFlags;
  readonly batcher: Batcher;
  /** If undefined, purchase attempts are not counted. */
  readonly hot: HotSales | undefined;
  readonly health: ChannelHealth;
  /** Checks the signatures of messages, so that forged messages are dropped. */
  readonly messages: SignedMessages;
  /** Returns false for a sale that this process has not seen recently. */
  isSoldOut(saleId: string): boolean;
  close(): Promise<void>;
}

/** @throws OperationalError if a dependency does not answer at the start */
export async function openPurchasePath(
  config: Config<'redis' | 'rocketmq' | 'brokerAccess' | 'messages' | 'hotSales' | 'batch'>,
  { redis, sales, deadLetters, cache, withBreakers, notifications, tracing, registry, log, fail }: PathParts,
): Promise<PurchasePath> {
  const store = withBreakers.store(wrapped('stock store', createStockStore(redis, log)));
  const messages = openSignedMessages(config.messages, { deadLetters, registry, log });
  const channel = await createPurchaseChannel({
    ...config.rocketmq,
    ...brokerConnection(config, log),
    signatures: messageSignatures(config.messages),
    checkBack: createCheckBack(wrapped('stock store of check-backs', store).resolve, messages, log, tracing),
    metrics: createChannelMetrics(registry),
  });
  const snapshots = new SaleSnapshots(
    { repository: sales, cache, clock },
    { memoryTtlMs: SNAPSHOT_MEMORY_MS, memoryMax: SALES_IN_MEMORY, lockMs: SNAPSHOT_LOCK_MS },
  );
  const units = new UnitFetcher(wrapped('transfer store', createTransferStore(redis)));
  const flags = new SoldOutFlags(
    { lifeMs: SOLD_OUT_LIFE_MS, buyersMax: SOLD_OUT_BUYERS_MAX },
    { store, units, notifications, clock, log },
  );
  const barrier = await openBarrier(config.redis, log);
  const metrics = createPurchaseMetrics(registry, () => batcher);
  const servers = {
    store: withReplicaBarrier(store, barrier),
    channel: withBreakers.channel(wrapped('purchase channel', channel)),
  };
  const placePorts: PlaceBatchPorts = {
    ...withStepTimes(servers, clock, (step, tookMs) => metrics.stepTook(step, tookMs)),
    units,
    flags,
    snapshots,
    clock,
    log,
  };
  const batcher: Batcher = new Batcher(
    { ...config.batch, roundsMax: BATCH_ROUNDS_MAX },
    {
      place: (bucket, purchases, spans, deliver) =>
        spans === null
          ? placeBatch(bucket, purchases, '', deliver, placePorts)
          : placeInSpan(bucket, purchases, spans, deliver, placePorts, tracing),
      clock,
      metrics,
      onError: (error) => {
        if (error instanceof OperationalError) return 'unavailable';
        fail(error);
        return 'outcome_unknown';
      },
    },
  );
  const hot = config.hotSales.perSecond > 0 ? new HotSales(clock) : undefined;
  const stop = new AbortController();
  const hotPorts = { store: createHotSaleStore(redis), clock, log };
  const reporting = hot && reportHotSales(hot, randomUUID(), hotPorts, stop.signal).catch(fail);
  return {
    store,
    snapshots,
    units,
    flags,
    batcher,
    health: channel.health,
    messages,
    hot,
    isSoldOut: (saleId) => isSaleSoldOut(saleId, { snapshots, flags }),
    async close(): Promise<void> {
      stop.abort();
      await Promise.all([channel.close(), barrier?.close(), reporting]);
    },
  };
}

/** Null if purchases do not wait for replicas. */
async function openBarrier(redis: Config<'redis'>['redis'], log: Log): Promise<ReplicaBarrier | null> {
  const { waitReplicas: replicas, waitReplicasMs: timeoutMs } = redis;
  return replicas === 0 ? null : openReplicaBarrier(redis, { replicas, timeoutMs }, log);
}
