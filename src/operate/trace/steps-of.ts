import type { TraceStep as Body } from '../../contract/traces.js';
import { amountText } from '../../core/amount-text.js';
import { batchIn } from '../../core/batch.js';
import type { Metadata } from '../../core/metadata.js';
import { formatRequestEntry } from '../../core/outcome.js';
import { purchaseKey } from '../../core/purchase.js';
import { homeBucket } from '../../core/bucket.js';
import type { PurchaseEvidence } from './evidence.js';
import type { TracedOutboxRow } from './trace-repository.js';

type TraceSource = Body['source'];

export interface TraceStep {
  /** Unix ms on the clock of its source. Null for the current state. */
  readonly atMs: number | null;
  readonly source: TraceSource;
  readonly what: string;
  readonly detail: string;
}

const iso = (atMs: number): string => new Date(atMs).toISOString();
const at = (atMs: number | null, source: TraceSource, what: string, detail: string): TraceStep => ({
  atMs,
  source,
  what,
  detail,
});

export const cents = (amount: number, sale: PurchaseEvidence['sale']): string =>
  sale === null ? `${amount} in an unknown currency` : amountText(amount, sale.currency);
/** Formats metadata as JSON, which keeps text that a caller wrote on one line. */
const noted = (metadata: Metadata | null | undefined): string =>
  metadata ? `, metadata ${JSON.stringify(metadata)}` : '';

/** Returns the time line of a purchase: oldest step first, current state last. */
export function stepsOf(evidence: PurchaseEvidence): TraceStep[] {
  const steps = [
    ...storeSteps(evidence),
    ...orderSteps(evidence),
    ...moneySteps(evidence),
    ...evidence.repository.outboxRows.flatMap(outboxSteps),
    ...evidence.repository.witnessed.map(({ atMs, findingId, detail }) =>
      at(atMs, 'mysql', 'witnessed', `finding ${findingId}: ${detail}`),
    ),
    ...deadLetterSteps(evidence),
    ...jobSteps(evidence),
    ...evidence.audit.map(({ atMs, actor, action, subject }) =>
      at(atMs, 'mysql', 'audit', `${actor}: ${action} ${subject}`),
    ),
    ...brokerSteps(evidence),
  ];
  // `|| 0`: the difference between two steps without a time is Infinity - Infinity, which is NaN
  return steps.sort((a, b) => (a.atMs ?? Infinity) - (b.atMs ?? Infinity) || 0);
}

function storeSteps({ store, request, ...others }: PurchaseEvidence): TraceStep[] {
  const { sale, buyerUnits, entry, unsure, batch } = store;
  const buckets = others.sale?.buckets ?? 1;
  const steps: TraceStep[] = [];
  if (batch !== null) {
    const { batchId, marker, body, pendingSinceMs } = batch;
    const formedBatch = batchIn(body);
    if (formedBatch !== null) {
      const { createdAtMs, purchases, epoch } = formedBatch;
      const own = purchases.find((purchase) => purchaseKey(purchase) === purchaseKey(request));
      const formed = `${batchId}: ${purchases.length} purchases, epoch ${epoch}${noted(own?.metadata)}`;
      const detail = `${formed}; on the clock of the api`;
      steps.push(at(createdAtMs, 'redis', 'batch_formed', detail));
    }
    // An older batch took its units when a worker recorded it, not when the buyer came.
    const taken = marker === 'claimed' ? marker : 'deducted';
    if (pendingSinceMs !== null) steps.push(at(pendingSinceMs, 'redis', taken, `${batchId} is in pending`));
    steps.push(at(null, 'redis', 'marker', `${batchId}: ${marker ?? 'none'}`));
    if (marker === taken && body === null && pendingSinceMs === null) {
      steps.push(at(null, 'redis', 'marked_recorded', `${batchId} left pending; the time is not stored`));
    }
  }
  const retiredAtMs = others.sale?.retiredAtMs ?? null;
  if (retiredAtMs !== null) {
    return [
      ...steps,
      at(retiredAtMs, 'mysql', 'sale_retired', `sale ${request.saleId} has been only in MySQL since then`),
    ];
  }
  const text = entry === null ? 'none' : formatRequestEntry(entry);
  steps.push(
    at(null, 'redis', 'request', unsure ? `${text}; may be wrong, because the sale waits for a repair` : text),
  );
  if (sale === null) return [...steps, at(null, 'redis', 'sale', 'not loaded')];
  const { state, epoch, unitsLeft } = sale;
  const inBucket = `${unitsLeft} in bucket ${homeBucket(request.userId, buckets)} of this buyer`;
  const units =
    buckets === 1 ? `${unitsLeft} units left` : `${store.unitsLeft} units left in ${buckets} buckets, ${inBucket}`;
  const detail = `${state}, epoch ${epoch}, ${units}; the buyer has ${buyerUnits}`;
  return [...steps, at(null, 'redis', 'sale', detail)];
}

function orderSteps({ sale, repository: { order } }: PurchaseEvidence): TraceStep[] {
  if (order === null) return [at(null, 'mysql', 'order', 'none')];
  const { orderId, batchId, quantity, amountCents, state, reason, createdAtMs, expiresAtMs, paidAtMs, metadata } =
    order;
  const row = `order ${orderId}: ${quantity} for ${cents(amountCents, sale)}, batch ${batchId}${noted(metadata)}`;
  if (state === 'failed') return [at(createdAtMs, 'mysql', 'failed', `${row}, ${reason ?? 'no reason'}`)];
  const steps = [at(createdAtMs, 'mysql', 'recorded', row)];
  if (state === 'pending_payment' && expiresAtMs !== null)
    steps.push(at(expiresAtMs, 'mysql', 'payment_deadline', `order ${orderId} is unpaid`));
  if (paidAtMs !== null) steps.push(at(paidAtMs, 'mysql', 'paid', `order ${orderId}`));
  if (state !== 'pending_payment' && state !== 'paid') {
    steps.push(at(order.updatedAtMs, 'mysql', state, `order ${orderId}`));
  }
  return steps;
}

function moneySteps({ sale, repository: { payments, refunds, coupon } }: PurchaseEvidence): TraceStep[] {
  return [
    ...payments.map(({ atMs, paymentId, amountCents }) =>
      at(atMs, 'mysql', 'payment', `${paymentId}: ${cents(amountCents, sale)}`),
    ),
    ...refunds.flatMap(({ atMs, updatedAtMs, paymentId, amountCents, reason, state }) => [
      at(atMs, 'mysql', 'refund_due', `${paymentId}: ${cents(amountCents, sale)}, ${reason}`),
      ...(state === 'refunded' ? [at(updatedAtMs, 'mysql', 'refunded', paymentId)] : []),
    ]),
    ...(coupon?.hasCode ? [at(coupon.atMs, 'mysql', 'coupon', 'given')] : []),
  ];
}

function outboxSteps({ outboxId, kind, attempts, atMs, availableAtMs, doneAtMs }: TracedOutboxRow): TraceStep[] {
  const row = `outbox ${outboxId} ${kind}`;
  const end =
    doneAtMs === null
      ? at(null, 'mysql', 'outbox_waiting', `${row}: not done after ${attempts} attempts, due at ${iso(availableAtMs)}`)
      : at(doneAtMs, 'mysql', 'outbox_done', `${row}, attempts ${attempts}`);
  return [at(atMs, 'mysql', 'outbox_written', row), end];
}

const MESSAGE_STEPS = { half: 'half_stored', committed: 'committed', redriven: 'redriven' } as const;

function brokerSteps({ broker, silentBrokers, store, repository }: PurchaseEvidence): TraceStep[] {
  if (typeof broker === 'string') return [at(null, 'broker', 'not_asked', broker)];
  const batchId = repository.order?.batchId ?? store.batch?.batchId ?? 'no batch';
  const silent = silentBrokers.map((why) => at(null, 'broker', 'not_asked', why));
  if (broker.length === 0 && silent.length === 0) {
    return [at(null, 'broker', 'messages', `${batchId}: not stored, or no longer`)];
  }
  return [...broker.map(({ kind, storedAtMs }) => at(storedAtMs, 'broker', MESSAGE_STEPS[kind], batchId)), ...silent];
}

function deadLetterSteps({ deadLetters }: PurchaseEvidence): TraceStep[] {
  return deadLetters.flatMap((deadLetter) => {
    const { deadLetterId, reason, detail, group, state, replays, replayStartedAtMs, note } = deadLetter;
    const name = `dead letter ${deadLetterId}`;
    return [
      at(deadLetter.parkedAtMs, 'mysql', 'parked', `${name}: ${reason}, ${group} gave up; ${detail}`),
      ...(replayStartedAtMs === null
        ? []
        : [at(replayStartedAtMs, 'mysql', 'replay_begun', `${name}, replay ${replays}`)]),
      at(null, 'mysql', 'dead_letter', `${name}: ${state}${note === null ? '' : `, ${note}`}`),
    ];
  });
}

function jobSteps({ jobs }: PurchaseEvidence): TraceStep[] {
  return jobs.flatMap(
    ({ jobId, kind, state, attempts, detail, lastError, createdAtMs, updatedAtMs, availableAtMs }) => {
      const name = `compensation job ${jobId}`;
      const met = lastError === null ? '' : `, ${lastError}`;
      const now =
        state === 'pending'
          ? `pending, ${attempts} attempts, due at ${iso(availableAtMs)}`
          : `${state} after ${attempts} attempts`;
      return [
        at(createdAtMs, 'mysql', 'compensation', `${name}: ${kind}, ${detail}`),
        at(state === 'pending' ? null : updatedAtMs, 'mysql', 'compensation', `${name}: ${now}${met}`),
      ];
    },
  );
}
