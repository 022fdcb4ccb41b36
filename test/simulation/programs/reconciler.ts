import { createOrderIdMinter } from '../../../src/orders/order-id-minter.js';
import type { ReconcileRepository } from '../../../src/core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../../../src/core/ports/reconcile-store.js';
import type { RepairStore } from '../../../src/core/ports/repair-stores.js';
import { ReconcileAdmin } from '../../../src/recovery/reconcile/reconcile-admin.js';
import { compensateJob, reconcileJob } from '../../../src/recovery/reconcile/reconcile-jobs.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import type { Job } from '../../../src/core/job.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../../helpers/memory/memory-reconcile.js';
import type { Life } from '../engine/simulated-process.js';
import { streamed, through } from '../engine/with-faults.js';
import type { Site } from '../simulated-system.js';

/** Only what a loss of data could bring about: here every one of them would be a false alarm. */
const IMPOSSIBLE = [
  'leak',
  'not_loaded',
  'oversell',
  'miscount',
  'drift',
  'order_lost',
  'unheld',
  'stale_marker',
] as const;
const WAITING_MAX_MS = 3_600_000;
const MARKER_AGE_MS = 4 * 24 * 3_600_000;

/** Reconcile and compensation, as the keeper runs them. */
export function reconcilers(life: Life, site: Site): Job[] {
  const { shape, log, broker } = site;
  const { clock } = life;
  const slots = through(life, 'mysql', site.slots, ['acquire', 'free']);
  const owner = `reconcile-${site.rng.range(1, 1_000_000_000)}`;
  const admin = new ReconcileAdmin(
    {
      store: {
        ...through(life, 'redis', site.servers.settlement, ['markRecorded', 'release']),
        ...storeOf(life, site),
      },
      repository: repositoryOf(life, site),
      jobs: through(life, 'mysql', site.compensations, [
        ...(['add', 'list', 'find', 'byRequest', 'byBatch', 'counts', 'claim'] as const),
        ...(['done', 'failed', 'postpone', 'retry', 'announce'] as const),
      ]),
      runs: through(life, 'mysql', site.runs, ['lease', 'free', 'begin', 'end', 'removeOld', 'list']),
      sales: through(life, 'mysql', site.books, ['list']),
      outbox: through(life, 'mysql', site.servers.outbox, ['postpone']),
      fail: {
        repository: through(life, 'mysql', site.books, ['termsOf', 'findByPurchases', 'write']),
        minter: createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: shape.slotLeaseMs }),
        clock,
      },
      channel: through(life, 'rocketmq', broker.redriveChannel(), ['publish']),
      clock,
      log,
    },
    {
      safeAgeMs: shape.safeAgeMs,
      markerAgeMs: MARKER_AGE_MS,
      outboxAgeMs: shape.safeAgeMs,
      waitingMaxMs: WAITING_MAX_MS,
      readsMax: 1000,
      retryFirstMs: shape.compensateFirstMs,
      leaseMs: shape.outboxLeaseMs,
    },
  );
  const metrics = metricsOf(site);
  return [reconcileJob({ admin, metrics }, { apply: true }), compensateJob({ admin, metrics })];
}

function storeOf(life: Life, { store }: Site): ReconcileStore & Pick<RepairStore, 'statusOf'> {
  const read = new MemoryReconcileStore(store);
  return {
    ...through(life, 'redis', read, [
      ...(['entriesOf', 'batch', 'pendingAmong', 'units', 'adjust'] as const),
      ...(['recordedMarkers', 'removeMarkers', 'statusOf'] as const),
    ]),
    requests: streamed(life, 'redis', 'requests', (ref) => read.requests(ref)),
  };
}

function repositoryOf(life: Life, { books, deadLetters }: Site): ReconcileRepository {
  const read = new MemoryReconcileRepository(books, deadLetters);
  return {
    ...through(life, 'mysql', read, [
      ...(['findSale', 'rowsOf', 'undoneReleases', 'parkedBatches', 'stuckRows', 'isDone'] as const),
    ]),
    agedOrders: streamed(life, 'mysql', 'agedOrders', (sale) => read.agedOrders(sale)),
  };
}

function metricsOf(site: Site): Pick<RecoveryMetrics, 'reconciled' | 'compensationJobs'> {
  return {
    reconciled: (findings) => {
      for (const kind of Object.keys(findings)) site.count(`finding: ${kind}`);
      const isShut = site.past.repairs > 0; // while the sale is rebuilt nothing of it can be judged, and that is told
      const impossible = IMPOSSIBLE.find((kind) => (findings[kind] ?? 0) > 0 && !(isShut && kind === 'not_loaded'));
      if (impossible !== undefined && site.past.restarts === 0)
        site.fail('FALSE ALARM', `reconcile found ${impossible}, and nothing was lost`);
    },
    compensationJobs: (counts) => {
      if (counts.compensated > 0) site.count('compensation: compensated');
      if (counts.failed_final > 0) site.count('compensation: failed_final');
    },
  };
}
