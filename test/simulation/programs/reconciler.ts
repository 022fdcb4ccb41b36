import { createOrderIdMinter } from '../../../src/orders/order-id-minter.js';
import type { ReconcileRepository } from '../../../src/core/ports/reconcile-repository.js';
import type { ReconcileStore } from '../../../src/core/ports/reconcile-store.js';
import type { RepairStore } from '../../../src/core/ports/repair-stores.js';
import { ReconcileAdmin } from '../../../src/operate/reconcile/reconcile-admin.js';
import { compensateJob, reconcileJob } from '../../../src/operate/reconcile/jobs.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import type { Job } from '../../../src/core/job.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../../helpers/memory/memory-reconcile.js';
import { MemoryRepairStore } from '../../helpers/memory/memory-repair-store.js';
import type { SimulatedProcess } from '../engine/simulated-process.js';
import { pagesWithFaults, withFaults } from '../engine/with-faults.js';
import type { SimulatedSystem } from '../simulated-system.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

/** Findings that are false alarms unless data was lost. */
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
export function reconcilers(proc: SimulatedProcess, system: SimulatedSystem): Job[] {
  const { shape, log, broker } = system;
  const { clock } = proc;
  const repairs: RepairStore = new MemoryRepairStore(system.redis);
  const slots = withFaults(proc, 'mysql', system.slots, ['acquire', 'free']);
  const owner = `reconcile-${system.rng.range(1, 1_000_000_000)}`;
  const reconcile = new ReconcileAdmin(
    {
      batches: withFaults(proc, 'redis', system.servers.batches, ['markRecorded', 'release']),
      store: storeOf(proc, system),
      repairs: {
        ...withFaults(proc, 'redis', repairs, ['statusOf']),
        askForRepair: (saleId) => repairs.askForRepair(saleId),
      },
      repository: repositoryOf(proc, system),
      jobs: withFaults(proc, 'mysql', system.compensations, [
        ...(['add', 'list', 'find', 'byRequest', 'byBatch', 'counts', 'claim'] as const),
        ...(['done', 'failed', 'postpone', 'retry', 'announce', 'removeOld'] as const),
      ]),
      runs: withFaults(proc, 'mysql', system.runs, ['lease', 'free', 'begin', 'end', 'removeOld', 'list']),
      sales: withFaults(proc, 'mysql', system.repositories, ['list']),
      outbox: withFaults(proc, 'mysql', system.servers.outbox, ['postpone']),
      fail: {
        repository: withFaults(proc, 'mysql', system.repositories, ['termsOf', 'findByPurchases', 'write']),
        minter: createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: shape.slotLeaseMs }),
        clock,
      },
      channel: withFaults(proc, 'rocketmq', broker.redriveChannel(), ['publish']),
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
  const parts = { reconcile, metrics: metricsOf(system) };
  return [reconcileJob(parts, { apply: true }), compensateJob(parts)];
}

function storeOf(proc: SimulatedProcess, { redis }: SimulatedSystem): ReconcileStore {
  const read: ReconcileStore = new MemoryReconcileStore(redis);
  return {
    ...withFaults(proc, 'redis', read, [
      ...(['entriesOf', 'batch', 'pendingAmong', 'units', 'adjust'] as const),
      ...(['recordedMarkers', 'removeMarkers'] as const),
    ]),
    requests: pagesWithFaults(proc, 'redis', 'requests', (ref) => read.requests(ref)),
  };
}

function repositoryOf(proc: SimulatedProcess, { repositories, deadLetters }: SimulatedSystem): ReconcileRepository {
  const read: ReconcileRepository = new MemoryReconcileRepository(repositories, deadLetters);
  return {
    ...withFaults(proc, 'mysql', read, [
      ...([
        'findSale',
        'rowsOf',
        'orderPage',
        'undoneReleases',
        'isRestocked',
        'parkedBatches',
        'stuckRows',
        'isDone',
      ] as const),
    ]),
    unlistedOrders: pagesWithFaults(proc, 'mysql', 'unlistedOrders', (sale) => read.unlistedOrders(sale)),
  };
}

function metricsOf(system: SimulatedSystem): RecoveryMetrics {
  return {
    ...noRecoveryMetrics,
    reconciled: (findings) => {
      for (const kind of Object.keys(findings)) system.count(`finding: ${kind}`);
      // during a rebuild, reconcile can only report `not_loaded`
      const isLocked = system.past.repairs > 0;
      const impossible = IMPOSSIBLE.find((kind) => (findings[kind] ?? 0) > 0 && !(isLocked && kind === 'not_loaded'));
      if (impossible !== undefined && system.past.restarts === 0)
        system.fail('FALSE ALARM', `reconcile found ${impossible}, and nothing was lost`);
    },
    compensationJobs: (counts) => {
      if (counts.compensated > 0) system.count('compensation: compensated');
      if (counts.failed_final > 0) system.count('compensation: failed_final');
    },
  };
}
