/**
 * Every topic we publish to, by what it carries. Created by `seckill topics` from config/topics.json; no client makes
 * one. The file also lists the `%RETRY%` and `%DLQ%` topic of each group, which must exist before their first message.
 */
export const TOPICS = {
  /** TRANSACTION: batches, as half messages. */
  purchase: 'seckill-purchase',
  /** NORMAL: the same batches, published again. */
  redrive: 'seckill-purchase-redrive',
  /** DELAY: when unpaid orders expire. */
  paymentDeadline: 'seckill-payment-deadline',
  /** NORMAL: what happened to orders. */
  orderEvent: 'seckill-order-event',
} as const;
export type Topic = (typeof TOPICS)[keyof typeof TOPICS];

/** Every consumer group that works on a topic, by what it does. Created by `seckill topics` from config/groups.json. */
export const GROUPS = {
  writer: 'seckill-order-writer',
  redriveWriter: 'seckill-order-writer-redrive',
  expirer: 'seckill-order-expirer',
  notifier: 'seckill-notifier',
  coupon: 'seckill-coupon',
} as const;
export type Group = (typeof GROUPS)[keyof typeof GROUPS];

/** The topic that each group works on. */
export const GROUP_TOPICS = {
  [GROUPS.writer]: TOPICS.purchase,
  [GROUPS.redriveWriter]: TOPICS.redrive,
  [GROUPS.expirer]: TOPICS.paymentDeadline,
  [GROUPS.notifier]: TOPICS.orderEvent,
  [GROUPS.coupon]: TOPICS.orderEvent,
} as const satisfies Record<Group, Topic>;

/**
 * Where the broker puts what a group could not handle, and the group that reads it there. A dead letter does not name
 * its origin: our own property `topic` does.
 */
export const DEAD_LETTERS = {
  [GROUPS.writer]: { topic: '%DLQ%seckill-order-writer', collector: 'seckill-dlq-collector' },
  [GROUPS.redriveWriter]: { topic: '%DLQ%seckill-order-writer-redrive', collector: 'seckill-dlq-collector-redrive' },
  [GROUPS.expirer]: { topic: '%DLQ%seckill-order-expirer', collector: 'seckill-dlq-collector-expirer' },
  [GROUPS.notifier]: { topic: '%DLQ%seckill-notifier', collector: 'seckill-dlq-collector-notifier' },
  [GROUPS.coupon]: { topic: '%DLQ%seckill-coupon', collector: 'seckill-dlq-collector-coupon' },
} as const satisfies Record<Group, { topic: string; collector: string }>;

/** Every topic that holds messages of ours and no others: where we publish, and what RocketMQ keeps for our groups. */
export const OWN_TOPICS: ReadonlySet<string> = new Set([
  ...Object.values(TOPICS),
  ...Object.values(DEAD_LETTERS).map(({ topic }) => topic),
  ...[...Object.values(GROUPS), ...Object.values(DEAD_LETTERS).map(({ collector }) => collector)].map(
    (group) => `%RETRY%${group}`,
  ),
]);

/**
 * Where a broker keeps the half messages of all topics, and those that it has given up: nobody asks about them again. The
 * property `REAL_TOPIC` names the topic that one is meant for.
 */
export const HALF_TOPICS = { open: 'RMQ_SYS_TRANS_HALF_TOPIC', discarded: 'TRANS_CHECK_MAX_TIME_TOPIC' } as const;

/** The groups that write orders. */
export const WRITER_GROUPS: ReadonlySet<string> = new Set([GROUPS.writer, GROUPS.redriveWriter]);

/** `retryMaxTimes` of both writer groups: a worker sees a message one time more, then it is a dead letter. */
export const WRITER_RETRIES_MAX = 5;
