import { createCompensationRepository } from '../../mysql/compensation-repository.js';
import { createOrderRepository } from '../../mysql/order-repository.js';
import { createOutbox } from '../../mysql/outbox.js';
import { createReconcileRepository } from '../../mysql/reconcile-repository.js';
import { createSaleRepository } from '../../mysql/sale-repository.js';
import type { Connections, PublishSections } from '../../process/connections.js';
import { wrapped } from '../../process/seams.js';
import { createBatchStore } from '../../redis/batch-store.js';
import { createReconcileStore } from '../../redis/reconcile-store.js';
import { createRepairStore } from '../../redis/repair-store.js';
import { ReconcileAdmin } from './reconcile-admin.js';
import { createReconcileRuns } from './reconcile-runs.js';

/** The service of the routes of reconcile. */
export interface ReconcileServices {
  readonly reconcile: ReconcileAdmin;
}

const LIMITS = {
  /** An older outbox row is stuck. After an outage a keeper needs minutes. */
  outboxAgeMs: 600_000,
  /** Reports a batch that the keeper has published again for longer than this. An hour is longer than most outages. */
  waitingMaxMs: 3_600_000,
  /** Requests of one sale and kind that a run reads again, one by one. The next run reads the rest. */
  readsMax: 1000,
};

/** @throws OperationalError redis */
export async function openReconcile(
  connections: Connections<'mysql' | 'redis' | PublishSections | 'reconcile'>,
): Promise<ReconcileServices> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  const { clock, log } = connections;
  const reconcile = new ReconcileAdmin(
    {
      batches: createBatchStore(redis),
      store: createReconcileStore(redis),
      repairs: createRepairStore(redis),
      repository: createReconcileRepository(mysql),
      jobs: createCompensationRepository(mysql),
      runs: createReconcileRuns(mysql, clock),
      sales: createSaleRepository(mysql),
      outbox: createOutbox(mysql),
      fail: {
        repository: wrapped('order repository', createOrderRepository(mysql)),
        minter: connections.minter(),
        clock,
      },
      channel: connections.redrives(),
      clock,
      log,
    },
    { ...connections.config.reconcile, ...LIMITS },
  );
  return { reconcile };
}
