// Findings of the witness in the binary log (src/operate/witness).

/** docs/recovery.md (The witness) explains each kind. */
export const WITNESS_KINDS = [
  'order_without_outbox',
  'wrong_transition',
  'paid_without_payment',
  'row_changed',
  'row_deleted',
  'row_added',
  'sold_differs',
  'not_readable',
  'not_seen',
] as const;
export type WitnessKind = (typeof WITNESS_KINDS)[number];

/** `open` until an operator closes it. */
export const WITNESS_STATES = ['open', 'closed'] as const;
export type WitnessState = (typeof WITNESS_STATES)[number];
