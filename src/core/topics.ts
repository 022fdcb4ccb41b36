/**
 * Topics that we publish to. Only `seckill topics` creates them, from config/topics.json, which also lists the
 * `%RETRY%` and `%DLQ%` topics of each group: they must exist before their first message.
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

/** Group of `seckill worker --shadow`, which acks at once and has no dead letters. Falls behind without a shadow. */
export const SHADOW_GROUP = 'seckill-order-shadow';

/** Each group's dead-letter topic, and the group that collects it. Our property `topic` names the original topic. */
export const DEAD_LETTERS = {
  [GROUPS.writer]: { topic: '%DLQ%seckill-order-writer', collector: 'seckill-dlq-collector' },
  [GROUPS.redriveWriter]: { topic: '%DLQ%seckill-order-writer-redrive', collector: 'seckill-dlq-collector-redrive' },
  [GROUPS.expirer]: { topic: '%DLQ%seckill-order-expirer', collector: 'seckill-dlq-collector-expirer' },
  [GROUPS.notifier]: { topic: '%DLQ%seckill-notifier', collector: 'seckill-dlq-collector-notifier' },
  [GROUPS.coupon]: { topic: '%DLQ%seckill-coupon', collector: 'seckill-dlq-collector-coupon' },
} as const satisfies Record<Group, { topic: string; collector: string }>;

/** All topics with only our messages: the topics of `TOPICS`, and the retry and dead-letter topics of our groups. */
export const OWN_TOPICS: ReadonlySet<string> = new Set([
  ...Object.values(TOPICS),
  ...Object.values(DEAD_LETTERS).map(({ topic }) => topic),
  ...[...Object.values(GROUPS), SHADOW_GROUP, ...Object.values(DEAD_LETTERS).map(({ collector }) => collector)].map(
    (group) => `%RETRY%${group}`,
  ),
]);

/** A broker's half messages: open, or without further check-backs. `REAL_TOPIC` names their topic. */
export const HALF_TOPICS = { open: 'RMQ_SYS_TRANS_HALF_TOPIC', discarded: 'TRANS_CHECK_MAX_TIME_TOPIC' } as const;

export const WRITER_GROUPS: ReadonlySet<string> = new Set([GROUPS.writer, GROUPS.redriveWriter]);

/** `retryMaxTimes` of both writer groups. After one more delivery, a message becomes a dead letter. */
export const WRITER_RETRIES_MAX = 5;
