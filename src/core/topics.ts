/**
 * All topics that we publish to, by content. Only `seckill topics` creates them, from config/topics.json; clients never
 * do. The file also lists the `%RETRY%` and `%DLQ%` topics of each group, which must exist before their first message.
 */
export const TOPICS = {
  /** Type TRANSACTION: batches, as half messages. */
  purchase: 'seckill-purchase',
  /** Type NORMAL: batches that are published again. */
  redrive: 'seckill-purchase-redrive',
  /** Type DELAY: expiry of unpaid orders. */
  paymentDeadline: 'seckill-payment-deadline',
  /** Type NORMAL: changes of orders. */
  orderEvent: 'seckill-order-event',
} as const;
export type Topic = (typeof TOPICS)[keyof typeof TOPICS];

/** All consumer groups, by purpose. `seckill topics` creates them from config/groups.json. */
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
 * shadow runs, it falls behind.
 */
export const SHADOW_GROUP = 'seckill-order-shadow';

/**
 * The dead-letter topic of each group, and the group that collects its messages. A dead letter names its original topic
 * only in our own property `topic`.
 */
export const DEAD_LETTERS = {
  [GROUPS.writer]: { topic: '%DLQ%seckill-order-writer', collector: 'seckill-dlq-collector' },
  [GROUPS.redriveWriter]: { topic: '%DLQ%seckill-order-writer-redrive', collector: 'seckill-dlq-collector-redrive' },
  [GROUPS.expirer]: { topic: '%DLQ%seckill-order-expirer', collector: 'seckill-dlq-collector-expirer' },
  [GROUPS.notifier]: { topic: '%DLQ%seckill-notifier', collector: 'seckill-dlq-collector-notifier' },
  [GROUPS.coupon]: { topic: '%DLQ%seckill-coupon', collector: 'seckill-dlq-collector-coupon' },
} as const satisfies Record<Group, { topic: string; collector: string }>;

/**
 * All topics that contain only our messages: the topics we publish to, and the retry and dead-letter topics of our
 * groups.
 */
export const OWN_TOPICS: ReadonlySet<string> = new Set([
  ...Object.values(TOPICS),
  ...Object.values(DEAD_LETTERS).map(({ topic }) => topic),
  ...[...Object.values(GROUPS), SHADOW_GROUP, ...Object.values(DEAD_LETTERS).map(({ collector }) => collector)].map(
    (group) => `%RETRY%${group}`,
  ),
]);

/**
 * The topics in which a broker keeps the half messages of all topics: open ones, and those that it has given up (it
 * sends no further check-backs). The property `REAL_TOPIC` names the topic for which a half message is meant.
 */
export const HALF_TOPICS = { open: 'RMQ_SYS_TRANS_HALF_TOPIC', discarded: 'TRANS_CHECK_MAX_TIME_TOPIC' } as const;

export const WRITER_GROUPS: ReadonlySet<string> = new Set([GROUPS.writer, GROUPS.redriveWriter]);

/**
 * `retryMaxTimes` of both writer groups. A worker sees a message once more than this; then it becomes a dead letter.
 */
export const WRITER_RETRIES_MAX = 5;
