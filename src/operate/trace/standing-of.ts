import type { Trace } from '../../contract/traces.js';
import { assertNever } from '../../core/errors.js';
import { isLive } from '../../core/order.js';
import { batchOfEntry } from '../../core/outcome.js';
import type { TracedDeadLetter } from '../../core/ports/dead-letters.js';
import type { PurchaseEvidence } from './evidence.js';
import { cents } from './steps-of.js';
import type { OrderTrace } from './trace-repository.js';

export interface Standing {
  readonly state: Trace['state'];
  /** The standing and the next step, as a sentence for people. */
  readonly sentence: string;
}

export interface StandingLimits {
  /** Time after which a batch that is not marked as recorded is published again, ms. */
  readonly redriveAfterMs: number;
}

export function standingOf(evidence: PurchaseEvidence, limits: StandingLimits): Standing {
  const standing =
    evidence.repository.order === null ? withoutRow(evidence, limits) : withRow(evidence, evidence.repository.order);
  const more = [...unfinished(evidence)].map((sentence) => ` ${sentence}`);
  return { ...standing, sentence: standing.sentence + more.join('') };
}

function withoutRow(evidence: PurchaseEvidence, { redriveAfterMs }: StandingLimits): Standing {
  const { store, deadLetters, request } = evidence;
  const { entry, batch, sale } = store;
  if (evidence.sale !== null && evidence.sale.retiredAtMs !== null) {
    const sentence = `Sale ${request.saleId} is retired, and request ${request.requestId} of buyer ${request.userId} has no order in it.`;
    return { state: 'unknown', sentence };
  }
  const parked = deadLetters.find(({ state }) => state === 'parked');
  if (store.unsure && parked === undefined) {
    const when =
      evidence.sale?.state === 'closed' ? 'when its buyer asks, because the sale is closed' : 'within seconds';
    const sentence = `Redis may have lost data of its sale, which the keeper rebuilds ${when}. Run the trace again after that.`;
    return { state: 'repairing', sentence };
  }
  if (entry === null) {
    const sentence = `Redis does not know this request of buyer ${request.userId}, and it has no order.`;
    return { state: 'unknown', sentence };
  }
  if (entry.state !== 'held') {
    const late = batchOfEntry(entry);
    if (late !== null && parked !== undefined) return { state: 'parked', sentence: parkedSentence(parked, 'refused') };
    const sentence =
      late === null
        ? `Redis has the purchase as ${entry.state}, with order ${entry.orderId}, but MySQL does not have this order. Reconcile reports it.`
        : `Batch ${late} came after a repair and found no units for this purchase. Its failed order will say so, or reconcile reports it.`;
    return { state: 'unrecorded', sentence };
  }
  if (batch !== null && batch.pendingSinceMs !== null) {
    const ageMs = Math.max(0, (sale?.nowMs ?? batch.pendingSinceMs) - batch.pendingSinceMs);
    const held = `Held for ${seconds(ageMs)}, not recorded:`;
    const next =
      batch.body === null
        ? 'its batch has no body left and cannot be published again; reconcile reports it, and repairs it if possible.'
        : ageMs < redriveAfterMs
          ? `a worker records it, or the keeper publishes it again after ${seconds(redriveAfterMs)}.`
          : 'the keeper publishes it again, with growing pauses, until a worker records it.';
    return { state: 'pending', sentence: `${held} ${next}` };
  }
  if (parked !== undefined) return { state: 'parked', sentence: parkedSentence(parked, 'held') };
  const sentence = `Held by batch ${entry.batchId}, which is neither pending nor parked. Only reconcile can end it.`;
  return { state: 'stray', sentence };
}

function parkedSentence(
  { deadLetterId, replayStartedAtMs, parkedAtMs, detail }: TracedDeadLetter,
  units: 'held' | 'refused',
): string {
  const begun = replayStartedAtMs === null ? '' : ' A replay began and did not end.';
  const rest = units === 'held' ? 'its units stay held' : 'it got no units';
  const where = `Parked as dead letter ${deadLetterId} at ${iso(parkedAtMs)}, ${rest}.${begun}`;
  return `${where} The last error: ${detail}. Nothing happens until an operator runs \`seckill dlq replay ${deadLetterId}\` or \`discard\`.`;
}

function withRow(evidence: PurchaseEvidence, order: NonNullable<OrderTrace['order']>): Standing {
  const { orderId, state, reason, expiresAtMs, createdAtMs, amountCents, refundedCents } = order;
  const { nowMs, coupon } = evidence.repository;
  const [back, whole] = [refundedCents, amountCents].map((amount) => cents(amount, evidence.sale));
  switch (state) {
    case 'pending_payment': {
      const leftMs = (expiresAtMs ?? nowMs) - nowMs;
      const unpaid = `Order ${orderId} has waited for its payment for ${seconds(nowMs - createdAtMs)}:`;
      const next =
        leftMs > 0
          ? `without payment it expires in ${seconds(leftMs)}, and its units go back.`
          : `it should have expired ${seconds(-leftMs)} ago; the next sweep of the keeper expires it.`;
      return { state, sentence: `${unpaid} ${next}` };
    }
    case 'paid': {
      const next = coupon === null && evidence.sale?.coupon ? 'its coupon follows.' : 'nothing more happens.';
      return { state, sentence: `Order ${orderId} is paid: ${next}` };
    }
    case 'refunding':
      return { state, sentence: `Order ${orderId} was paid, and the payment provider is asked to refund it.` };
    case 'refunded':
      return {
        state,
        sentence: `Order ${orderId} was paid, and ${back} of ${whole} went back to the buyer: its units stay sold.`,
      };
    case 'returned':
      return { state, sentence: `Order ${orderId} was paid and refunded: ${unitsAfterEnd(evidence)}` };
    case 'disputed':
      return { state, sentence: `Order ${orderId} was paid, and the buyer's bank disputes the payment.` };
    case 'cancelled':
    case 'expired':
    case 'failed': {
      const why = state === 'failed' ? `failed (${reason ?? 'no reason'})` : `is ${state}`;
      const lost = reason === 'units_lost' ? `${UNITS_LOST} ` : '';
      return { state, sentence: `${lost}Order ${orderId} ${why}: ${unitsAfterEnd(evidence)}` };
    }
    default:
      return assertNever(state);
  }
}

const UNITS_LOST =
  'Redis lost data after it accepted the buyer, and other buyers got the units before the batch was recorded.';

/** Says what happens to the units of an order that has ended. */
function unitsAfterEnd({ store: { entry, sale, unsure }, repository: { outboxRows } }: PurchaseEvidence): string {
  if (unsure) return 'its sale waits for a repair in Redis, which will return its units.';
  if (entry === null) return sale === null ? 'its sale is no longer in Redis.' : 'Redis holds no units for it.';
  if (entry.state === 'released') return 'its units are back; nothing more happens.';
  const release = outboxRows.find(({ kind, doneAtMs }) => kind === 'release' && doneAtMs === null);
  if (release === undefined) return 'its units are still held, and no outbox row returns them; reconcile reports it.';
  return `outbox row ${release.outboxId} returns its units, after ${release.attempts} attempts so far.`;
}

function* unfinished({ store: { entry }, repository, deadLetters, jobs }: PurchaseEvidence): Generator<string> {
  const { order, refunds } = repository;
  if (order !== null && isLive(order.state)) {
    if (entry?.state === 'held') yield 'Redis does not know the order yet; the keeper marks it within seconds.';
    const parked = deadLetters.find(({ state }) => state === 'parked');
    if (parked !== undefined) yield `Dead letter ${parked.deadLetterId} of its batch is still parked.`;
  }
  for (const { paymentId, state } of refunds) {
    if (state === 'due') yield `Payment ${paymentId} must be refunded: ${REFUND_NEXT}`;
  }
  for (const { jobId, state, availableAtMs } of jobs) {
    if (state === 'pending') yield `Compensation job ${jobId} is due at ${iso(availableAtMs)}.`;
    if (state === 'failed_final') yield `Compensation job ${jobId} failed finally; a person must decide.`;
  }
}

const REFUND_NEXT =
  'the keeper keeps asking the provider; a person must pay if the row says `refused`, or if no provider is configured.';

const iso = (atMs: number): string => new Date(atMs).toISOString();
/** Formats a duration for people, with tenths only where they matter. */
const seconds = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`);
