/**
 * All topics that we publish to, by content. `seckill topics` creates them from config/topics.json, no client does. The
 * file also lists the `%RETRY%` and `%DLQ%` topic of each group, which must exist before their first message.
 */
export const TOPICS = {
  /** TRANSACTION: batches, as half messages. */
  purchase: 'seckill-purchase',
  /** NORMAL: batches that are published again. */
  redrive: 'seckill-purchase-redrive',
  /** DELAY: expiry of unpaid orders. */
  paymentDeadline: 'seckill-payment-deadline',
  /** NORMAL: changes of orders. */
  orderEvent: 'seckill-order-event',
} as const;
export type Topic = (typeof TOPICS)[keyof typeof TOPICS];

/** All consumer groups that work on a topic, by purpose. `seckill topics` creates them from config/groups.json. */
export const GROUPS = {
  writer: 'seckill-order-writer',
  redriveWriter: 'seckill-order-writer-redrive',
  expirer: 'seckill-order-expirer',
  notifier: 'seckill-notifier',
  coupon: 'seckill-coupon',
} as const;
export type Group = (typeof GROUPS)[keyof typeof GROUPS];

export const GROUP_TOPICS = {
  [GROUPS.writer]: TOPICS.purchase,
  [GROUPS.redriveWriter]: TOPICS.redrive,
  [GROUPS.expirer]: TOPICS.paymentDeadline,
  [GROUPS.notifier]: TOPICS.orderEvent,
  [GROUPS.coupon]: TOPICS.orderEvent,
} as const satisfies Record<Group, Topic>;

/**
 * The group of a shadow (`seckill worker --shadow`). It acks each message at once, so it has no dead letters. While no
 * shadow runs, it is behind.
 */
export const SHADOW_GROUP = 'seckill-order-shadow';

/**
 * The dead-letter topic of each group, and the group that collects from it. A dead letter does not name its origin: our
 * own property `topic` does.
 */
export const DEAD_LETTERS = {
  [GROUPS.writer]: { topic: '%DLQ%seckill-order-writer', collector: 'seckill-dlq-collector' },
  [GROUPS.redriveWriter]: { topic: '%DLQ%seckill-order-writer-redrive', collector: 'seckill-dlq-collector-redrive' },
  [GROUPS.expirer]: { topic: '%DLQ%seckill-order-expirer', collector: 'seckill-dlq-collector-expirer' },
  [GROUPS.notifier]: { topic: '%DLQ%seckill-notifier', collector: 'seckill-dlq-collector-notifier' },
  [GROUPS.coupon]: { topic: '%DLQ%seckill-coupon', collector: 'seckill-dlq-collector-coupon' },
} as const satisfies Record<Group, { topic: string; collector: string }>;

/**
 * All topics that hold only our messages: the topics we publish to, and the retry and dead-letter topics of our groups.
 */
export const OWN_TOPICS: ReadonlySet<string> = new Set([
  ...Object.values(TOPICS),
  ...Object.values(DEAD_LETTERS).map(({ topic }) => topic),
  ...[...Object.values(GROUPS), SHADOW_GROUP, ...Object.values(DEAD_LETTERS).map(({ collector }) => collector)].map(
    (group) => `%RETRY%${group}`,
  ),
]);

/**
 * The topics where a broker keeps the half messages of all topics: open, and given up (no further check-back). The
 * property `REAL_TOPIC` names the topic that a half message is meant for.
 */
export const HALF_TOPICS = { open: 'RMQ_SYS_TRANS_HALF_TOPIC', discarded: 'TRANS_CHECK_MAX_TIME_TOPIC' } as const;

export const WRITER_GROUPS: ReadonlySet<string> = new Set([GROUPS.writer, GROUPS.redriveWriter]);

/** `retryMaxTimes` of both writer groups. A worker sees a message once more than this, then it is a dead letter. */
export const WRITER_RETRIES_MAX = 5;
