import { decodeBatch } from '../../core/batch.js';
import { BucketFaults } from '../../core/bucket-faults.js';
import type { Job } from '../../core/job.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import type { DeadLetterStore, ParkedBatch } from './dead-letter-store.js';
import type { OrderRepository } from '../../core/ports/order-repository.js';
import { SYSTEM_ACTOR } from '../../core/ports/sale-repository.js';
import { GROUPS } from '../../core/topics.js';
import { markIfRecorded } from '../../recovery/mark-if-recorded.js';

export interface CloseRecordedPorts {
  readonly deadLetters: DeadLetterStore;
  readonly store: BatchStore;
  readonly repository: OrderRepository;
}

const PER_RUN = 100;
/** Maximum number of dead letters of one batch. Older releases parked several. */
const PER_BATCH_MAX = 10;
const WRITERS: readonly string[] = [GROUPS.writer, GROUPS.redriveWriter];

/** Closes dead letters of batches that another message has recorded since. Each run checks some, in turn. */
export function closeRecorded(ports: CloseRecordedPorts): Job {
  let after = '';
  return {
    name: 'close-recorded-dead-letters',
    async runOnce(): Promise<void> {
      const faults = new BucketFaults();
      const page = await ports.deadLetters.parkedBatches(after, PER_RUN);
      after = page.length < PER_RUN ? '' : (page.at(-1)?.batchId ?? '');
      await faults.forEach(page, (parked) => closeIfRecorded(parked, ports), 1);
      faults.throwIfAny();
    },
  };
}

/** If another batch wrote its rows, a batch stays parked, because only a replay can find out what it holds. */
async function closeIfRecorded(
  { batchId, body }: ParkedBatch,
  { deadLetters, store, repository }: CloseRecordedPorts,
): Promise<void> {
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') return;
  const marked = await markIfRecorded(decoded.batch, { repository, store });
  if (marked === null) return;
  const note = `recorded by another message of its batch: ${marked.live} live, ${marked.ended} ended`;
  for (const { deadLetterId, group } of await deadLetters.list({ batchId, state: 'parked' }, { max: PER_BATCH_MAX })) {
    if (WRITERS.includes(group)) await deadLetters.close(deadLetterId, SYSTEM_ACTOR, 'replayed', note);
  }
}
