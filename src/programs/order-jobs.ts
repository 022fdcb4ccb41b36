import type { Config } from '../core/config/schema.js';
import { GROUP_TOPICS, GROUPS, type Group } from '../core/topics.js';
import { consume, type ConsumePorts } from '../orders/consume.js';
import { expireUnpaid } from '../orders/expire-unpaid.js';
import { issueCoupons } from '../orders/issue-coupons.js';
import type { Job } from '../core/job.js';
import { payRefunds } from '../orders/pay-refunds.js';
import { gatherMoved, gatherRecorded, publishMoved, publishRecorded } from '../orders/publish-orders.js';
import { relayOutbox } from '../orders/relay-outbox.js';
import { releaseUnits } from '../orders/release-units.js';
import { notifyBuyers } from '../orders/notify-buyers.js';
import { tidyOutbox } from '../orders/tidy-outbox.js';
import { watchOutbox } from '../orders/watch-outbox.js';
import { createCouponRepository } from '../mysql/coupon-repository.js';
import { createDeadLetterRepository } from '../mysql/dead-letter-repository.js';
import { createOrderStates } from '../mysql/order-repository.js';
import { createOutbox } from '../mysql/outbox.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import type { MysqlPool } from '../mysql/pool.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { PaymentProvider } from '../core/ports/payment-provider.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import { pingRedis, type RedisConnection } from '../redis/connection.js';
import { createPurchaseNotificationsSender } from '../redis/purchase-notifications.js';
import type { KeeperFailPoints } from './fail-points.js';
import { INVISIBLE_MS, type KeeperBroker } from './keeper-broker.js';
import { systemClock as clock } from './system-clock.js';

/** A job and the pause between two runs of it. */
export interface PlannedJob {
  readonly job: Job;
  readonly everyMs: number;
}

export interface OrderJobParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly broker: KeeperBroker;
  readonly store: BatchStore;
  readonly moves: Pick<OrderTransitions, 'expire'>;
  readonly points: KeeperFailPoints;
  readonly metrics: KeeperMetrics;
  readonly log: Log;
}

/** Rows of the outbox taken together. Each is a message or two, or a script, and all are under way at once. */
const ROWS_PER_LEASE = 64;
/** Refunds asked for at once; each is a call of the provider. */
const REFUNDS_PER_LEASE = 16;
/** Longer than any call of a provider. */
const REFUND_LEASE_MS = 60_000;
/** Removing old rows is not urgent. */
const TIDY_EVERY_MS = 60_000;
/** A failed receive is tried again after this; a good one waits for messages by itself. */
const RECEIVE_EVERY_MS = 200;

/** What follows from rows that were committed: news, deadlines, units that go back. */
export function relayJobs(
  { everyMs, outboxEveryMs, outboxLeaseMs, outboxKeepMs }: Config['keeper'],
  parts: OrderJobParts,
): PlannedJob[] {
  const { broker, store, points, metrics, log } = parts;
  const outbox = createOutbox(parts.mysql);
  const published = { outbox: points.published(outbox), log, metrics };
  const released = { outbox: points.released(outbox), log, metrics };
  const lease = { max: ROWS_PER_LEASE, leaseMs: outboxLeaseMs };
  const relays = [
    relayOutbox(
      { ...published, keep: publishRecorded(broker), gather: gatherRecorded },
      { ...lease, kind: 'batch_recorded' },
    ),
    relayOutbox({ ...published, keep: publishMoved(broker), gather: gatherMoved }, { ...lease, kind: 'orders_moved' }),
    relayOutbox({ ...released, keep: releaseUnits({ store, metrics }) }, { ...lease, kind: 'release' }),
  ];
  return [
    ...relays.map((job) => ({ everyMs: outboxEveryMs, job })),
    { everyMs, job: watchOutbox({ outbox, metrics }) },
    { everyMs: TIDY_EVERY_MS, job: tidyOutbox({ outbox, metrics }, { keepMs: outboxKeepMs }) },
  ];
}

/** What is owed to buyers is paid back. Where no provider is configured, `watch-overdue` tells of it. */
export function refundJobs(
  { everyMs }: Config['keeper'],
  provider: PaymentProvider | null,
  { mysql, metrics, log }: Pick<OrderJobParts, 'mysql' | 'metrics' | 'log'>,
): PlannedJob[] {
  if (provider === null) return [];
  const refunds = createRefundRepository(mysql);
  const job = payRefunds({ refunds, provider, metrics, log }, { max: REFUNDS_PER_LEASE, leaseMs: REFUND_LEASE_MS });
  return [{ everyMs, job }];
}

/** The groups that the keeper works for, each in a loop of its own: none waits for another. */
export function consumerJobs({ redis, mysql, broker, moves, metrics, log }: OrderJobParts): PlannedJob[] {
  const shared: Omit<ConsumePorts, 'source' | 'handle'> = {
    ready: () => mysql.probe(),
    deadLetters: createDeadLetterRepository(mysql),
    ...{ clock, log, metrics },
  };
  const optionsOf = (group: Group) => ({ group, topic: GROUP_TOPICS[group], invisibleMs: INVISIBLE_MS });
  const expire = expireUnpaid({ moves: moves, orders: createOrderStates(mysql), metrics });
  const coupons = issueCoupons({ coupons: createCouponRepository(mysql), metrics });
  const tell = notifyBuyers({
    orders: createOrderStates(mysql),
    sender: createPurchaseNotificationsSender(redis),
    metrics,
  });
  const reachable = async (): Promise<void> => void (await Promise.all([mysql.probe(), pingRedis(redis)]));
  const jobs = [
    consume({ ...shared, source: broker.expirer, handle: expire }, optionsOf(GROUPS.expirer)),
    consume({ ...shared, source: broker.coupon, handle: coupons }, optionsOf(GROUPS.coupon)),
    consume({ ...shared, ready: reachable, source: broker.notifier, handle: tell }, optionsOf(GROUPS.notifier)),
  ];
  return jobs.map((job) => ({ everyMs: RECEIVE_EVERY_MS, job }));
}
