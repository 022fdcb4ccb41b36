import type {
  AuditEntry,
  Breakers,
  BrokerClient,
  Bucket,
  CompensationJob,
  DeadLetter,
  DeadLetterWithOrders,
  DiscardedHalf,
  Message,
  ConsumerGroup,
  HalfMessage,
  JsonObject,
  Me,
  MqList,
  MqStatus,
  FoundCoupon,
  FoundOrder,
  PlannedSale,
  Trace,
  Readiness,
  ReconcileRun,
  PaymentCase,
  Webhook,
  WebhookDelivery,
  ListedRefund,
  OrderRefund,
  Role,
  RuleChange,
  RulesStatus,
  Sale,
  SaleSeconds,
  Snapshot,
  Stage,
  StoredRules,
  Switches,
  Topic,
  WaitingRoom,
} from '../../../web/console/api/types.js';
import { storedDeadLetter } from '../../helpers/memory/memory-dead-letters.js';
import { summaryBody } from '../../../src/operate/dead-letters/dead-letter-store.js';
import { DEFAULT_RULES } from '../../../src/admission/rules/rule-set.js';

/** Options for the answers of a day of selling, typed as the console reads them. `rows` is the length of each list. */
export interface CannedOptions {
  readonly rows: number;
  readonly role: Role;
  readonly nowMs: number;
}

const { body: _body, ...parked } = storedDeadLetter();
const PARKED = summaryBody(parked);

/** Names that are hard to lay out: wide characters, no spaces, and right-to-left text. */
const LONG = 'A-very-long-name-without-any-blank-that-goes-on-and-on-'.repeat(3) + '超长的名称';
const TITLES = [
  'Trail shoe, autumn run',
  'Espresso cup, set of two',
  '机械键盘 87 键',
  'Wool blanket',
  'Desk lamp',
  LONG,
];
const STOCKS = [40_000, 25_000, 12_000, 5_000, 2_000, 800];
const iso = (ms: number): string => new Date(ms).toISOString();
const list = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const pick = <T>(values: readonly T[], index: number): T => values[index % values.length] as T;
const batchId = (index: number): string => `x9QmT0yq4cM2nUo1bWv8${String(index).padStart(2, '0')}`;
const orderId = (index: number): string => String(7_201_584_613_220_352_000n + BigInt(index) * 4_096n);

export type Canned = ReturnType<typeof cannedAnswers>;

export function cannedAnswers({ rows, role, nowMs }: CannedOptions) {
  const secondMs = Math.floor(nowMs / 1000) * 1000;
  const me: Me & { roles: string[] } = {
    userId: 'olga@shop.example',
    roles: [role],
    role,
    expiresAtMs: nowMs + 3_540_000,
  };

  const sale = (index: number): Sale => ({
    saleId: String(41 + index),
    sku: pick(
      ['shoe-07', 'cup-2', 'kb-87', 'blanket', 'lamp', 'sku-with-a-name-that-is-as-long-as-it-may-be-0123456789'],
      index,
    ),
    title: pick(TITLES, index),
    priceCents: 1_999 + index * 250,
    currency: pick(['EUR', 'EUR', 'CNY'], index),
    limitPerBuyer: 2,
    opensAt: iso(opensMs(index)),
    closesAt: iso(opensMs(index) + 3_600_000),
    warmBefore: index % 3 === 1 ? null : '10m',
    paymentWindow: index % 2 === 1 ? null : '5m',
    stock: pick(STOCKS, index),
    sold: soldUntil(index, nowMs),
    buckets: index === 0 ? 4 : 1,
    epoch: 1,
    state: pick(['open', 'open', 'paused', 'warm', 'draft', 'closed'], index),
    retiredAt: null,
  });

  /** Returns the opening time of a sale: the first two sell, others are paused, about to open, drafts and over. */
  function opensMs(index: number): number {
    const round = Math.floor(index / 6) + 1;
    const fromNowMs = [-200_000, -260_000, -1_500_000, 540_000, round * 5_400_000, -round * 86_400_000];
    return nowMs + (fromNowMs[index % 6] as number);
  }
  /** Returns the units that buyers won in a second. */
  const accepted = (index: number, atMs: number): number => {
    const s = (atMs - opensMs(index)) / 1000;
    return s < 0 || index > 1
      ? 0
      : Math.round((420 - index * 200) * Math.exp(-s / 110) * (0.93 + 0.07 * Math.sin(s * 0.23 + index)));
  };
  const landed = (index: number, atMs: number): number =>
    Math.round((accepted(index, atMs - 2_000) + accepted(index, atMs - 3_000)) / 2);
  const sum = (of: typeof accepted, index: number, atMs: number): number => {
    let units = 0;
    for (let ms = Math.ceil(opensMs(index) / 1000) * 1000; ms <= atMs; ms += 1000) units += of(index, ms);
    return units;
  };
  function soldUntil(index: number, atMs: number): number {
    return index < 2 ? sum(landed, index, atMs) : index === 2 ? 9_812 : 0;
  }
  const heldAt = (index: number, atMs: number): number =>
    index < 2 ? Math.max(0, sum(accepted, index, atMs) - soldUntil(index, atMs)) : 0;
  const refused = (index: number, atMs: number) => {
    const won = accepted(index, atMs);
    return { sold_out: Math.round(won * 0.6), limit_reached: Math.round(won * 0.08), rate_limited: won > 0 ? 31 : 0 };
  };

  const snapshot = (tick: number): Snapshot => ({
    atMs: nowMs + tick * 1000,
    everyMs: 1_000,
    sales: list(Math.min(rows, 4), (index) => {
      const { saleId, title, sku, stock, buckets } = sale(index);
      const atMs = secondMs + tick * 1000 - 2_000;
      return {
        saleId,
        title: index === 3 ? LONG : title,
        sku,
        state: pick(['open', 'open', 'paused', 'warm'] as const, index),
        stock,
        sold: soldUntil(index, atMs),
        held: heldAt(index, atMs),
        left: stock - soldUntil(index, atMs) - heldAt(index, atMs),
        buckets,
        opensAtMs: opensMs(index),
        closesAtMs: opensMs(index) + 3_600_000,
        secondAtMs: atMs,
        acceptedPerSecond: index < 2 ? accepted(index, atMs) : 0,
        landedPerSecond: index < 2 ? landed(index, atMs) : 0,
        refusedPerSecond: index < 2 ? refused(index, atMs) : ({} as Record<string, number>),
        pending: index < 2 ? 7 - index * 5 : 0,
        pendingOldestMs: index < 2 ? 340 : null,
        waiting: index === 0 ? 1_204 : null,
      };
    }),
    moreSales: rows > 100 ? 12 : 0,
    programs:
      rows === 0
        ? []
        : [
            ...list(3, (index) => program('api', index)),
            ...list(2, (index) => program('worker', index)),
            program('keeper', 0),
          ],
    conditions:
      rows === 0
        ? []
        : CONDITIONS.map(([name, severity, about, text, agoMs]) => ({
            key: name,
            name,
            severity,
            about,
            text,
            sinceMs: nowMs - agoMs,
          })),
    missing: rows > 100 ? ['MySQL does not answer: orders that landed are not known.'] : [],
  });
  const program = (kind: 'api' | 'worker' | 'keeper', index: number) => ({
    kind,
    id: `shop-${kind}-${index + 1}:${4_120 + index * 7}`,
    seenMsAgo: 300 + index * 200,
    version: '1.0.0',
    ready: !(kind === 'worker' && index === 1),
    notReadySinceMs: kind === 'worker' && index === 1 ? nowMs - 12_000 : null,
    problems:
      kind === 'worker' && index === 1 ? ['mysql does not answer since 12 s: connect ECONNREFUSED 10.0.4.7:3306.'] : [],
  });

  const seconds = (fromMs: number, toMs: number): SaleSeconds => ({
    saleId: '41',
    fromMs,
    toMs,
    seconds:
      rows === 0
        ? []
        : list(Math.max(0, Math.round((toMs - fromMs) / 1000)), (index) => {
            const atMs = fromMs + index * 1000;
            return { atMs, won: accepted(0, atMs), landed: landed(0, atMs), refused: refused(0, atMs) };
          }).filter((second) => second.won + second.landed > 0),
  });

  const buckets: readonly Bucket[] = list(rows === 0 ? 0 : Math.max(4, Math.min(rows, 64)), (bucket) => ({
    bucket,
    state: bucket === 3 ? null : 'open',
    epoch: bucket === 3 ? null : 1,
    sameServer: bucket === 3 ? null : bucket !== 2,
    unitsLeft: bucket === 3 ? null : 2_697 - bucket * 113,
    pending: bucket === 3 ? null : (bucket * 3) % 5,
    pendingOldestMs: bucket === 1 ? 420 : null,
    error: null,
  }));

  const breakers: Breakers = {
    mode: 'on',
    breakers: [
      { name: 'redis', state: 'closed', sinceMs: null, by: 'shared' },
      { name: 'rocketmq', state: 'closed', sinceMs: null, by: 'shared' },
      {
        name: 'mysql',
        state: rows === 0 ? 'closed' : 'half_open',
        sinceMs: rows === 0 ? null : nowMs - 42_000,
        by: 'shared',
      },
    ],
  };

  const order = (index: number): FoundOrder => ({
    orderId: orderId(index),
    saleId: '41',
    userId: index === 4 ? LONG.slice(0, 128) : `buyer-${1_000 + index}`,
    requestId: `order-${index + 1}`,
    batchId: batchId(index),
    quantity: 1 + (index % 2),
    amountCents: 1_999 * (1 + (index % 2)),
    currency: 'EUR',
    state: pick(['paid', 'pending_payment', 'refunded', 'expired', 'failed', 'cancelled'] as const, index),
    reason: index % 6 === 4 ? 'units_lost' : null,
    createdAt: iso(nowMs - 90_000 - index * 1_300),
    expiresAt: null,
    paidAt: index % 6 === 0 || index % 6 === 2 ? iso(nowMs - 60_000) : null,
    refundedCents: index % 6 === 2 ? 500 : 0,
    metadata: null,
    sku: 'mug',
    title: 'A mug',
    unitPriceCents: 1_999,
    paymentId: index % 6 === 0 || index % 6 === 2 ? `pi_3MtwBwLkdIwHu7ix28a3ts${index}` : null,
  });

  const stage = (
    name: Stage['stage'],
    state: Stage['state'],
    afterMs: number | null,
    text: string,
    dueMs: number | null = null,
  ): Stage => ({
    stage: name,
    state,
    at: afterMs === null ? null : iso(nowMs - 90_000 + afterMs),
    dueAt: dueMs === null ? null : iso(nowMs + dueMs),
    text,
  });
  const parkedPurchase: Trace = {
    userId: 'buyer-1017',
    saleId: '41',
    requestId: 'order-18',
    traceId: null,
    state: 'parked',
    sentence:
      'Parked as dead letter 17 at ' +
      iso(nowMs - 30_000) +
      ', its units stay held. The last error: Data too long for column metadata. Nothing happens until an operator runs `seckill dlq replay 17` or `discard`.',
    nextAt: null,
    timeline: [
      stage('half', 'done', 0, `Batch ${batchId(17)} of 41 purchases was stored as a half message.`),
      stage('deduct', 'done', 14, 'Its 44 units were deducted in bucket 2, epoch 1.'),
      stage('commit', 'done', 21, 'The half message was committed, and the buyer was answered 202.'),
      stage(
        'delivery',
        'failed',
        30_410,
        'A worker was given it six times and could not record it; then it was parked as dead letter 17.',
      ),
      stage('row', 'waiting', null, 'No row is written before somebody replays or discards the dead letter.'),
      stage('payment', 'not_reached', null, 'There is no order to pay.'),
      stage('notification', 'not_reached', null, 'The buyer still sees the purchase as pending.'),
    ],
    steps: list(Math.max(9, Math.min(rows, 40)), (index) => ({
      at: index > 6 ? null : iso(nowMs - 90_000 + index * 4_700),
      source: pick(['broker', 'redis', 'mysql'] as const, index),
      what: pick(
        ['half_stored', 'batch_formed', 'parked', 'committed', 'deducted', 'dead_letter', 'marker', 'request', 'order'],
        index,
      ),
      detail: pick(
        [
          `${batchId(17)}: deducted`,
          `batch ${batchId(17)}: 41 purchases, epoch 1; on the clock of the api`,
          'dead letter 17: retries_exhausted, seckill-order-writer gave up; Data too long for column metadata',
        ],
        index,
      ),
    })),
  };
  const paidPurchase: Trace = {
    ...parkedPurchase,
    userId: 'buyer-1003',
    requestId: 'order-4',
    state: 'pending_payment',
    sentence: `Order ${orderId(3)} has waited for its payment for 88 s: without payment it expires in 812 s, and its units go back.`,
    nextAt: iso(nowMs + 812_000),
    timeline: [
      stage('half', 'done', 0, `Batch ${batchId(3)} of 38 purchases was stored as a half message.`),
      stage('deduct', 'done', 9, 'Its 40 units were deducted in bucket 0, epoch 1.'),
      stage('commit', 'done', 15, 'The half message was committed, and the buyer was answered 202.'),
      stage('delivery', 'done', 62, 'A worker received it.'),
      stage('row', 'done', 88, `Order ${orderId(3)} was written: 1 for 1999 cents EUR.`),
      stage('payment', 'waiting', null, 'The order is not paid.', 812_000),
      stage('notification', 'done', 93, 'The buyer was told that the order is there.'),
    ],
    steps: [
      {
        at: iso(nowMs - 90_000),
        source: 'mysql',
        what: 'recorded',
        detail: `order ${orderId(3)}: 1 for 1999 cents EUR, batch ${batchId(3)}`,
      },
    ],
  };

  const refundedPurchase: Trace = {
    ...paidPurchase,
    userId: 'buyer-1006',
    requestId: 'order-7',
    state: 'paid',
    sentence: 'The order is paid. Nothing is left to do.',
    nextAt: null,
    steps: paidPurchase.steps.map((step) => ({
      ...step,
      detail: `order ${orderId(6)}: 1 for 1999 cents EUR, batch ${batchId(6)}`,
    })),
  };

  const group = (index: number): ConsumerGroup => ({
    group:
      index === 5
        ? LONG.slice(0, 120)
        : pick(
            [
              'seckill-order-writer',
              'seckill-notifier',
              'seckill-coupon',
              'seckill-order-expirer',
              'seckill-order-writer-redrive',
              'seckill-dlq-collector',
            ],
            index,
          ),
    topic:
      index > 5
        ? `topic-${index}`
        : pick(
            [
              'seckill-purchase',
              'seckill-order-event',
              'seckill-order-event',
              'seckill-payment-deadline',
              'seckill-purchase-redrive',
              '%DLQ%seckill-order-writer',
            ],
            index,
          ),
    lag: pick([184, 2_310, 12, 0, 0, 0], index),
    oldestMs: pick([420, 38_000, 90, null, null, null], index),
    clients: pick([2, 1, 1, 1, 2, 0], index),
  });
  const mqStatus: MqStatus = {
    brokers: [
      {
        name: 'broker-a',
        address: '10.0.3.11:10911',
        down: null,
        version: 'V5_4_0',
        putPerSecond: 1_204.4,
        getPerSecond: 1_198.1,
        diskUsed: 0.412,
      },
      {
        name: 'broker-b',
        address: '10.0.3.12:10911',
        down: rows === 0 ? null : 'connect ECONNREFUSED 10.0.3.12:10911',
        version: '',
        putPerSecond: 0,
        getPerSecond: 0,
        diskUsed: 0,
      },
    ],
    groups: list(rows === 0 ? 0 : Math.max(6, Math.min(rows, 400)), group),
    deadLetters: [{ topic: '%DLQ%seckill-order-writer', kept: rows === 0 ? 0 : 3 }],
    halves: { open: rows === 0 ? 0 : 3, oldestMs: rows === 0 ? null : 14_200, checksMost: 1, more: false },
    discarded: rows === 0 ? 0 : 2,
    producers: { 'seckill-purchase': 3 },
  };
  const mqList = <T>(items: readonly T[]): MqList<T> => ({
    items,
    more: rows > 100,
    down: rows > 100 ? [{ name: 'broker-b', address: '10.0.3.12:10911', down: 'connect ECONNREFUSED' }] : [],
  });
  const half = (index: number): HalfMessage => ({
    broker: 'broker-a',
    topic: 'seckill-purchase',
    key: batchId(60 + index),
    messageId: `0A00030B00002A9F00000000${index}`,
    ageMs: 14_200 - (index % 7) * 1_900,
    checks: index === 0 ? 1 : 0,
    saleId: '41',
    purchases: 37 + (index % 9),
  });
  const discarded = (index: number): DiscardedHalf => ({
    ...half(index),
    ageMs: 3_700_000 + index * 400_000_000,
    discardedAtMs: nowMs - 120_000 - index * 3_600_000,
    resumedAtMs: index === 1 ? nowMs - 60_000 : null,
    offsetId: `0A00030B00002A9F0000000000${1_000 + index}`,
  });
  const topic = (index: number): Topic => ({
    topic:
      index > 5
        ? `topic-${index}`
        : pick(
            [
              'seckill-purchase',
              'seckill-purchase-redrive',
              'seckill-payment-deadline',
              'seckill-order-event',
              '%DLQ%seckill-order-writer',
              '%RETRY%seckill-order-writer',
            ],
            index,
          ),
    type: pick(['TRANSACTION', 'NORMAL', 'DELAY', 'NORMAL', '', ''], index),
    queues: 8,
    kept: pick([184_220, 12, 9_302, 181_004, 3, 0], index),
    lastStoredAtMs: index === 5 ? null : nowMs - 900 - index * 60_000,
  });
  const client = (index: number): BrokerClient => ({
    clientId: `shop-api-${index + 1}@4120@2a9f@${index}`,
    address: `10.0.2.${11 + index}:51022`,
    language: 'NODE_JS',
    group: 'seckill-purchase',
  });

  const batchBody = (index: number): string =>
    JSON.stringify({
      v: 1,
      batchId: batchId(index),
      saleId: '41',
      bucket: 2,
      epoch: 1,
      createdAtMs: nowMs - 90_000,
      purchases: list(3, (n) => ({
        userId: `buyer-${1_000 + index + n}`,
        requestId: `order-${index + n + 1}`,
        quantity: 1,
      })),
    });
  const message = (index: number): Message => ({
    broker: 'broker-a',
    topic: 'seckill-purchase',
    queueId: index % 8,
    queueOffset: 23_104 + index,
    physicalOffset: 1_048_576 + index,
    offsetId: `0A00030B00002A9F00000000002B${index}`,
    bornAtMs: nowMs - 60_000 - index * 210,
    storedAtMs: nowMs - 59_996 - index * 210,
    deliveries: index === 2 ? 3 : 0,
    body: rows > 100 && index === 0 ? batchBody(index).repeat(900) : batchBody(index),
    properties: {
      KEYS: batchId(index),
      UNIQ_KEY: `0100005E00A1B2C3D4000000${index}`,
      TRAN_MSG: 'true',
      PGROUP: 'seckill-purchase',
      signature: 'k1:3Xn0b2vYq1',
      INSTANCE_ID: 'shop',
    },
  });

  const deadLetter = (index: number): DeadLetter => ({
    ...PARKED,
    deadLetterId: String(17 + index),
    messageId: `0100005E00A1B2C3D400${index}`,
    saleId: index === 3 ? null : '41',
    batchId: index === 3 ? null : batchId(17 + index),
    reason: pick(['retries_exhausted', 'retries_exhausted', 'undecodable', 'forged', 'unknown_sale'] as const, index),
    detail: pick(
      [
        "Data too long for column 'metadata' at row 12",
        'Deadlock found when trying to get lock; try restarting transaction',
        'Unexpected token < in JSON at position 0',
        'the message has no valid signature',
        'sale 9001 does not exist',
      ],
      index,
    ),
    attempts: 6,
    state: pick(['parked', 'parked', 'parked', 'parked', 'replayed', 'discarded'] as const, index),
    parkedAt: iso(nowMs - 30_000 - index * 47_000),
    replays: index === 4 ? 1 : 0,
    replayStartedAt: index === 4 ? iso(nowMs - 20_000) : null,
    note: index === 4 ? 'all 3 purchases are recorded' : null,
  });
  const deadLetterWithBody: DeadLetterWithOrders = {
    ...deadLetter(0),
    body: batchBody(17),
    batch: JSON.parse(batchBody(17)) as Record<string, unknown>,
    orders: list(Math.max(3, Math.min(rows, 500)), (index) => ({
      userId: `buyer-${1_017 + index}`,
      requestId: `order-${18 + index}`,
      quantity: 1,
      order:
        index % 3 === 0
          ? null
          : {
              orderId: orderId(index),
              state: index % 3 === 1 ? 'pending_payment' : 'failed',
              reason: index % 3 === 1 ? null : 'units_lost',
              batchId: index % 3 === 1 ? batchId(17) : batchId(90),
              quantity: 1,
            },
    })),
  };

  const paymentCase = (index: number): PaymentCase => ({
    caseId: String(7 + index),
    kind: pick(['disputed', 'refund_failed', 'refunded_elsewhere'] as const, index),
    subject: `du_1MtwBwLkdIwHu7ix${index}`,
    paymentId: `pi_3MtwBwLkdIwHu7ix28a3tr${index}`,
    orderId: orderId(index),
    amountCents: 1_999 + index * 100,
    currency: 'EUR',
    detail: pick(['fraudulent: needs_response', 'lost_or_stolen_card', 'refunded at the provider: 21.99 EUR'], index),
    state: 'open',
    createdAt: iso(nowMs - 900_000 - index * 60_000),
    updatedAt: iso(nowMs - 900_000),
  });

  const coupon = (index: number): FoundCoupon => ({
    code: pick(['7KQ2MZP4WX', 'M3XW9RT2QA'], index),
    saleId: '41',
    orderId: orderId(6 + index),
    userId: 'buyer-1006',
    currency: 'EUR',
    valueCents: index === 0 ? 500 : null,
    percent: index === 0 ? null : 10,
    minCents: 2_000,
    state: pick(['free', 'redeemed'] as const, index),
    usedOrderId: index === 0 ? null : orderId(6),
    discountCents: index === 0 ? null : 200,
    reference: null,
    createdAt: iso(nowMs - 900_000),
    expiresAt: iso(nowMs + 900_000_000),
    redeemedAt: index === 0 ? null : iso(nowMs - 60_000),
  });

  const webhook = (index: number): Webhook => ({
    endpointId: String(3 + index),
    url: `https://shop.example/events/${index}`,
    events: ['order.paid', 'order.refunded'],
    state: pick(['active', 'failed', 'paused'] as const, index),
    failingSince: index % 3 === 1 ? iso(nowMs - 90_000_000) : null,
    lastError: index % 3 === 1 ? 'no answer within 5 s' : null,
    previousSecretUntil: null,
    createdAt: iso(nowMs - 900_000_000),
  });
  const webhookDelivery = (index: number): WebhookDelivery => ({
    deliveryId: String(1200 - index),
    eventId: `${900 - index}-paid-${orderId(index)}`,
    type: 'order.paid',
    orderId: orderId(index),
    saleId: '41',
    at: iso(nowMs - 60_000 - index * 1_000),
    state: pick(['due', 'delivered', 'dropped'] as const, index),
    attempts: index % 4,
    lastError: index % 3 === 0 ? 'status 500' : null,
    nextTry: index % 3 === 0 ? iso(nowMs + 30_000) : null,
  });

  const refund = (index: number): ListedRefund => ({
    refundId: index % 4 === 3 ? String(10 + index) : null,
    followedBy: index === 7 ? '24' : null,
    paymentId: `pi_3MtwBwLkdIwHu7ix28a3tq${index}`,
    orderId: orderId(index),
    amountCents: 1_999 + index * 100,
    currency: 'EUR',
    reason: pick(['paid_too_late', 'paid_twice', 'wrong_amount'], index),
    state: index % 4 === 3 ? 'failed' : index % 3 === 2 ? 'refunded' : 'due',
    attempts: index % 5,
    lastError: index % 4 === 3 || index === 1 ? 'refused: the card was closed' : null,
    createdAt: iso(nowMs - 400_000 - index * 60_000),
    updatedAt: iso(nowMs - 100_000),
  });

  const orderRefund = (index: number): OrderRefund => {
    const { updatedAt: _updatedAt, currency: _currency, ...shared } = refund(3);
    return {
      ...shared,
      ...{ refundId: String(13 + index), key: `k${index}`, restock: false, actor: 'olga@shop.example' },
      state: pick(['refunded', 'failed', 'due'] as const, index),
      reason: pick(['a scratch on the left shoe', 'the buyer called', 'a new card'], index),
      lastError: index === 1 ? 'refused: the card was closed' : null,
    };
  };

  const run = (index: number): ReconcileRun => ({
    runId: String(812 - index),
    saleId: index % 3 === 1 ? '41' : null,
    applied: index % 4 === 0,
    actor: index % 3 === 1 ? 'olga@shop.example' : 'keeper',
    startedAt: iso(nowMs - 120_000 - index * 300_000),
    finishedAt: index === 0 ? null : iso(nowMs - 118_600 - index * 300_000),
    outcome: index === 0 ? null : pick(['match', 'findings', 'match', 'partly'] as const, index),
    figures: {
      stock: 40_000,
      sold: 30_412,
      unitsLeft: 9_492,
      unitsOfBuyers: 30_508,
      difference: 0,
      requests: 30_508,
      rows: 30_412,
      pendingBatches: 7,
      young: 96,
      waiting: 0,
      parked: 41,
    },
    findings:
      index % 4 === 1
        ? [
            {
              kind: 'leak',
              saleId: '41',
              userId: 'buyer-1044',
              requestId: 'order-45',
              batchId: batchId(44),
              quantity: 1,
            },
            {
              kind: 'leak',
              saleId: '41',
              userId: 'buyer-1045',
              requestId: 'order-46',
              batchId: batchId(44),
              quantity: 2,
            },
            { kind: 'miscount', saleId: '41', units: 1, why: 'sales.sold is 30413, its live rows come to 30412' },
          ]
        : [],
  });
  const job = (index: number): CompensationJob => ({
    jobId: String(230 + index),
    kind: pick(['leak', 'not_marked', 'drift', 'unreleased'], index),
    saleId: '41',
    subject: `41/buyer-${1_044 + index}/order-${45 + index}`,
    batchId: batchId(44),
    userId: `buyer-${1_044 + index}`,
    requestId: `order-${45 + index}`,
    detail: `1 units are held for buyer-${1_044 + index}/order-${45 + index} by batch ${batchId(44)}, but there is no order`,
    state: pick(['pending', 'failed_final', 'compensated'] as const, index),
    attempts: 1 + (index % 5),
    lastError: index % 3 === 1 ? 'mysql: Deadlock found when trying to get lock' : null,
    availableAt: iso(nowMs + 25_000),
    createdAt: iso(nowMs - 300_000),
    updatedAt: iso(nowMs - 60_000),
  });

  const document = {
    ...DEFAULT_RULES,
    lists: {
      ...DEFAULT_RULES.lists,
      mode: rows === 0 ? 'off' : 'on',
      users: { allow: [], deny: rows > 100 ? list(rows, (index) => `u${index}`) : ['u42'] },
    },
    limits: {
      ...DEFAULT_RULES.limits,
      mode: rows === 0 ? 'off' : 'dry_run',
      purchase: { ...DEFAULT_RULES.limits.purchase, user: { limit: 10, windowMs: 10_000 } },
    },
    queue: { ...DEFAULT_RULES.queue, mode: rows === 0 ? 'off' : 'on', admitPerSecond: 500, sales: ['41'] },
  } as unknown as JsonObject;
  const rules: StoredRules = { version: rows === 0 ? 0 : 12, rules: document };
  const oldRules: StoredRules = {
    version: 11,
    rules: { ...document, queue: DEFAULT_RULES.queue } as unknown as JsonObject,
  };
  const change = (index: number): RuleChange => ({
    version: Math.max(1, 12 - index),
    actor: pick(['olga@shop.example', 'ivan@shop.example'], index),
    at: iso(nowMs - 3_600_000 * (index + 1)),
  });
  const waitingRoom: WaitingRoom = {
    ...{ version: rules.version, mode: rows === 0 ? 'off' : 'on', admitPerSecond: 500 },
    ...{ waiting: rows * 1_000, admitted: rows * 900, estimateMs: rows * 2_000 },
  };
  const rulesStatus: RulesStatus = {
    version: rules.version,
    inForce: rows === 0 ? 'nowhere' : 'not_everywhere',
    apis:
      rows === 0
        ? []
        : [
            {
              host: 'shop-api-3',
              pid: 4_134,
              version: 11,
              follows: false,
              refused: { version: 12, reasons: ['queue.mode must be off, because ADMISSION_SEAL_KEYS is not set'] },
            },
            { host: 'shop-api-1', pid: 4_120, version: 12, follows: true, refused: null },
            { host: 'shop-api-2', pid: 4_127, version: 12, follows: true, refused: null },
          ],
    canary:
      rows === 0
        ? null
        : {
            ...{ since: 12, percent: 1, minutes: 10, maxRefusedPercent: 5 },
            ...{ tried: { accepted: 391, refused: 9 }, others: { accepted: 39_600, refused: 400 } },
          },
  };
  const switches: Switches = {
    version: rules.version,
    mode: 'on',
    switches: [
      { endpoint: 'purchase', level: 'L0', percent: 100, inForce: true },
      { endpoint: 'status', level: 'L1', percent: 25, inForce: true },
      { endpoint: 'sale', level: 'L0', percent: 100, inForce: true },
      { endpoint: 'order', level: 'L2', percent: 100, inForce: true },
    ],
  };

  const audit = (index: number): AuditEntry => ({
    auditId: String(9_400 - index),
    at: iso(nowMs - 40_000 - index * 93_000),
    actor: pick(['olga@shop.example', 'keeper', 'ivan@shop.example', LONG.slice(0, 120)], index),
    action: pick(
      ['sale.paused', 'sale.opened', 'dead_letter.replayed', 'rules.published', 'refund.claimed', 'sale.edited'],
      index,
    ),
    subject: pick(
      ['sale:41', 'sale:42', 'dead_letter:21', 'rules:admission', 'refund:pi_3MtwBwLkdIwHu7', 'sale:41'],
      index,
    ),
    before: { state: 'open', stock: 40_000 },
    after: { state: 'paused', stock: 40_000 },
  });

  /** Spreads any number of rows over a week. */
  const planStepMs = Math.min(13_000_000, Math.floor((6 * 86_400_000) / Math.max(1, rows)));
  const planned = (index: number): PlannedSale => ({
    sale: {
      ...sale(index),
      saleId: String(41 + index),
      state: pick(['open', 'draft', 'warm', 'draft', 'draft', 'paused'] as const, index),
      opensAt: iso(nowMs - 200_000 + index * planStepMs),
      closesAt: iso(nowMs + 3_400_000 + index * planStepMs),
    },
    status: pick(['selling', 'by_hand', 'not_ready', 'ready', 'waits', 'paused'] as const, index),
    missing: index % 6 === 2 ? ['stock', 'apis'] : [],
    warmsAt: index % 6 === 1 ? null : iso(nowMs - 1_200_000 + index * planStepMs),
  });

  const readiness: Readiness = {
    ready: rows === 0,
    dependencies: [
      { name: 'redis', ok: true, detail: 'answers in 1 ms; noeviction, appendonly yes' },
      { name: 'rocketmq', ok: true, detail: 'the topics are there' },
      { name: 'mysql', ok: rows === 0, detail: rows === 0 ? 'answers in 2 ms' : 'connect ECONNREFUSED 10.0.4.7:3306' },
      { name: 'rules', ok: true, detail: 'version 12 is in force' },
    ],
  };

  return {
    me,
    sale,
    sales: list(rows, sale),
    plan: list(Math.min(rows, 2_000), planned),
    snapshot,
    seconds,
    buckets,
    breakers,
    orders: list(rows, order),
    purchases: [parkedPurchase, paidPurchase, refundedPurchase],
    mqStatus,
    groups: mqList(list(rows, group)),
    topics: mqList(list(rows === 0 ? 0 : Math.max(6, rows), topic)),
    halves: mqList(list(rows > 100 ? rows : Math.min(rows, 3), half)),
    discarded: mqList(list(rows > 100 ? rows : Math.min(rows, 2), discarded)),
    clients: mqList(list(rows, client)),
    messages: mqList(list(Math.min(rows, 100), message)),
    deadLetters: list(rows, deadLetter),
    deadLetter: deadLetterWithBody,
    refunds: list(rows, refund),
    orderRefunds: list(Math.min(rows, 3), orderRefund),
    refundCounts:
      rows === 0
        ? { states: [] }
        : {
            states: [
              { state: 'due', refunds: 120, amountCents: 239_880 },
              { state: 'refunded', refunds: 380, amountCents: 759_620 },
              { state: 'failed', refunds: 3, amountCents: 5_997 },
            ],
          },
    coupons: list(Math.min(rows, 2), coupon),
    paymentCases: list(Math.min(rows, 3), paymentCase),
    webhooks: list(Math.min(rows, 3), webhook),
    webhookDeliveries: list(rows, webhookDelivery),
    runs: list(rows, run),
    jobs: list(rows, job),
    rules,
    oldRules,
    history: list(Math.min(rows, 200), change),
    rulesStatus,
    waitingRoom,
    switches,
    audit: list(rows, audit),
    readiness,
  };
}

const CONDITIONS = [
  [
    'SeckillConsumersBehind',
    'page',
    'seckill-order-event',
    'Messages of seckill-order-event wait for seckill-notifier.',
    96_000,
  ],
  [
    'SeckillDeadLetterParked',
    'ticket',
    null,
    'Dead letters were parked. Units of purchases among them stay held until somebody decides.',
    31_000,
  ],
  [
    'SeckillSaleNotReady',
    'info',
    '43',
    'Sale 43 starts soon, or should have started, and something is missing.',
    12_000,
  ],
] as const;
