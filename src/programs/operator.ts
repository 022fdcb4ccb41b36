import { randomBytes } from 'node:crypto';
import { RuleAdmin } from '../admission/rules/rule-admin.js';
import type { Config, SectionName } from '../core/config/schema.js';
import { OperationalError } from '../core/errors.js';
import type { AuditLog } from '../core/ports/audit-log.js';
import type { RedriveChannel, WorkerProgress } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import type { OrderSearch } from '../core/ports/order-search.js';
import type { PaymentCases } from '../core/ports/payment-cases.js';
import type { PriceFault } from '../core/ports/payment-provider.js';
import type { RefundRepository } from '../core/ports/refund-repository.js';
import type { RevocationRepository } from '../core/ports/revocations.js';
import type { RuleReports } from '../core/ports/rules.js';
import type { TraceBroker } from '../core/ports/trace-sources.js';
import type { Resharded } from '../core/sale-repair.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createCompensationRepository } from '../mysql/compensation-repository.js';
import { createCouponRepository } from '../mysql/coupon-repository.js';
import { createDeadLetterRepository } from '../mysql/dead-letter-repository.js';
import { createOrderRepository, createOrderStates } from '../mysql/order-repository.js';
import { createOrderSearch } from '../mysql/order-search.js';
import { createOutbox } from '../mysql/outbox.js';
import { openMysqlPool, type MysqlPool } from '../mysql/pool.js';
import { createPaymentCases } from '../mysql/payment-cases.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createReconcileRuns } from '../mysql/reconcile-runs.js';
import { createRefundRepository } from '../mysql/refund-repository.js';
import { createRepairRepository } from '../mysql/repair-repository.js';
import { markRestored, type RestoredMarks } from '../mysql/restored.js';
import { createRevocationRepository } from '../mysql/revocation-repository.js';
import { createRuleRepository } from '../mysql/rule-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createSaleEdits } from '../mysql/sale-edits.js';
import { createSaleSchedule } from '../mysql/sale-schedule.js';
import { createTraceRepository } from '../mysql/trace-repository.js';
import { createWorkerSlots } from '../mysql/worker-slots.js';
import { createOrderIdMinter, type OrderIdMinter } from '../orders/order-id-minter.js';
import { DeadLetterAdmin } from '../recovery/dead-letters/dead-letter-admin.js';
import { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import { repairAsked, type OrderedRepair } from '../recovery/repair/repair-jobs.js';
import type { RepairOrder } from '../recovery/repair/repair-sale.js';
import { reshardSale, type ReshardOrder } from '../recovery/repair/reshard-sale.js';
import { priceFaultOf } from '../payment/price-fault.js';
import { TracePurchase } from '../recovery/trace/trace-purchase.js';
import { createBatchStore } from '../redis/batch-store.js';
import type { RedisConnection } from '../redis/connection.js';
import { createReconcileStore } from '../redis/reconcile-store.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createRuleBroadcast } from '../redis/rule-broadcast.js';
import { createRuleReports } from '../redis/rule-reports.js';
import { createSaleSnapshotCache, createSaleStore } from '../redis/sale-store.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTraceStore } from '../redis/trace-store.js';
import { createTransferStore } from '../redis/transfer-store.js';
import { createWorkerProgress } from '../rocketmq/admin/worker-progress.js';
import { brokerAccessOf } from '../rocketmq/credentials.js';
import type { ProducerOptions } from '../rocketmq/signed-message.js';
import { SaleEditor } from '../sales/edit-sale.js';
import { SaleAdmin } from '../sales/sale-admin.js';
import { planSales, type PlannedSale } from '../sales/schedule/plan-sales.js';
import { openReadiness } from './sale-readiness.js';
import { wrapped } from './seams.js';
import { brokerConnection, messageSignatures, openRedis } from './servers.js';
import { systemClock as clock } from './system-clock.js';

/** The sections that a publisher needs. */
type PublishSections = 'rocketmq' | 'brokerAccess' | 'messages';

/** Renewed at each purchase that is given up, so it only has to last for one purchase. */
const SLOT_LEASE_MS = 60_000;

/** The connections that a program has open already and closes itself. */
export interface OperatorParts {
  readonly redis?: RedisConnection;
  readonly mysql?: MysqlPool;
  readonly redrives?: RedriveChannel;
}

const RECONCILE_LIMITS = {
  /** An older outbox row is stuck. After an outage a keeper needs minutes. */
  outboxAgeMs: 600_000,
  /** Reports a batch that the keeper has published again for longer than this. An hour is longer than most outages. */
  waitingMaxMs: 3_600_000,
  /** Requests of one sale and kind that a run reads again, one by one. The next run reads the rest. */
  readsMax: 1000,
};

/**
 * Everything that operators may do, from the command line or over HTTP. Opens a connection when a method first needs it.
 * `close` ends the connections that were opened here. `S` lists the sections of the given configuration: a method that
 * needs another section does not compile.
 */
export class Operator<S extends SectionName> {
  readonly #config: Config<S>;
  readonly #log: Log;
  readonly #given: OperatorParts;
  readonly #openChannels: { close(): Promise<void> }[] = [];
  #mysql: MysqlPool | null = null;
  #redis: Promise<RedisConnection> | null = null;
  #minter: OrderIdMinter | null = null;

  constructor(config: Config<S>, log: Log, given: OperatorParts = {}) {
    this.#config = config;
    this.#log = log;
    this.#given = given;
  }

  audit(this: Operator<'mysql'>): AuditLog {
    return createAuditLog(this.#openMysql());
  }

  refunds(this: Operator<'mysql'>): RefundRepository {
    return createRefundRepository(this.#openMysql());
  }

  paymentCases(this: Operator<'mysql'>): PaymentCases {
    return createPaymentCases(this.#openMysql());
  }

  revocations(this: Operator<'mysql'>): RevocationRepository {
    return createRevocationRepository(this.#openMysql());
  }

  /** Records that MySQL was restored to an earlier moment. @throws OperationalError mysql; then nothing was changed */
  restored(this: Operator<'mysql'>, actor: string): Promise<RestoredMarks> {
    return markRestored(this.#openMysql(), actor);
  }

  orderSearch(this: Operator<'mysql'>): OrderSearch {
    return createOrderSearch(this.#openMysql());
  }

  /** Opens the rules, which MySQL stores. They can be changed while Redis is down, when a change may matter most. */
  async rules(this: Operator<'mysql' | 'redis'>): Promise<RuleAdmin> {
    const redis = await this.#openRedis().catch((error: unknown) => {
      if (error instanceof OperationalError) return error;
      throw error;
    });
    const broadcast =
      redis instanceof OperationalError ? { announce: () => Promise.reject(redis) } : createRuleBroadcast(redis);
    return new RuleAdmin({ repository: createRuleRepository(this.#openMysql()), broadcast, log: this.#log });
  }

  /** Opens the reports of the version that each api follows. @throws OperationalError redis, as does every method below */
  async ruleReports(this: Operator<'mysql' | 'redis'>): Promise<RuleReports> {
    return createRuleReports(await this.#openRedis());
  }

  async sales(this: Operator<'mysql' | 'redis'>): Promise<SaleAdmin> {
    return openSaleAdmin(await this.#openRedis(), this.#openMysql());
  }

  /** Opens the editor that changes, cancels and deletes sales. */
  async saleEditor(this: Operator<'mysql' | 'redis' | 'payment'>): Promise<SaleEditor> {
    const faultOf = priceFaultOf(this.#config.payment);
    return openSaleEditor(await this.#openRedis(), this.#openMysql(), faultOf, this.#log);
  }

  /** Returns the sales that open within this time or have opened, and the preparations that each lacks. */
  async plan(
    this: Operator<'mysql' | 'redis' | 'rocketmq' | 'brokerAccess'>,
    withinMs: number,
  ): Promise<PlannedSale[]> {
    const readiness = openReadiness(await this.#openRedis(), this.#config, this.#log);
    const schedule = createSaleSchedule(this.#openMysql());
    return planSales({ schedule, readiness, nowMs: () => clock.nowMs() }, withinMs);
  }

  async deadLetters(this: Operator<'mysql' | 'redis' | PublishSections>): Promise<DeadLetterAdmin> {
    const redis = await this.#openRedis();
    const mysql = this.#openMysql();
    const producer = this.#producer();
    return new DeadLetterAdmin({
      deadLetters: createDeadLetterRepository(mysql),
      repository: createOrderRepository(mysql),
      store: createBatchStore(redis),
      states: createOrderStates(mysql),
      coupons: createCouponRepository(mysql),
      channel: this.#openRedrives(),
      deadlines: this.#openChannel(async () => (await loadChannels()).createDeadlineChannel(producer)),
      events: this.#openChannel(async () => (await loadChannels()).createOrderEventChannel(producer)),
      minter: this.#openMinter(mysql),
      clock,
    });
  }

  async reconcile(this: Operator<'mysql' | 'redis' | PublishSections | 'reconcile'>): Promise<ReconcileAdmin> {
    const redis = await this.#openRedis();
    const mysql = this.#openMysql();
    const minter = this.#openMinter(mysql);
    return new ReconcileAdmin(
      {
        store: { ...createBatchStore(redis), ...createReconcileStore(redis), ...createRepairStore(redis) },
        repository: createReconcileRepository(mysql),
        jobs: createCompensationRepository(mysql),
        runs: createReconcileRuns(mysql, clock),
        sales: createSaleRepository(mysql),
        outbox: createOutbox(mysql),
        fail: { repository: wrapped('order repository', createOrderRepository(mysql)), minter, clock },
        channel: this.#openRedrives(),
        clock,
        log: this.#log,
      },
      { ...this.#config.reconcile, ...RECONCILE_LIMITS },
    );
  }

  /**
   * Opens the trace of a purchase, which only reads.
   * @param broker null: the broker is not asked
   */
  async trace(this: Operator<'mysql' | 'redis' | 'keeper'>, broker: TraceBroker | null): Promise<TracePurchase> {
    const redis = await this.#openRedis();
    const mysql = this.#openMysql();
    return new TracePurchase(
      {
        sales: createSaleRepository(mysql),
        stock: createStockStore(redis, this.#log),
        store: createTraceStore(redis),
        repository: createTraceRepository(mysql),
        deadLetters: createDeadLetterRepository(mysql),
        jobs: createCompensationRepository(mysql),
        audit: createAuditLog(mysql),
        broker,
      },
      { redriveAfterMs: this.#config.keeper.redriveAfterMs },
    );
  }

  /** Rebuilds a sale in Redis from MySQL. Without `force` only if the sale needs it. */
  async repair(
    this: Operator<'mysql' | 'redis' | 'repair' | 'brokerAccess'>,
    saleId: string,
    order: RepairOrder,
    { force }: { readonly force: boolean },
  ): Promise<OrderedRepair> {
    const stores = rebuildStores(await this.#openRedis(), this.#openMysql());
    const ports = { ...stores, progress: workerProgressOf(this.#config), clock, log: this.#log };
    return repairAsked(saleId, force, ports, this.#config.repair, order);
  }

  /** Splits a sale into more buckets. */
  async reshard(
    this: Operator<'mysql' | 'redis' | 'repair' | 'brokerAccess'>,
    saleId: string,
    order: ReshardOrder,
  ): Promise<Resharded> {
    const redis = await this.#openRedis();
    const stores = rebuildStores(redis, this.#openMysql());
    const cache = createSaleSnapshotCache(redis);
    const progress = workerProgressOf(this.#config);
    return reshardSale(saleId, order, { ...stores, cache, progress, clock, log: this.#log }, this.#config.repair);
  }

  /** Never rejects. */
  async close(): Promise<void> {
    await Promise.all(this.#openChannels.map((channel) => channel.close()));
    await this.#minter?.close();
    const redis = await this.#redis?.catch(() => null);
    await redis?.close();
    await this.#mysql?.close();
  }

  #openMysql(this: Operator<'mysql'>): MysqlPool {
    return this.#given.mysql ?? (this.#mysql ??= openMysqlPool(this.#config.mysql));
  }

  async #openRedis(this: Operator<'redis'>): Promise<RedisConnection> {
    return this.#given.redis ?? (this.#redis ??= openRedis(this.#config.redis, this.#log));
  }

  #openRedrives(this: Operator<PublishSections>): RedriveChannel {
    if (this.#given.redrives !== undefined) return this.#given.redrives;
    const producer = this.#producer();
    return this.#openChannel(async () => (await loadChannels()).createRedriveChannel(producer));
  }

  #producer(this: Operator<PublishSections>): ProducerOptions {
    return { ...brokerConnection(this.#config, this.#log), signatures: messageSignatures(this.#config.messages) };
  }

  #openChannel<M>(start: () => Promise<Channel<M>>): Channel<M> {
    const channel = startedWhenUsed(start);
    this.#openChannels.push(channel);
    return channel;
  }

  /** Takes a slot for order ids when the first purchase is given up. */
  #openMinter(mysql: MysqlPool): OrderIdMinter {
    this.#minter ??= createOrderIdMinter(
      { slots: createWorkerSlots(mysql), clock, log: this.#log },
      { owner: `operator-${randomBytes(8).toString('hex')}`, leaseMs: SLOT_LEASE_MS },
    );
    return this.#minter;
  }
}

/** Opens an operator for one piece of work of a command, and closes it again. */
export async function withOperator<S extends SectionName, T>(
  config: Config<S>,
  log: Log,
  work: (operator: Operator<S>) => Promise<T>,
  given: OperatorParts = {},
): Promise<T> {
  const operator = new Operator(config, log, given);
  try {
    return await work(operator);
  } finally {
    await operator.close();
  }
}

export function openSaleAdmin(redis: RedisConnection, mysql: MysqlPool): SaleAdmin {
  return new SaleAdmin({
    repository: createSaleRepository(mysql),
    store: createSaleStore(redis),
    cache: createSaleSnapshotCache(redis),
  });
}

export function openSaleEditor(redis: RedisConnection, mysql: MysqlPool, faultOf: PriceFault, log: Log): SaleEditor {
  return new SaleEditor({
    edits: createSaleEdits(mysql),
    sales: createSaleRepository(mysql),
    admin: openSaleAdmin(redis, mysql),
    store: createSaleStore(redis),
    stock: createStockStore(redis, log),
    transfers: createTransferStore(redis),
    cache: createSaleSnapshotCache(redis),
    nowMs: () => clock.nowMs(),
    faultOf,
  });
}

/** Opens the stores that rebuild a sale in Redis from MySQL, for a repair or a split into more buckets. */
export function rebuildStores(redis: RedisConnection, mysql: MysqlPool) {
  const { orderPage, unlistedOrders, findSale } = createReconcileRepository(mysql);
  const { setState } = createSaleStore(redis);
  const store = { ...createRepairStore(redis), setState };
  const repository = { ...createRepairRepository(mysql), orderPage, unlistedOrders, findSale };
  return {
    store: wrapped('repair store', store),
    repository: wrapped('repair repository', repository),
    sales: createSaleRepository(mysql),
  };
}

/** Null without a known name server, because the broker cannot be asked. */
export const workerProgressOf = ({ repair, brokerAccess }: Config<'repair' | 'brokerAccess'>): WorkerProgress | null =>
  repair.namesrv === '' ? null : createWorkerProgress(repair.namesrv, brokerAccessOf(brokerAccess));

interface Channel<M> {
  publish(message: M): Promise<void>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** The broker client takes longer to load than most commands take to run, and few commands publish. */
const loadChannels = () => import('../rocketmq/plain-channels.js');

/**
 * Returns a producer that starts with its first message, since an operator seldom needs it. Retries a failed start at the
 * next message.
 */
function startedWhenUsed<M>(start: () => Promise<Channel<M>>): Channel<M> {
  let opening: Promise<Channel<M>> | null = null;
  return {
    async publish(message) {
      opening ??= start().catch((error: unknown) => {
        opening = null;
        throw error;
      });
      await (await opening).publish(message);
    },
    async close() {
      const channel = await opening?.catch(() => null);
      await channel?.close();
    },
  };
}
