import { loopsOf, type PlannedJob } from '../../core/job.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import type { LoopedSource } from '../../core/ports/channels.js';
import type { Log } from '../../core/ports/log.js';
import type { OrderRepository } from '../../core/ports/order-repository.js';
import type { Group, Topic } from '../../core/topics.js';
import { createDeadLetterParking } from '../../mysql/dead-letters.js';
import { createOverdueRepository } from '../../mysql/overdue-repository.js';
import type { MysqlPool } from '../../mysql/pool.js';
import type { RecoveryMetrics } from '../../recovery/metrics.js';
import { closeRecorded } from './close-recorded.js';
import { collectDeadLetters } from './collect-dead-letters.js';
import { createDeadLetterStore } from './dead-letter-store.js';

/** Interval for collecting. Dead letters are rare, so an idle collector pauses up to five times as long. */
const COLLECT_EVERY_MS = 2_000;
/** Interval for closing finished dead letters. It is not urgent, because nothing waits for it. */
const CLOSE_EVERY_MS = 10_000;

interface Keeper {
  readonly broker: {
    /** The dead-letter topic of each group, and the topic to which its messages were published. */
    readonly deadLetters: readonly { readonly group: Group; readonly topic: Topic; readonly source: LoopedSource }[];
  };
  readonly mysql: MysqlPool;
  readonly store: BatchStore;
  readonly repository: OrderRepository;
  readonly metrics: RecoveryMetrics;
  readonly log: Log;
}

export function deadLetterJobs({ broker, mysql, store, repository, metrics, log }: Keeper): PlannedJob[] {
  const parking = createDeadLetterParking(mysql);
  const { overdue } = createOverdueRepository(mysql);
  /** Counts dead letters as soon as they are parked. Overdue ones are reported separately. */
  const countParked = async (): Promise<void> =>
    metrics.deadLettersParked((await overdue({ dead_letter: 0 })).dead_letter.count);
  return [
    ...broker.deadLetters.flatMap(({ group, topic, source }) =>
      loopsOf(
        source,
        collectDeadLetters({ source, deadLetters: parking, store, repository, log, metrics }, { group, topic }),
        COLLECT_EVERY_MS,
      ),
    ),
    [CLOSE_EVERY_MS, { name: 'watch-parked', runOnce: countParked }],
    [CLOSE_EVERY_MS, closeRecorded({ deadLetters: createDeadLetterStore(mysql), store, repository })],
  ];
}
