import { decodeBatch, type Batch } from '../../core/batch.js';
import type { Undecodable } from '../../core/message-body.js';
import { decodeOrderEvents } from '../../core/order-event.js';
import { decodePaymentDeadline } from '../../core/payment-deadline.js';
import { GROUPS, type Group } from '../../core/topics.js';

/** What a body says of itself. `batch`: only where the body is one. */
export interface ReadBody {
  readonly outcome: 'decoded';
  readonly batch: Batch | null;
  readonly saleId: string | null;
  readonly batchId: string | null;
}
export type BodyReader = (body: string) => ReadBody | Undecodable;

/** How the messages of each group are read. */
export const BODY_READERS: Record<Group, BodyReader> = {
  [GROUPS.writer]: readBatch,
  [GROUPS.redriveWriter]: readBatch,
  [GROUPS.expirer]: readDeadline,
  [GROUPS.notifier]: readEvents,
  [GROUPS.coupon]: readEvents,
};

function readBatch(body: string): ReadBody | Undecodable {
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') return decoded;
  const { batch } = decoded;
  return { outcome: 'decoded', batch, saleId: batch.saleId, batchId: batch.batchId };
}

function readDeadline(body: string): ReadBody | Undecodable {
  const decoded = decodePaymentDeadline(body);
  if (decoded.outcome !== 'decoded') return decoded;
  const { saleId, batchId } = decoded.deadline;
  return { outcome: 'decoded', batch: null, saleId, batchId };
}

function readEvents(body: string): ReadBody | Undecodable {
  const decoded = decodeOrderEvents(body);
  if (decoded.outcome !== 'decoded') return decoded;
  return { outcome: 'decoded', batch: null, saleId: decoded.events[0]?.saleId ?? null, batchId: null };
}
