import { durationText } from './duration.js';

/** A state that waits for an event and must not wait forever. */
export interface WaitingState {
  readonly waits: string;
  /** The maximum wait: a key of the configuration, or a column. */
  readonly deadline: string;
  /** The program or person that ends the wait. */
  readonly endedBy: string;
  /** The label of `seckill_overdue` that counts overdue states, or `reconcile` if its findings count them. */
  readonly watchedAs: WatchedState | 'reconcile';
}

/** States whose overdue cases the keeper counts, one label for each state. */
export const WATCHED_STATES = [
  'batch_pending',
  'pending_payment',
  'outbox',
  'dead_letter',
  'refund',
  'payment_open',
  'payment_case',
  'compensation',
  'sale_locked',
  'sale_over',
  'sale_kept',
  'sale_unarchived',
  'units_in_transfer',
  'webhook_paused',
] as const;
export type WatchedState = (typeof WATCHED_STATES)[number];

/** Ages above which `seckill_overdue` counts a case and alerts, ms. */
export const OVERDUE_MS = {
  /** Time past the payment deadline. The keeper ends an order within seconds of its deadline. */
  pending_payment: 60_000,
  /** After an outage, a keeper works through its outbox for tens of seconds. */
  outbox: 60_000,
  /** The units of a dead letter stay held until an operator decides. */
  dead_letter: 3_600_000,
  refund: 86_400_000,
  /** Longer than a payment provider takes to report a charge. */
  payment_open: 1_200_000,
  /** Longer than its lease, so no keeper is still working on it. */
  compensation: 600_000,
  /** A repair takes seconds, during which buyers get 503. */
  sale_locked: 60_000,
  sale_over: 86_400_000,
  units_in_transfer: 60_000,
} as const;

/**
 * All waiting states of the system. Any other state ends within the process that made it. States that only the broker
 * sees are watched by their effects: units in `pending`, unpaid orders, and dead letters, because retries are bounded.
 */
export const WAITING_STATES = {
  half_open: {
    waits: 'a half message that was neither committed nor rolled back',
    deadline: '10 s (`transactionTimeOut` of the broker), checked every 5 s',
    endedBy: 'the check-back of any api; if units are held, also the re-drive',
    watchedAs: 'batch_pending',
  },
  batch_pending: {
    waits: 'units held in Redis, not recorded in MySQL',
    deadline: '2m; the keeper publishes the batch again after 1m',
    endedBy: 'the worker, or the re-drive of the keeper, which never gives up',
    watchedAs: 'batch_pending',
  },
  delivery_retry: {
    waits: 'a message that a consumer could not finish',
    deadline: 'retries of its group',
    endedBy: 'the broker, by redelivery; after the last attempt the worker or the keeper parks it',
    watchedAs: 'batch_pending',
  },
  pending_payment: {
    waits: 'an order that is not paid',
    deadline: `${durationText(OVERDUE_MS.pending_payment)} after orders.expires_at`,
    endedBy: 'payment, cancellation, deadline message, or the sweep of the keeper',
    watchedAs: 'pending_payment',
  },
  outbox_undone: {
    waits: 'what follows from a committed transaction: events, deadlines, returned units',
    deadline: durationText(OVERDUE_MS.outbox),
    endedBy: 'the relay of the keeper, which never gives up',
    watchedAs: 'outbox',
  },
  dead_letter_parked: {
    waits: 'a message that no attempt could handle; its units stay held',
    deadline: durationText(OVERDUE_MS.dead_letter),
    endedBy: 'a person, by `seckill dlq replay` or `discard`; the keeper, once all rows exist',
    watchedAs: 'dead_letter',
  },
  refund_due: {
    waits: 'a payment that could not pay its order, or a refund that an operator ordered',
    deadline: durationText(OVERDUE_MS.refund),
    endedBy: 'the keeper, through the payment provider; a person, if the provider refuses',
    watchedAs: 'refund',
  },
  payment_open: {
    waits: 'a charge that was begun, and may have taken money',
    deadline: durationText(OVERDUE_MS.payment_open),
    endedBy: 'its request, or the keeper, which asks the payment provider and never gives up',
    watchedAs: 'payment_open',
  },
  payment_case: {
    waits: 'money that no program can settle',
    deadline: 'none; it counts at once',
    endedBy: 'a person, by `seckill payment-cases close`; or a report of the provider',
    watchedAs: 'payment_case',
  },
  compensation_pending: {
    waits: 'a compensation job that is due',
    deadline: durationText(OVERDUE_MS.compensation),
    endedBy: 'the keeper, which sets it to `compensated` or `failed_final`',
    watchedAs: 'compensation',
  },
  stray: {
    waits: 'units held by a batch that is neither in `pending` nor parked',
    deadline: 'RECONCILE_EVERY_MS',
    endedBy: 'reconcile with `--apply` or `RECONCILE_APPLY`',
    watchedAs: 'reconcile',
  },
  difference_reported: {
    waits: 'findings that are only reported: `order_lost`, `unheld`, `oversell`, `miscount`, `not_loaded`, `overdue`',
    deadline: 'RECONCILE_EVERY_MS',
    endedBy: 'a person; `seckill reconcile resolve` ends `order_lost`, and `seckill trace` shows the others',
    watchedAs: 'reconcile',
  },
  sale_locked: {
    waits: 'a live sale whose data in Redis may be lost, or is being rebuilt',
    deadline: durationText(OVERDUE_MS.sale_locked),
    endedBy: 'the repair of the keeper, which never gives up',
    watchedAs: 'sale_locked',
  },
  sale_over: {
    waits: 'a sale whose window has ended and that is not closed',
    deadline: durationText(OVERDUE_MS.sale_over),
    endedBy: 'the keeper, if it runs the sale; otherwise a person, by `seckill sale close`',
    watchedAs: 'sale_over',
  },
  sale_kept: {
    waits: 'a sale that ended long ago and is still in Redis',
    deadline: 'RETIRE_AFTER_MS',
    endedBy: 'the keeper, once Redis and MySQL agree and no work is open; its log names the open work',
    watchedAs: 'sale_kept',
  },
  sale_unarchived: {
    waits: 'a retired sale whose orders are not in the archive',
    deadline: 'ARCHIVE_AFTER_MS',
    endedBy: 'the keeper, once no payment is open; its log says what is open',
    watchedAs: 'sale_unarchived',
  },
  units_in_transfer: {
    waits: 'units on their way between buckets',
    deadline: 'some seconds',
    endedBy: 'a purchase that needs them, or the keeper; during a repair, the repair',
    watchedAs: 'units_in_transfer',
  },
  webhook_paused: {
    waits: 'a webhook endpoint that took no event for a day',
    deadline: 'none; it counts at once',
    endedBy: 'a person, by `seckill webhooks edit --resume` or `remove`',
    watchedAs: 'webhook_paused',
  },
} as const satisfies Record<string, WaitingState>;

/** The overdue cases of a state. */
export interface Overdue {
  /** Number of cases. Counting may stop at some thousands. */
  readonly count: number;
  /** How long ago the oldest case should have ended, ms. 0 if there is none. */
  readonly oldestMs: number;
}

/** States that are overdue by age alone. The other states have their own deadline. */
export type AgedState = Exclude<WatchedState, 'batch_pending' | 'sale_locked' | 'units_in_transfer'>;

/** Counts overdue cases in MySQL, on its time. */
export interface OverdueRepository {
  /**
   * Counts the cases of these states that wait for longer than `afterMs` since they were written; for a compensation,
   * since it fell due; for an unpaid order, since its payment deadline; for a sale, since the end of its window.
   * @throws OperationalError mysql
   */
  overdue<S extends AgedState>(afterMs: Readonly<Record<S, number>>): Promise<Record<S, Overdue>>;
}
