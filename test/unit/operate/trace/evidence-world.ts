import { sealBatch } from '../../../../src/core/batch.js';
import type { OrderState, ShownOrder } from '../../../../src/core/order.js';
import type { CompensationJob } from '../../../../src/core/ports/compensation-repository.js';
import type { TracedDeadLetter } from '../../../../src/core/ports/dead-letters.js';
import type { StoreEvidence, PurchaseEvidence } from '../../../../src/operate/trace/evidence.js';
import type { OrderTrace, TracedOutboxRow } from '../../../../src/operate/trace/trace-repository.js';
import { purchasesOf, saleOf } from '../../../helpers/sales.js';

export const START_MS = Date.UTC(2030, 0, 1);
const SALE = saleOf({ saleId: '7' }, START_MS);
/** Formed 50 ms before its deduct. */
export const BATCH = sealBatch({
  batchId: 'batch-1',
  saleId: '7',
  bucket: 0,
  epoch: 1,
  createdAtMs: START_MS - 50,
  traceparent: '',
  purchases: purchasesOf('u1', 'u2'),
});

/** A purchase deducted at the start, with a waiting batch, as the stores show it 12 s later. */
export function pendingEvidence(parts: {
  readonly store?: Partial<StoreEvidence>;
  readonly repository?: Partial<OrderTrace>;
  readonly deadLetters?: readonly TracedDeadLetter[];
  readonly jobs?: readonly CompensationJob[];
  readonly broker?: PurchaseEvidence['broker'];
  readonly silentBrokers?: PurchaseEvidence['silentBrokers'];
}): PurchaseEvidence {
  const nowMs = START_MS + 12_000;
  const { state, epoch, opensAtMs, closesAtMs } = SALE;
  return {
    request: { userId: 'u1', saleId: '7', requestId: 'k1' },
    sale: SALE,
    store: {
      sale: { state: state === 'draft' ? 'warm' : state, epoch, unitsLeft: 8, opensAtMs, closesAtMs, nowMs },
      unitsLeft: 8,
      buyerUnits: 1,
      entry: { state: 'held', batchId: 'batch-1', quantity: 1 },
      unsure: false,
      batch: { batchId: 'batch-1', marker: 'deducted', body: BATCH.body, pendingSinceMs: START_MS },
      ...parts.store,
    },
    repository: {
      order: null,
      payments: [],
      refunds: [],
      coupon: null,
      outboxRows: [],
      witnessed: [],
      nowMs,
      ...parts.repository,
    },
    deadLetters: parts.deadLetters ?? [],
    jobs: parts.jobs ?? [],
    audit: [],
    broker: parts.broker ?? 'no way there',
    silentBrokers: parts.silentBrokers ?? [],
  };
}

/** The same purchase once its order is in MySQL and marked recorded in Redis. */
export function recordedEvidence(
  state: OrderState,
  parts: {
    readonly order?: Partial<ShownOrder>;
    readonly repository?: Partial<OrderTrace>;
    readonly store?: Partial<StoreEvidence>;
  },
): PurchaseEvidence {
  const order: OrderTrace['order'] = {
    orderId: '42',
    userId: 'u1',
    saleId: '7',
    requestId: 'k1',
    batchId: 'batch-1',
    quantity: 1,
    amountCents: 1999,
    state,
    reason: null,
    createdAtMs: START_MS + 100,
    expiresAtMs: START_MS + 900_100,
    paidAtMs: null,
    refundedCents: 0,
    metadata: null,
    traceId: null,
    updatedAtMs: START_MS + 5000,
    ...parts.order,
  };
  const entry = { state: 'ordered', orderId: '42', quantity: 1 } as const;
  const batch = { batchId: 'batch-1', marker: 'deducted', body: null, pendingSinceMs: null } as const;
  return pendingEvidence({ store: { entry, batch, ...parts.store }, repository: { order, ...parts.repository } });
}

export const outboxRow = (parts: Partial<TracedOutboxRow> = {}): TracedOutboxRow => ({
  outboxId: '1',
  kind: 'batch_recorded',
  attempts: 1,
  atMs: START_MS + 100,
  availableAtMs: START_MS + 100,
  doneAtMs: START_MS + 400,
  ...parts,
});

export function deadLetterOf(parts: Partial<TracedDeadLetter> = {}): TracedDeadLetter {
  return {
    deadLetterId: '17',
    group: 'seckill-order-writer',
    reason: 'retries_exhausted',
    detail: 'given up',
    attempts: 8,
    state: 'parked',
    parkedAtMs: START_MS + 8000,
    replays: 0,
    replayStartedAtMs: null,
    note: null,
    ...parts,
  };
}

export function jobOf(parts: Partial<CompensationJob> = {}): CompensationJob {
  return {
    jobId: '3',
    kind: 'leak',
    saleId: '7',
    subject: '7/u1/k1',
    batchId: 'batch-1',
    userId: 'u1',
    requestId: 'k1',
    detail: 'held for long',
    state: 'pending',
    attempts: 1,
    availableAtMs: START_MS + 60_000,
    lastError: null,
    createdAtMs: START_MS + 10_000,
    updatedAtMs: START_MS + 10_000,
    ...parts,
  };
}
