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
