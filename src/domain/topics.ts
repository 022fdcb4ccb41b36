/**
 * Every topic we use, by what it carries. Created by `seckill topics` from config/topics.json; a client never makes one.
 * A `%DLQ%` topic belongs to the group in its name and must exist before the first dead letter.
 */
export const TOPICS = {
  purchase: 'seckill-purchase',
  redrive: 'seckill-purchase-redrive',
  paymentDeadline: 'seckill-payment-deadline',
  orderEvent: 'seckill-order-event',
  writerDeadLetters: '%DLQ%seckill-order-writer',
  redriveDeadLetters: '%DLQ%seckill-order-writer-redrive',
} as const;
export type Topic = (typeof TOPICS)[keyof typeof TOPICS];

/** Every consumer group we use, by what it does. Created by `seckill topics` from config/groups.json. */
export const GROUPS = {
  writer: 'seckill-order-writer',
  redriveWriter: 'seckill-order-writer-redrive',
  expirer: 'seckill-order-expirer',
  notifier: 'seckill-notifier',
  coupon: 'seckill-coupon',
  /** Reads the dead letters of `writer`. */
  collector: 'seckill-dlq-collector',
  /** Reads the dead letters of `redriveWriter`. */
  redriveCollector: 'seckill-dlq-collector-redrive',
} as const;
export type Group = (typeof GROUPS)[keyof typeof GROUPS];

/** Attempts of a message before the broker gives up on a writer group: `retryMaxTimes` + 1 are seen by the worker. */
export const WRITER_RETRIES_MAX = 5;
