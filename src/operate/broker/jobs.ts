import type { Config } from '../../core/config/schema.js';
import { publishedByOne, type Job, type PlannedJob } from '../../core/job.js';
import type { JobLeases } from '../../core/ports/job-leases.js';
import type { MessageFigures, RecoveryMetrics } from '../../recovery/metrics.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { OWN_GROUPS } from './message-inspection.js';
import { RocketmqInspection } from './rocketmq-inspection.js';

/** Short enough to show a dead letter or a lagging group within a minute. */
const MESSAGES_EVERY_MS = 10_000;

interface Keeper {
  readonly config: Config<'repair' | 'brokerAccess'>;
  readonly leases: JobLeases;
  readonly owner: string;
  readonly metrics: RecoveryMetrics;
}

/** Returns no jobs if no name server is known, because the broker cannot be asked. */
export function brokerJobs({ config: { repair, brokerAccess }, ...keeper }: Keeper): PlannedJob[] {
  if (repair.namesrv === '') return [];
  const inspection = new RocketmqInspection(repair.namesrv, brokerAccessOf(brokerAccess));
  return [[MESSAGES_EVERY_MS, watchMessages(keeper, () => inspection.figures(OWN_GROUPS))]];
}

/** One keeper asks for all keepers, because the answers cost the broker some work. */
export const watchMessages = (
  { leases, owner, metrics }: Omit<Keeper, 'config'>,
  look: () => Promise<MessageFigures>,
): Job =>
  publishedByOne(
    'watch-messages',
    leases,
    { owner, everyMs: MESSAGES_EVERY_MS },
    { look, publish: (figures) => metrics.messages(figures) },
  );
