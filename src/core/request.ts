/** The identity of a purchase; requestId, the caller's Idempotency-Key, is unique per buyer and sale only. */
export interface RequestRef {
  readonly userId: string;
  readonly saleId: string;
  readonly requestId: string;
}
