import type { OrderState } from '../../core/order.js';
import type { OutboxKind } from '../../core/ports/outbox.js';
import type { WitnessKind } from '../../core/ports/witness.js';
import type { WitnessFinding } from '../../mysql/witness-store.js';

/**
 * What a program does about a finding.
 * - `end_order`: an order was cancelled or has expired, so it writes the event and the release, and counts `sold` again
 * - `release_units`, `announce_move`: it writes one of these two rows
 * - `announce_order`, `announce_batch`: it writes the event of a new order, or of all orders of its batch
 * - `recount_sold`: it sets `sold` to the units of the live orders
 * - `person`: nothing. A person has to decide
 */
export type Action =
  | 'end_order'
  | 'release_units'
  | 'announce_move'
  | 'announce_order'
  | 'announce_batch'
  | 'recount_sold'
  | 'person';

/** What `judge` says about a row, without its subject. */
type Sentence =
  | 'a new order without an outbox row'
  | `moved from ${OrderState} to ${OrderState} without an outbox row`
  | `moved from ${OrderState} to ${OrderState}, and no outbox row gives its units back`
  | `a row of kind ${OutboxKind} ${'' | 'with several orders '}was deleted before it was done`;

interface Follows {
  readonly does: Readonly<Partial<Record<Sentence, Action>>>;
  /** For any other sentence. */
  readonly otherwise: Action;
  /** What a person does. */
  readonly todo: (finding: WitnessFinding) => string;
}

const MANY = 'Compare all sales with `seckill reconcile`.';

/** Changes of money, and all that is not listed here, need a person. */
const FOLLOWS: Readonly<Record<WitnessKind, Follows>> = {
  order_without_outbox: {
    does: {
      'a new order without an outbox row': 'announce_order',
      'moved from pending_payment to cancelled without an outbox row': 'end_order',
      'moved from pending_payment to expired without an outbox row': 'end_order',
      'moved from pending_payment to cancelled, and no outbox row gives its units back': 'release_units',
      'moved from pending_payment to expired, and no outbox row gives its units back': 'release_units',
    },
    otherwise: 'person',
    todo: ({ orderId, saleId }) =>
      `\`seckill trace ${orderId}\` shows what the order lacks, and \`seckill reconcile --sale ${saleId} --apply\` repairs its units.`,
  },
  row_deleted: {
    does: {
      'a row of kind batch_recorded was deleted before it was done': 'announce_batch',
      'a row of kind batch_recorded with several orders was deleted before it was done': 'announce_batch',
      // a finding of several orders names only the first
      'a row of kind orders_moved was deleted before it was done': 'announce_move',
      'a row of kind release was deleted before it was done': 'release_units',
    },
    otherwise: 'person',
    todo: ({ saleId }) =>
      `\`seckill reconcile --sale ${saleId} --apply\` repairs units, and \`seckill reconcile resolve --sale ${saleId} --auto\` writes a deleted order again.`,
  },
  sold_differs: {
    does: {},
    otherwise: 'recount_sold',
    todo: ({ saleId }) =>
      `Pause the sale with \`seckill sale pause ${saleId}\`. \`seckill reconcile --sale ${saleId}\` shows which count is wrong.`,
  },
  wrong_transition: {
    does: {},
    otherwise: 'person',
    todo: ({ orderId }) =>
      `Set the state from before again by hand, then use \`seckill orders cancel ${orderId}\` or \`seckill orders refund ${orderId}\`.`,
  },
  paid_without_payment: {
    does: {},
    otherwise: 'person',
    todo: ({ orderId }) =>
      `Set the values from before again by hand, then let the payment provider send its report again. \`seckill trace ${orderId}\` shows the payments.`,
  },
  row_changed: {
    does: {},
    otherwise: 'person',
    todo: ({ orderId }) =>
      `Set the value from before again by hand. It is in a backup${orderId === null ? '' : `, and \`seckill trace ${orderId}\` shows the order`}.`,
  },
  row_added: {
    does: {},
    otherwise: 'person',
    todo: ({ orderId }) => `Delete the row by hand, unless \`seckill trace ${orderId}\` shows its purchase.`,
  },
  not_readable: { does: {}, otherwise: 'person', todo: () => MANY },
  not_seen: { does: {}, otherwise: 'person', todo: () => MANY },
};

/** A finding that only counts other findings does not name them, so a person decides. */
export function actionOf({ kind, subject, detail }: WitnessFinding): Action {
  const { does, otherwise } = FOLLOWS[kind];
  if (/ \(and \d+ more\)$/.test(detail)) return 'person';
  const sentence = detail.slice(`${subject}: `.length);
  return Object.hasOwn(does, sentence) ? (does[sentence as Sentence] ?? otherwise) : otherwise;
}

/** The state to which a finding says that its order moved, or null. */
export const movedTo = ({ detail }: WitnessFinding): string | null =>
  / moved from \w+ to (\w+)/.exec(detail)?.[1] ?? null;

export const todoOf = (finding: WitnessFinding): string =>
  `${FOLLOWS[finding.kind].todo(finding)} Then \`seckill witness close ${finding.findingId}\`.`;
