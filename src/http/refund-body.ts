import type { StoredRefund } from '../core/ports/refund-repository.js';

/** A refund as a program reads it: times in ISO 8601. */
export const refundBody = ({ createdAtMs, updatedAtMs, ...refund }: StoredRefund): object => ({
  ...refund,
  createdAt: new Date(createdAtMs).toISOString(),
  updatedAt: new Date(updatedAtMs).toISOString(),
});
