import { NO_PAGES } from '../helpers/no-pages.js';
import { systemClock as clock } from '../../src/process/system-clock.js';
import type { Batch } from '../../src/core/batch.js';
import { isId, isOrderId, isPaymentId, isSaleId, isUserId } from '../../src/core/ids.js';
import { type Body, DegradedReads, FallbackCache } from '../../src/admission/degrade/degraded-reads.js';
import { Degrade, degradeRules } from '../../src/admission/degrade/degrade.js';
import { SwitchAdmin } from '../../src/operate/rules/switches.js';
import { Admission } from '../../src/admission/admission.js';
import { createLimitedAddress } from '../../src/admission/limits/limited-addresses.js';
import { Lists, listsRules } from '../../src/admission/lists/lists.js';
import { NetworkSet } from '../../src/admission/lists/network-set.js';
import { QueuePasses, WaitingRooms } from '../../src/admission/queue/waiting-rooms.js';
import { queueRules } from '../../src/admission/queue/queue-rules.js';
import { RequestSignatures, signRules } from '../../src/admission/sign/request-signatures.js';
import { readKeyring } from '../../src/core/hmac.js';
import { Seals } from '../../src/admission/sign/seals.js';
import { PurchaseTokens } from '../../src/admission/sign/purchase-tokens.js';
import { RuleAdmin } from '../../src/operate/rules/rule-admin.js';
import { newLifecycle } from '../../src/http/answer.js';
import { createBuyersServer, createOperatorsServer } from '../../src/http/server.js';
import { createClientAddress } from '../../src/http/client-address.js';
import { Cors } from '../../src/http/cors.js';
import { PAYMENT_SIGNATURE, readPaymentEvent } from '../../src/http/routes/payment-webhook.js';
import { apiOf } from '../../src/http/route.js';
import { newOperatorPlaces, type HttpServices } from '../../src/http/services.js';
import { ROUTES, type ApiServices } from '../../src/programs/routes.js';
import { createWebhookVerifier } from '../../src/http/webhook-signature.js';
import { createHttpMetrics } from '../../src/http/metrics.js';
import { LiveSnapshots } from '../../src/operate/live/live-snapshots.js';
import { BrokerViews } from '../../src/operate/broker/broker-views.js';
import { SaleAnswers } from '../../src/http/sale-answers.js';
import { createRegistry } from '../../src/process/telemetry.js';
import { cancelOrder, getOrder, payOrder } from '../../src/orders/buyer-orders.js';
import { createPaymentSimulator } from '../../src/payment/simulator.js';
import type { Log } from '../../src/core/ports/log.js';
import type { MessageInspection } from '../../src/operate/broker/rocketmq-inspection.js';
import type { PurchaseChannel } from '../../src/core/ports/channels.js';
import { Batcher } from '../../src/purchase/batcher.js';
import { createCheckBack } from '../../src/purchase/check-back.js';
import { FollowPurchase } from '../../src/purchase/follow-purchase.js';
import { ClosedRows } from '../../src/purchase/closed-rows.js';
import { PurchaseGate } from '../../src/purchase/gate.js';
import { GetPurchase } from '../../src/purchase/get-purchase.js';
import { placeInSpan } from '../../src/purchase/batch-steps.js';
import { placeBatch } from '../../src/purchase/place-batch.js';
import { SoldOutFlags } from '../../src/purchase/sold-out-flags.js';
import { bucketKeys, snapshotKey, notificationsChannel } from '../../src/redis/keys.js';
import { GetSale } from '../../src/sales/get-sale.js';
import { SaleSnapshots } from '../../src/sales/sale-snapshots.js';
import { SaleEditor } from '../../src/sales/edit-sale.js';
import { SaleAdmin } from '../../src/sales/sale-admin.js';
import type { UnitFetcher } from '../../src/sales/stock/gather-units.js';
import { MemoryNonceStore } from '../helpers/memory/memory-admission-stores.js';
import { MemoryPurchaseTokenStore } from '../helpers/memory/memory-admission-stores.js';
import { MemoryLineStore } from '../helpers/memory/memory-line-store.js';
import { MemoryPaymentAttempts } from '../helpers/memory/memory-payment-attempts.js';
import { MemoryPaymentCases } from '../helpers/memory/memory-payment-cases.js';
import { MemoryRefundRepository } from '../helpers/memory/memory-refund-repository.js';
import {
  MemoryRuleBroadcast,
  MemoryRuleReports,
  MemoryRuleRepository,
} from '../helpers/memory/memory-rule-repository.js';
import { hmacAuth } from '../helpers/authenticator.js';
import type { OrderSearch } from '../../src/core/ports/order-search.js';
import { MemorySaleEdits } from '../helpers/memory/memory-sale-edits.js';
import { MemorySaleSnapshotCache } from '../helpers/memory/memory-sale-snapshot-cache.js';
import { MemoryTracing } from '../helpers/memory/memory-tracing.js';
import { MemoryTransferStore } from '../helpers/memory/memory-transfer-store.js';
import { signedMessages } from '../helpers/signatures.js';
import { ReconcileWorld } from '../unit/operate/reconcile/reconcile-world.js';
import { FORGER, SMUGGLED } from './tokens.js';
import { noAdmissionMetrics } from '../helpers/no-metrics.js';
import { partial } from '../helpers/partial.js';

export const SECRET = 'a-secret-of-hostile-tests-of-forty-bytes';
export const WEBHOOK_SECRET = 'a-webhook-secret-of-hostile-tests-of-forty';
/** A sale that stays open and that no case names. */
export const QUIET_SALE = '900000000000000001';
/** The sale from which the buyers of the cases buy. */
export const BUSY_SALE = '7';
/** The sale that the admins of the cases open, pause and close. */
export const MOVED_SALE = '8';

/** The origin whose pages may read answers. */
export const ALLOWED_ORIGIN = 'https://shop.example';

/** More units than all cases can buy. */
const UNITS = 1_000_000_000;

/** Checks for ids, by the parameter names of our types. */
const SHAPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  userId: isUserId,
  requestId: isId,
  batchId: isId,
  saleId: isSaleId,
  orderId: isOrderId,
  paymentId: isPaymentId,
  actor: isUserId,
  id: isId,
};
/** Matches every key that the product may create. */
const KEY =
  /^sk:(\{[1-9][0-9]{0,17}:[0-9]{1,3}\}:(stock|sale|buyers|requests|pending|redrives|moves|staged:(requests|buyers)|tx:[A-Za-z0-9_-]{0,64})|card:\{[1-9][0-9]{0,17}:0\}(:lock)?|news:[1-9][0-9]{0,17})$/;
/** Empty lists. */
const LISTS = listsRules.parse({
  mode: 'on',
  addresses: { deny: ['203.0.113.0/24'] },
  agents: { deny: ['nobody-has-this'] },
  users: { deny: ['nobody'] },
});
/** Makes every admission layer check buyers and refuse no request. */
const SIGN = signRules.parse({ mode: 'dry_run', keys: ['app'], tokens: { mode: 'dry_run' } });
const QUEUE = queueRules.parse({ mode: 'dry_run' });
const ADMISSION_KEY = 'app:a-key-of-hostile-tests-of-forty-bytes-long';
const DEGRADE = degradeRules.parse({ mode: 'on' });
const LIMITS = { memoryTtlMs: 20, memoryMax: 100, lockMs: 1000 };

/**
 * Runs the real HTTP server and use cases on in-memory servers, records every commit, and checks all calls of ports.
 */
export class HostileWorld extends ReconcileWorld {
  /** Violations found so far: malformed ids, forged buyers, bugs. */
  readonly wrongs: string[] = [];
  readonly logged: string[] = [];
  readonly registry = createRegistry('api');
  /** Records spans of everything that a caller sends. */
  readonly #tracing = new MemoryTracing();
  readonly cache = new MemorySaleSnapshotCache(this.clock, { ttlMs: 20 });

  override readonly log: Log = {
    debug: (...line) => this.#note(line),
    info: (...line) => this.#note(line),
    warn: (...line) => this.#note(line),
    error: (...line) => this.#note(line),
  };

  async start(): Promise<{ port: number; operatorsPort: number; stop: () => Promise<void> }> {
    for (const saleId of [QUIET_SALE, BUSY_SALE, MOVED_SALE]) {
      const closesAtMs = this.clock.nowMs() + 10 * 365 * 86_400_000;
      await this.openSale({ saleId, stock: UNITS, limitPerBuyer: UNITS, closesAtMs });
    }
    await this.deadLetters.park({
      messageId: 'm1',
      group: 'seckill-order-writer',
      originTopic: 'seckill-purchase',
      saleId: null,
      batchId: null,
      body: '{"v":',
      reason: 'undecodable',
      detail: 'not JSON',
      attempts: 1,
    });
    const options = {
      port: 0,
      host: '127.0.0.1',
      maxConnections: 10_000,
      headersTimeoutMs: 200,
      requestTimeoutMs: 400,
      keepAliveTimeoutMs: 5000,
      requestsPerSecond: 100_000,
    };
    const [api, lifecycle] = [apiOf(ROUTES, this.#services()), newLifecycle()];
    const buyers = createBuyersServer(api, lifecycle, options);
    const operators = createOperatorsServer(api, lifecycle, options);
    const [{ port }, { port: operatorsPort }] = await Promise.all([buyers.listen(), operators.listen()]);
    return { port, operatorsPort, stop: async () => void (await Promise.all([buyers.drain(0), operators.drain(0)])) };
  }

  /** Returns the newest order id, or 1 if there is no order. */
  get lastOrderId(): string {
    return this.mysql.allOrders.at(-1)?.orderId ?? '1';
  }

  #services(): ApiServices {
    const store = this.#seen(this.store);
    const mysql = this.#seen(this.mysql);
    const transitions = this.#seen(this.transitions);
    const cache = this.#seen(this.cache);
    const snapshots = new SaleSnapshots({ repository: mysql, cache, clock }, LIMITS);
    // these sales have one bucket each
    const units = partial<UnitFetcher>({ count: async () => null, fetch: async () => ({ outcome: 'unsure' }) });
    const flags = new SoldOutFlags({ lifeMs: 500, buyersMax: 1000 }, { store, units, clock, log: this.log });
    const channel = this.#recording(store);
    const waiting = {
      snapshots,
      store,
      repository: mysql,
      closedRows: new ClosedRows(mysql, clock),
      notifications: this.store.notifications,
      clock,
      random: Math.random,
    };
    const metrics = { changeFound: () => undefined };
    const refunds = this.#seen(new MemoryRefundRepository(this.transitions, this.clock));
    const cases = this.#seen(new MemoryPaymentCases(this.transitions, this.clock));
    const attempts = this.#seen(new MemoryPaymentAttempts(this.clock, this.mysql));
    const placePorts = { store, channel, units, flags, snapshots, clock, log: this.log };
    const batcher = new Batcher(
      { sizeMax: 16, inFlightMax: 8, gatherMs: 0, queueMax: 1000, waitMaxMs: 2000, roundsMax: 5 },
      {
        place: (bucket, purchases, spans, deliver) =>
          spans === null
            ? placeBatch(bucket, purchases, '', deliver, placePorts)
            : placeInSpan(bucket, purchases, spans, deliver, placePorts, this.#tracing),
        clock,
        metrics: partial({ batchPlaced: () => undefined, queueWaited: () => undefined }),
        onError: (error) => this.#wrong('batcher', error),
      },
    );
    const rules = new RuleAdmin({
      repository: new MemoryRuleRepository(),
      broadcast: new MemoryRuleBroadcast(),
      log: this.log,
    });
    // Sees every request, but degrades no answer.
    const degrade = new Degrade({ rules: () => DEGRADE, refuses: () => false, metrics: noAdmissionMetrics });
    const answers = (): FallbackCache<Body> => new FallbackCache({ rules: () => DEGRADE.cache, clock, max: 1000 });
    const reads = {
      status: new DegradedReads('status', answers()),
      sale: new DegradedReads('sale', answers()),
      order: new DegradedReads('order', answers()),
    };
    return {
      auth: hmacAuth(SECRET),
      // Checks every address, trusts the header for the client address, and refuses no request.
      admission: new Admission(
        partial({ isAnyOn: true, count: () => undefined }),
        [new Lists(() => LISTS)],
        noAdmissionMetrics,
      ),
      unpaidPause: partial({ check: () => null }),
      degrade,
      reads,
      reshard: async () => ({ outcome: 'already_resharded' }),
      repair: async () => ({ outcome: 'not_needed' }),
      bucketsOf: async () => [],
      saleSeconds: this.#seen({
        landed: partial({ bySecond: async (_saleId, _fromMs, readToMs) => ({ seconds: new Map(), readToMs }) }),
        answers: partial({ read: async () => new Map() }),
        keptMs: 3_600_000,
      }),
      live: new LiveSnapshots(
        {
          sales: partial({ look: async () => ({ sales: [], moreSales: 0, missing: [] }) }),
          programs: partial({ live: async () => [], vanished: async () => [] }),
          own: () => null,
          clock,
          log: partial({ error: ({ err }: { err?: unknown }) => void this.#wrong('bug', err) }),
        },
        1000,
      ),
      breakers: partial({ mode: 'off', standings: [] }),
      operatorPlaces: newOperatorPlaces(),
      mq: new BrokerViews(() => NO_MESSAGES, clock),
      prices: { currency: 'EUR', faultOf: () => null },
      plan: () => Promise.resolve([]),
      editor: this.#seen(
        new SaleEditor({
          edits: new MemorySaleEdits(this.mysql, clock),
          sales: mysql,
          admin: new SaleAdmin({ repository: mysql, store, cache }),
          store,
          stock: store,
          transfers: new MemoryTransferStore(this.store),
          cache,
          nowMs: () => clock.nowMs(),
          faultOf: () => null,
        }),
      ),
      orderSearch: NO_ORDERS,
      cell: 0,
      addressOf: createClientAddress(new NetworkSet(['127.0.0.0/8'])),
      addressLimit: { isOn: false, refuses: () => false },
      limitedAddress: createLimitedAddress(),
      ...this.#admission(snapshots, flags),
      gate: new PurchaseGate({ snapshots, flags, batcher, clock, closedRows: waiting.closedRows, store }),
      getPurchase: new GetPurchase({ ...waiting, metrics }, 1000),
      followPurchase: new FollowPurchase(
        { ...waiting, metrics },
        { followersMax: 1000, followersPerBuyerMax: 50, pollMaxMs: 1000 },
      ),
      streamTimes: { heartbeatMs: 15_000, streamMaxMs: 60_000, retryMs: 2000 },
      getSale: new GetSale({ snapshots, store, units, clock }, { ttlMs: 20, max: 100 }),
      findOrder: (orderId) => mysql.findOrder(orderId),
      getOrder: (orderId, userId) => getOrder(orderId, userId, mysql),
      notifications: { list: () => Promise.resolve([]), markRead: () => Promise.resolve(0) },
      refundsOf: (orderId) => refunds.refundsOf(orderId),
      payOrder: (request) =>
        payOrder(request, {
          repository: mysql,
          transitions,
          attempts,
          refunds,
          provider: createPaymentSimulator(),
          clock,
          log: this.log,
        }),
      cancelOrder: (orderId, userId) => cancelOrder(orderId, userId, { repository: mysql, transitions }),
      webhook: {
        verifier: createWebhookVerifier([WEBHOOK_SECRET]),
        header: PAYMENT_SIGNATURE,
        read: readPaymentEvent,
        mode: 'live',
        pay: (...payment) => transitions.pay(...payment),
        resolve: () => Promise.resolve(),
        money: {
          refundedElsewhere: async () => 'does_not_fit',
          cameBack: async () => false,
          disputed: async () => undefined,
        },
        isRefund: (paymentId) => refunds.has(paymentId),
        cases,
      },
      sales: new SaleAdmin({ repository: mysql, store, cache }),
      deadLetters: this.#seen(this.admin),
      reconcile: this.#seen(this.reconcile),
      resolveLost: this.resolveLost,
      coupons: { find: async () => null, list: async () => [] },
      couponDesk: {
        redeem: async () => ({ outcome: 'refused', why: 'not_found' }),
        revokeNext: async () => ({ outcome: 'not_found', code: null }),
      },
      refunds: {
        list: (filter, page) => refunds.list(filter, page),
        counts: async () => [],
        takeOn: (paymentId, actor) => refunds.takeOn(paymentId, actor),
      },
      paymentCases: cases,
      witness: { list: () => Promise.resolve([]), close: () => Promise.resolve(null) },
      orderRefunds: partial({
        cancel: async () => 'not_found' as const,
        order: async () => ({ outcome: 'not_found' as const }),
        refundsOf: async () => [],
        again: async () => ({ outcome: 'not_found' as const }),
        takeOnRefund: async () => ({ outcome: 'not_found' as const }),
        voidNext: async () => ({ outcome: 'not_found' as const }),
      }),
      currenciesOf: NO_ORDERS.currenciesOf,
      webhooks: this.#seen(
        partial({
          list: async () => [],
          create: async () => 'There are too many.',
          edit: async () => null,
          remove: async () => false,
        }),
      ),
      webhookDeliveries: partial({ list: async () => [], resend: async () => 0 }),
      flawOfWebhook: () => null,
      testWebhook: async () => null,
      rules: this.#seen(rules),
      ruleReports: new MemoryRuleReports(clock),
      switches: this.#seen(new SwitchAdmin(rules)),
      revocations: this.#seen(
        partial({
          add: (one, actor) => Promise.resolve({ ...one, number: 1, actor, atMs: 0 }),
          newest: () => Promise.resolve([]),
        }),
      ),
      audit: this.#seen({ list: () => Promise.resolve([]), append: () => Promise.resolve() }),
      profiler: this.#seen({ profile: () => Promise.resolve('{}') }),
      room: this.#seen(
        partial({
          show: async () => ({ outcome: 'rules_unfit', reasons: [] }),
          setRate: async () => ({ outcome: 'version_conflict', version: 1 }),
          steer: async () => ({ word: 'no_room', buyers: 0 }),
        }),
      ),
      trace: this.#seen(partial({ trace: async () => ({ outcome: 'not_found', why: 'Nobody knows it.' }) })),
      ready: () => Promise.resolve({ ready: true, dependencies: [] }),
      isReady: () => Promise.resolve(true),
      cors: new Cors([ALLOWED_ORIGIN]),
      pages: NO_PAGES,
      metricsPage: partial({ isFor: () => true, read: () => this.registry.metrics() }),
      metrics: createHttpMetrics(this.registry),
      saleAnswers: new SaleAnswers(
        this.registry,
        (saleId) => snapshots.peek(saleId) !== undefined,
        () => clock.monotonicMs(),
      ),
      tracing: this.#tracing,
      traceIdsStored: 'all',
      accessLog: null,
      log: this.log,
      onBug: (error) => void this.#wrong('bug', error),
    };
  }

  #admission(
    snapshots: SaleSnapshots,
    flags: SoldOutFlags,
  ): Pick<HttpServices, 'signatures' | 'passes' | 'tokens' | 'rooms' | 'snapshots' | 'clock'> {
    const seals = new Seals(readKeyring(ADMISSION_KEY));
    const keys = readKeyring(ADMISSION_KEY);
    const metrics = noAdmissionMetrics;
    const [nonces, store] = [new MemoryNonceStore(clock), new MemoryPurchaseTokenStore(clock)];
    const isSoldOut = (saleId: string): boolean => flags.isSoldOut({ saleId, buckets: 1 });
    return {
      signatures: new RequestSignatures({ rules: () => SIGN, keys, nonces: this.#seen(nonces), clock, metrics }),
      passes: new QueuePasses({ rules: () => QUEUE, seals, clock, metrics }),
      tokens: new PurchaseTokens({ rules: () => SIGN.tokens, seals, store: this.#seen(store), clock, metrics }),
      rooms: new WaitingRooms({
        rules: () => QUEUE,
        seals,
        store: new MemoryLineStore(clock),
        isSoldOut,
        clock,
        metrics: { moved: () => undefined },
      }),
      snapshots,
      clock,
    };
  }

  /** Records a batch as soon as it is committed, so that no buyer waits. */
  #recording(store: ReconcileWorld['store']): PurchaseChannel {
    const channel = this.broker.purchaseChannel(
      createCheckBack((ref) => store.resolve(ref), signedMessages(), this.log),
    );
    const recorded = (batch: Batch): Promise<void> =>
      this.work(batch).catch((error: unknown) => void this.#wrong('worker', error));
    return {
      sendHalf: async (batch) => {
        const half = await channel.sendHalf(batch);
        if (typeof half === 'string') return half;
        return { rollback: () => half.rollback(), commit: () => half.commit().then(() => recorded(batch)) };
      },
    };
  }

  /** Wraps a port and checks every argument. */
  #seen<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]): unknown => {
          this.#inspect(String(name), args);
          return Reflect.apply(member, target, args);
        };
      },
    });
  }

  #inspect(call: string, args: readonly unknown[]): void {
    const text = JSON.stringify(args) ?? '';
    if (text.includes(FORGER) || text.includes(SMUGGLED)) this.#wrong(call, `reached by a forger: ${text}`);
    for (const arg of args) {
      if (typeof arg === 'string' && !isUserId(arg)) this.#wrong(call, `no id, sale, word or actor: ${text}`);
      if (typeof arg !== 'object' || arg === null) continue;
      const fields = arg as Record<string, unknown>;
      for (const [name, isShaped] of Object.entries(SHAPES)) {
        if ((fields[name] ?? null) !== null && !isShaped(fields[name])) this.#wrong(call, `${name}: ${text}`);
      }
      const { saleId, bucket, batchId } = fields as { saleId: string; bucket?: number; batchId?: string };
      if (typeof bucket !== 'number') continue;
      const keys = bucketKeys({ saleId, bucket });
      for (const key of [
        ...Object.values(keys),
        keys.tx + (batchId ?? ''),
        snapshotKey(saleId),
        notificationsChannel(saleId),
      ]) {
        if (!KEY.test(key)) this.#wrong(call, `key ${key}`);
      }
    }
  }

  #wrong(where: string, what: unknown): 'outcome_unknown' {
    this.wrongs.push(`${where}: ${what instanceof Error ? what.stack : String(what)}`.slice(0, 2000));
    return 'outcome_unknown';
  }

  #note(line: readonly [object, string]): void {
    this.logged.push(JSON.stringify(line));
  }
}

/** A RocketMQ cluster without messages. */
const NO_ORDERS: OrderSearch = {
  page: async () => ({ orders: [], next: null }),
  detailsOf: async () => new Map(),
  currenciesOf: async () => new Map(),
};

const NO_MESSAGES: MessageInspection = {
  status: async () => ({
    brokers: [],
    groups: [],
    deadLetters: [],
    halves: { open: 0, oldestMs: null, checksMost: 0, more: false },
    discarded: 0,
    producers: {},
  }),
  groups: async () => [],
  topics: async () => [],
  halves: async () => ({ open: [], more: false }),
  discarded: async () => [],
  resume: async () => undefined,
  producers: async () => [],
  consumers: async () => [],
  messagesOfKey: async () => [],
  messagesOfId: async () => [],
  browse: async () => ({ messages: [], more: false }),
};
