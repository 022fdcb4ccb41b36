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
import { tellBuyers } from '../orders/tell-buyers.js';
import { tidyOutbox } from '../orders/tidy-outbox.js';
import { watchOutbox } from '../orders/watch-outbox.js';
import { createCouponBook } from '../mysql/coupon-book.js';
import { createDeadLetterBook } from '../mysql/dead-letter-book.js';
import { createNewsRows } from '../mysql/news-rows.js';
import { createOrderStates } from '../mysql/order-states.js';
import { createOutbox } from '../mysql/outbox.js';
import { createRefundBook } from '../mysql/refund-book.js';
import type { MysqlPool } from '../mysql/pool.js';
import type { KeeperMeters } from '../core/ports/keeper-meters.js';
import type { Log } from '../core/ports/log.js';
import type { OrderMoves } from '../core/ports/order-moves.js';
import type { PaymentProvider } from '../core/ports/payment-provider.js';
import type { SettlementLedger } from '../core/ports/settlement-ledger.js';
import { pingRedis, type RedisConnection } from '../redis/connection.js';
import { createPurchaseNewsSender } from '../redis/purchase-news.js';
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
  readonly ledger: SettlementLedger;
  readonly moves: Pick<OrderMoves, 'expire'>;
  readonly points: KeeperFailPoints;
  readonly meters: KeeperMeters;
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
  const { broker, ledger, points, meters, log } = parts;
  const outbox = createOutbox(parts.mysql);
  const published = { outbox: points.published(outbox), log, meters };
  const released = { outbox: points.released(outbox), log, meters };
  const lease = { max: ROWS_PER_LEASE, leaseMs: outboxLeaseMs };
  const relays = [
    relayOutbox(
      { ...published, keep: publishRecorded(broker), gather: gatherRecorded },
      { ...lease, kind: 'batch_recorded' },
    ),
    relayOutbox({ ...published, keep: publishMoved(broker), gather: gatherMoved }, { ...lease, kind: 'orders_moved' }),
    relayOutbox({ ...released, keep: releaseUnits({ ledger, meters }) }, { ...lease, kind: 'release' }),
  ];
  return [
    ...relays.map((job) => ({ everyMs: outboxEveryMs, job })),
    { everyMs, job: watchOutbox({ outbox, meters }) },
    { everyMs: TIDY_EVERY_MS, job: tidyOutbox({ outbox, meters }, { keepMs: outboxKeepMs }) },
  ];
}

/** What is owed to buyers is paid back. Where no provider is configured, `watch-overdue` tells of it. */
export function refundJobs(
  { everyMs }: Config['keeper'],
  provider: PaymentProvider | null,
  { mysql, meters, log }: Pick<OrderJobParts, 'mysql' | 'meters' | 'log'>,
): PlannedJob[] {
  if (provider === null) return [];
  const refunds = createRefundBook(mysql);
  const job = payRefunds({ refunds, provider, meters, log }, { max: REFUNDS_PER_LEASE, leaseMs: REFUND_LEASE_MS });
  return [{ everyMs, job }];
}

/** The groups that the keeper works for, each in a loop of its own: none waits for another. */
export function consumerJobs({ redis, mysql, broker, moves, meters, log }: OrderJobParts): PlannedJob[] {
  const shared: Omit<ConsumePorts, 'source' | 'handle'> = {
    ready: () => mysql.probe(),
    letters: createDeadLetterBook(mysql),
    ...{ clock, log, meters },
  };
  const optionsOf = (group: Group) => ({ group, topic: GROUP_TOPICS[group], invisibleMs: INVISIBLE_MS });
  const expire = expireUnpaid({ moves: moves, orders: createOrderStates(mysql), meters });
  const coupons = issueCoupons({ coupons: createCouponBook(mysql), meters });
  const tell = tellBuyers({ orders: createNewsRows(mysql), sender: createPurchaseNewsSender(redis), meters });
  const reachable = async (): Promise<void> => void (await Promise.all([mysql.probe(), pingRedis(redis)]));
  const jobs = [
    consume({ ...shared, source: broker.expirer, handle: expire }, optionsOf(GROUPS.expirer)),
    consume({ ...shared, source: broker.coupon, handle: coupons }, optionsOf(GROUPS.coupon)),
    consume({ ...shared, ready: reachable, source: broker.notifier, handle: tell }, optionsOf(GROUPS.notifier)),
  ];
  return jobs.map((job) => ({ everyMs: RECEIVE_EVERY_MS, job }));
}
