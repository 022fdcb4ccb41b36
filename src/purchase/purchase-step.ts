import type { OrderState } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';

/**
 * The way of a purchase in words, each later than those before it but for the last four, which are ends:
 * `pending` → `ordered` → `paid` | `cancelled` | `expired`, or `failed`.
 */
export const STEP_RANKS = { pending: 0, ordered: 1, paid: 2, cancelled: 2, expired: 2, failed: 2 } as const;
export type StepWord = keyof typeof STEP_RANKS;

/** How far a purchase has come. */
export interface PurchaseStep {
  readonly word: StepWord;
  readonly status: PurchaseStatus;
}

const ORDER_WORDS: Record<OrderState, StepWord> = {
  pending_payment: 'ordered',
  ...{ paid: 'paid', cancelled: 'cancelled', expired: 'expired', failed: 'failed' },
};

/** Null for a purchase that nobody knows. */
export function stepOf(status: PurchaseStatus): PurchaseStep | null {
  if (status.status === 'not_found') return null;
  return { word: status.status === 'ordered' ? ORDER_WORDS[status.orderState] : status.status, status };
}

export const isStepWord = (text: unknown): text is StepWord =>
  typeof text === 'string' && Object.hasOwn(STEP_RANKS, text);
export const isEnd = (word: StepWord): boolean => STEP_RANKS[word] === STEP_RANKS.paid;
/** Nothing is told twice, and nothing that was told is taken back. `seen`: the last one told; null: none. */
export const isNotifications = (word: StepWord, seen: StepWord | null): boolean =>
  seen === null || STEP_RANKS[word] > STEP_RANKS[seen];
