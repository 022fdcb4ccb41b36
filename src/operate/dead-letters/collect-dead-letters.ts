import { type Batch, decodeBatch, logFieldsOf } from '../../core/batch.js';
import type { Job } from '../../core/job.js';
import type { Undecodable } from '../../core/message-body.js';
import { decodeOrderEvents } from '../../core/order-event.js';
import { decodePaymentDeadline } from '../../core/payment-deadline.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import type { DeadLetterParking } from '../../core/ports/dead-letters.js';
import type { Delivery, DeliverySource } from '../../core/ports/channels.js';
import type { Log } from '../../core/ports/log.js';
import type { OrderRepository } from '../../core/ports/order-repository.js';
import { type Group, GROUPS } from '../../core/topics.js';
import { markIfRecorded } from '../../recovery/mark-if-recorded.js';
import type { RecoveryMetrics } from '../../recovery/metrics.js';

/** `batch` is set only if the body is a batch. */
interface ReadBody {
  readonly outcome: 'decoded';
  readonly batch: Batch | null;
  readonly saleId: string | null;
  readonly batchId: string | null;
}
export type BodyReader = (body: string) => ReadBody | Undecodable;

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

export interface CollectDeadLettersPorts {
  /** The dead-letter topic of `group`. */
  readonly source: DeliverySource;
  readonly deadLetters: DeadLetterParking;
  readonly store: Pick<BatchStore, 'park' | 'markRecorded'>;
  readonly repository: Pick<OrderRepository, 'findByPurchases'>;
  readonly log: Log;
  readonly metrics: RecoveryMetrics;
}

const RECEIVE_MAX = 16;
/** Maximum number of receives per run. */
const RECEIVES_MAX = 100;

/**
 * Moves given-up messages into `dead_letters`: writes the row, takes a batch out of `pending` (its units stay held),
 * then acknowledges. A repeat after a crash changes nothing. @param options.topic for messages that do not name it
 */
export function collectDeadLetters(
  ports: CollectDeadLettersPorts,
  { group, topic }: { readonly group: Group; readonly topic: string },
): Job {
  const { source, deadLetters, store, repository, log, metrics } = ports;

  /** Marks the batch as recorded in Redis if its last worker died after COMMIT. Such a batch is not a dead letter. */
  const markLate = async (batch: Batch): Promise<boolean> => {
    if ((await markIfRecorded(batch, { repository, store })) === null) return false;
    metrics.markedLate(1);
    return true;
  };

  const collect = async (delivery: Delivery): Promise<void> => {
    const body = BODY_READERS[group](delivery.body);
    const read = body.outcome === 'decoded' ? body : null;
    if (read?.batch && (await markLate(read.batch))) return void (await delivery.ack());
    const parked = await deadLetters.park({
      messageId: delivery.messageId,
      group,
      originTopic: delivery.properties.get('topic') ?? topic,
      saleId: read?.saleId ?? delivery.properties.get('saleId') ?? null,
      batchId: read?.batchId ?? delivery.properties.get('batchId') ?? null,
      body: delivery.body,
      isBatch: (read?.batch ?? null) !== null,
      reason: body.outcome === 'decoded' ? 'retries_exhausted' : body.outcome,
      // a worker that sees the last attempt itself parks the message, with its error
      detail:
        body.outcome === 'decoded'
          ? 'the broker gave up on it, because its consumer died or kept it too long'
          : body.detail,
      attempts: delivery.attempt,
    });
    if (read?.batch) await store.park(read.batch);
    await delivery.ack();
    if (parked === 'already_parked') return;
    metrics.parked(1);
    const named = read?.batch ? logFieldsOf(read.batch) : { batchId: read?.batchId };
    log.warn({ messageId: delivery.messageId, ...named, group }, 'dead letter parked');
  };

  return {
    name: `collect-dead-letters:${group}`,
    async runOnce(): Promise<'idle' | void> {
      const faults: unknown[] = [];
      for (let receives = 1; receives <= RECEIVES_MAX && faults.length === 0; receives++) {
        const deliveries = await source.receive(RECEIVE_MAX);
        if (deliveries.length === 0) return receives === 1 ? 'idle' : undefined;
        for (const delivery of deliveries) {
          await collect(delivery).catch((error: unknown) => faults.push(error)); // it is delivered again
        }
      }
      if (faults.length > 0) throw faults[0];
    },
  };
}
