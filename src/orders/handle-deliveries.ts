import { decodeBatch, logFieldsOf, type Batch } from '../core/batch.js';
import { assertNever, OperationalError } from '../core/errors.js';
import { groupBy } from '../core/group-by.js';
import { WRITER_RETRIES_MAX } from '../core/topics.js';
import type { DeadLetterParking, DeadLetterReason } from '../core/ports/dead-letters.js';
import type { Delivery } from '../core/ports/channels.js';
import { NO_TRACING, type Span, type SpanStart, type Tracing } from '../core/ports/tracing.js';
import { asStep, messageFields } from '../core/spans.js';
import type { Log } from '../core/ports/log.js';
import type { LiveOrder } from '../core/ports/batch-store.js';
import { RETRY_FIRST_MS, redeliveryDelayMs } from '../core/back-off.js';
import type { RetryReason, WorkerMetrics } from './metrics.js';
import { type BatchResult, recordBatches, type RecordOptions, type RecordPorts } from './record-batches.js';

export interface HandlePorts extends RecordPorts {
  readonly deadLetters: DeadLetterParking;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
  /** If absent, nothing is traced. */
  readonly tracing?: Tracing;
  /** Takes over calls of `markRecorded`, with their acks, that Redis does not answer. If absent, the caller waits. */
  readonly inBackground?: (work: Promise<void>) => void;
}

export interface HandleOptions extends RecordOptions {
  /** Our consumer group and its topic, which are stored with a message that cannot be read. */
  readonly group: string;
  readonly topic: string;
  /** Pause before the second delivery of a batch that could not be written, ms. Later pauses grow. Default 1000. */
  readonly retryFirstMs?: number;
}

/** A multiple of the first pause. Even a busy worker retries a message within this time. */
const AGAIN_WITHIN = 60;

export interface BatchDelivery {
  readonly delivery: Delivery;
  readonly batch: Batch;
  /** Lasts from here to the end of the delivery. Absent if the batch is not traced. */
  readonly span?: Span;
}

/** Deliveries that could not be recorded for a reason that has nothing to do with them. */
export interface Postponed {
  /** Deliveries that wait for MySQL or for order ids. No delivery at all can be recorded at present. */
  readonly deliveries: readonly BatchDelivery[];
  /** Deliveries whose sale is being rebuilt. Other deliveries can be recorded. */
  readonly inRepair: readonly BatchDelivery[];
  /** The error of MySQL, if that is the reason. */
  readonly error: OperationalError | null;
}

interface Recorded extends BatchDelivery {
  readonly orders: readonly LiveOrder[];
}

// A received delivery ends in one of these states:
// - recorded: rows committed in MySQL, then marked as recorded in Redis, then acked
// - not marked: rows committed, but Redis did not answer. It is redelivered and finds its rows, or the keeper marks it
// - parked: not a batch, of no sale, or tried too often. It is in `dead_letters`, and acked
// - retried: the batch itself is at fault. It is redelivered after a pause, and parked after its last attempt
// - postponed: MySQL or the sale is not usable now. The worker keeps it and tries again
//
// If the worker dies between two steps, only steps that are safe to repeat are repeated.

/** A body that is not a batch never becomes one, so it is parked and acked here. Never rejects with a fault. */
export async function readBatches(
  deliveries: readonly Delivery[],
  ports: HandlePorts,
  options: HandleOptions,
): Promise<BatchDelivery[]> {
  const batches: BatchDelivery[] = [];
  for (const delivery of deliveries) {
    if (delivery.checkedBack) ports.metrics.checkedBack();
    const decoded = decodeBatch(delivery.body);
    if (decoded.outcome === 'decoded') {
      const { batch } = decoded;
      if (isDated(batch)) ports.metrics.batchReceived(ports.clock.nowMs() - batch.createdAtMs);
      const span = startSpan(delivery, batch, ports, options);
      batches.push(span === null ? { delivery, batch } : { delivery: endingSpan(delivery, span), batch, span });
    } else await park({ delivery, batch: null }, decoded.outcome, decoded.detail, ports, options);
  }
  return batches;
}

/** Starts the span of a delivery. The body is signed and names the parent span. */
function startSpan(
  { messageId, attempt }: Delivery,
  { batchId, saleId, traceparent, purchases }: Batch,
  { tracing = NO_TRACING }: HandlePorts,
  { topic, group }: HandleOptions,
): Span | null {
  if (traceparent === '') return null;
  const ids = { 'seckill.batch': batchId, 'seckill.sale': saleId, 'seckill.purchases': purchases.length };
  const fields = { ...messageFields({ topic, group, messageId, attempt }), ...ids };
  return tracing.startWork(traceparent, { name: `process ${topic}`, kind: 'consumer', fields });
}

/** Wraps a delivery so that the span ends with the delivery. */
const endingSpan = (delivery: Delivery, span: Span): Delivery => ({
  messageId: delivery.messageId,
  body: delivery.body,
  attempt: delivery.attempt,
  checkedBack: delivery.checkedBack,
  properties: delivery.properties,
  hold: (ms) => delivery.hold(ms),
  async ack() {
    const accepted = await delivery.ack();
    span.end(accepted ? undefined : 'the broker did not accept the ack');
    return accepted;
  },
  async retryAfter(delayMs) {
    await delivery.retryAfter(delayMs);
    span.end('returned a message; the broker delivers it again');
  },
});

const spansOf = (deliveries: readonly BatchDelivery[]): readonly Span[] => deliveries.flatMap(({ span }) => span ?? []);

/**
 * Writes the rows in MySQL, marks the batches as recorded in Redis, then acks.
 * @returns the postponed deliveries; all others are acked or given back
 */
export async function handleDeliveries(
  deliveries: readonly BatchDelivery[],
  ports: HandlePorts,
  options: HandleOptions,
): Promise<Postponed> {
  const { metrics, clock, log, tracing = NO_TRACING } = ports;
  const startedMs = clock.monotonicMs();
  const batches = deliveries.map(({ batch }) => batch);
  const record = (): Promise<BatchResult[]> => recordBatches(batches, ports, options);
  const results = await asStep(spansOf(deliveries), tracing, WRITE_ORDERS, record);
  const purchases = batches.reduce((sum, batch) => sum + batch.purchases.length, 0);
  metrics.batchesWritten(purchases, clock.monotonicMs() - startedMs);

  const recorded: Recorded[] = [];
  const postponed: BatchDelivery[] = [];
  const inRepair: BatchDelivery[] = [];
  let outage: OperationalError | null = null;
  for (const [index, result] of results.entries()) {
    const one = deliveries[index] as BatchDelivery;
    const { delivery, batch, span } = one;
    span?.set({ 'seckill.outcome': result.outcome });
    switch (result.outcome) {
      case 'recorded':
      case 'refused':
      case 'already_recorded':
        metrics.delivered(result.outcome, batch.purchases.length);
        if (result.outcome === 'recorded' && isDated(batch)) {
          metrics.recorded(batch.purchases.length, clock.nowMs() - batch.createdAtMs);
        }
        recorded.push({ ...one, orders: result.orders });
        break;
      case 'unknown_sale':
        await park(one, 'unknown_sale', `there is no sale ${batch.saleId}`, ports, options);
        break;
      case 'retry': {
        metrics.retried(result.reason);
        if (isPassing(result.reason)) {
          (WAITS_FOR_KEEPER.has(result.reason) ? inRepair : postponed).push(one);
          outage ??= result.error;
          break;
        }
        const { reason, error } = result;
        log.warn({ ...logFieldsOf(batch), attempt: delivery.attempt, reason, error: error?.message }, 'not recorded');
        const why = error === null ? reason : `${reason}: ${error.serverMessage}`;
        await retryOrPark(one, why, ports, options);
        break;
      }
      default:
        assertNever(result);
    }
  }
  await markAndAck(recorded, ports);
  return { deliveries: postponed, inRepair, error: outage };
}

/** Whether the batch has a creation time. A batch that a repair makes for a lost purchase has none. */
const isDated = ({ createdAtMs }: Batch): boolean => createdAtMs > 0;

/** Reasons that end without this worker: the keeper rebuilds the sale, or another worker records the other batch. */
const WAITS_FOR_KEEPER: ReadonlySet<RetryReason> = new Set(['repairing', 'not_warmed', 'held_elsewhere']);
/** Whether the reason lies outside the batch. The batch then waits without losing an attempt. */
const isPassing = (reason: RetryReason): boolean =>
  reason === 'unavailable' || reason === 'no_order_ids' || WAITS_FOR_KEEPER.has(reason);

/**
 * Gives a delivery back for a retry after a pause, during which the re-drive leaves the batch alone. After its last
 * attempt it is parked here, where the error is known. If the worker dies, the broker parks it.
 */
async function retryOrPark(
  one: BatchDelivery,
  detail: string,
  ports: HandlePorts,
  options: HandleOptions,
): Promise<void> {
  const { delivery, batch } = one;
  if (delivery.attempt > WRITER_RETRIES_MAX) return park(one, 'retries_exhausted', detail, ports, options);
  ports.metrics.delivered('retry', batch.purchases.length);
  const { retryFirstMs = RETRY_FIRST_MS } = options;
  const delayMs = redeliveryDelayMs(delivery.attempt, retryFirstMs);
  try {
    await ports.store.leaveAlone(batch, [{ batchId: batch.batchId, forMs: delayMs + AGAIN_WITHIN * retryFirstMs }]);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error; // without `leaveAlone` a duplicate may be published
  }
  await delivery.retryAfter(delayMs);
}

const WRITE_ORDERS: SpanStart = { name: 'write orders', kind: 'client' };
const MARK_RECORDED: SpanStart = { name: 'mark recorded', kind: 'client' };

/** How long a loop waits for `markRecorded` before it continues with other sales. The call takes a few ms. */
const MARK_WAIT_MS = 250;

/** Sales take turns: a sale in repair, or on a hanging Redis server, does not delay the others. */
async function markAndAck(recorded: readonly Recorded[], ports: HandlePorts): Promise<void> {
  if (recorded.length === 0) return;
  const { clock, inBackground } = ports;
  const sales = bySale(recorded).map((ofSale) => new Marking(ofSale, ports));
  const ended = Promise.all(sales.map((sale) => sale.ended));
  if (inBackground === undefined) return void (await ended);
  const waiting = new AbortController();
  try {
    await Promise.race([ended, clock.sleep(MARK_WAIT_MS, waiting.signal)]);
  } finally {
    waiting.abort(null); // without a reason, this would create an error with a stack trace
  }
  const late = sales.filter(({ waitsForRedis }) => waitsForRedis);
  for (const { ended: marked } of late) inBackground(marked);
  // Wait for every ack: a slow broker gets no further requests.
  await Promise.all(sales.filter((sale) => !late.includes(sale)).map((sale) => sale.ended));
}

/** Groups deliveries by sale. Nearly always there is a single sale. */
function bySale(recorded: readonly Recorded[]): readonly (readonly Recorded[])[] {
  const first = recorded[0]?.batch.saleId;
  if (recorded.every(({ batch }) => batch.saleId === first)) return [recorded];
  return [...groupBy(recorded, ({ batch }) => batch.saleId).values()];
}

class Marking {
  waitsForRedis = true;
  readonly ended: Promise<void>;

  constructor(recorded: readonly Recorded[], ports: HandlePorts) {
    this.ended = this.#run(recorded, ports);
  }

  async #run(recorded: readonly Recorded[], ports: HandlePorts): Promise<void> {
    const startedMs = ports.clock.monotonicMs();
    try {
      const mark = (): Promise<void> => ports.store.markRecorded(recorded).finally(() => (this.waitsForRedis = false));
      await asStep(spansOf(recorded), ports.tracing ?? NO_TRACING, MARK_RECORDED, mark);
      ports.metrics.markedRecorded(ports.clock.monotonicMs() - startedMs);
      await Promise.all(recorded.map(({ delivery }) => delivery.ack()));
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      await Promise.all(recorded.map((one) => notMarked(one, error, ports)));
    }
  }
}

/**
 * The rows exist, but Redis does not know it. The redelivered message finds the rows. On its last attempt it is acked
 * instead of becoming a dead letter: the batch is still in `pending`, so the keeper marks it.
 */
async function notMarked(
  { delivery, batch }: BatchDelivery,
  error: OperationalError,
  ports: HandlePorts,
): Promise<void> {
  ports.metrics.delivered('not_marked', batch.purchases.length);
  ports.log.warn(
    { ...logFieldsOf(batch), attempt: delivery.attempt, error: error.message },
    'recorded in MySQL, but not marked in Redis',
  );
  if (delivery.attempt > WRITER_RETRIES_MAX) await delivery.ack();
  else await delivery.retryAfter(redeliveryDelayMs(delivery.attempt));
}

/**
 * Writes the row, removes the batch from `pending` (the units stay held), then acks. If the worker dies in between, the
 * same row is parked again.
 */
async function park(
  { delivery, batch, span }: Omit<BatchDelivery, 'batch'> & { readonly batch: Batch | null },
  reason: Exclude<DeadLetterReason, 'forged'>,
  detail: string,
  { deadLetters, store, metrics, log }: HandlePorts,
  { group, topic, retryFirstMs }: HandleOptions,
): Promise<void> {
  const { messageId, body, attempt, properties } = delivery;
  const named = batch === null ? {} : logFieldsOf(batch);
  metrics.delivered(reason, batch?.purchases.length ?? 0);
  try {
    await deadLetters.park({
      messageId,
      group,
      originTopic: properties.get('topic') ?? topic,
      saleId: batch?.saleId ?? properties.get('saleId') ?? null,
      batchId: batch?.batchId ?? properties.get('batchId') ?? null,
      body,
      isBatch: batch !== null,
      reason,
      detail,
      attempts: attempt,
    });
    if (batch !== null) await store.park(batch);
    span?.end(`parked as a dead letter: ${reason}`); // the ack of a parked message does not mean success
    await delivery.ack();
    log.error({ messageId, ...named, reason }, 'parked a message as a dead letter');
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    log.warn(
      { messageId, ...named, reason, error: error.message },
      'could not park the message; the broker delivers it again',
    );
    await delivery.retryAfter(redeliveryDelayMs(attempt, retryFirstMs));
  }
}
