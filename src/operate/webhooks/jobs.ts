import { inSteps, type Job, type PlannedJob } from '../../core/job.js';
import { deliverWebhooks, type Keeper } from './deliver.js';
import { createDeliveryStore, DROP_REASONS } from './delivery-store.js';
import { createEndpointStore, ENDPOINTS_MAX } from './endpoint-store.js';

const TIDY_EVERY_MS = 60_000;

/** A lease lets one keeper do each job. A loop per endpoint keeps slow ones apart. */
export function webhookJobs(keeper: Keeper): PlannedJob[] {
  const { outboxEveryMs } = keeper.config.keeper;
  const deliver = keeper.due('webhook', deliverWebhooks(keeper));
  return [
    ...Array.from({ length: ENDPOINTS_MAX }, (): PlannedJob => [outboxEveryMs, deliver]),
    [TIDY_EVERY_MS, tidyWebhooks(keeper)],
  ];
}

/** Drops events that will not be sent, removes old rows, and forgets replaced secrets. */
const tidyWebhooks = ({ mysql, leases, owner, stopping, metrics, log }: Keeper): Job => ({
  name: 'tidy-webhooks',
  async runOnce(): Promise<void> {
    if (!(await leases.hold('tidy-webhooks', owner, TIDY_EVERY_MS))) return;
    const { drop, removeOld } = createDeliveryStore(mysql);
    for (const reason of DROP_REASONS) {
      const events = new Map<string, number>();
      await inSteps(async (max) => {
        const dropped = await drop(reason, max);
        for (const endpointId of dropped) events.set(endpointId, (events.get(endpointId) ?? 0) + 1);
        metrics.webhooksDropped(reason, dropped.length);
        return dropped.length;
      }, stopping);
      for (const [endpointId, count] of events) log.warn({ endpointId, reason, events: count }, DROPPED);
    }
    await inSteps(removeOld, stopping);
    await createEndpointStore(mysql).forgetSecrets();
  },
});

const DROPPED = 'events of a webhook endpoint are dropped';
