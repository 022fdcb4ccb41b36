import { RuleAdmin } from '../admission/rules/rule-admin.js';
import { OperationalError } from '../core/errors.js';
import type { TraceBroker } from '../core/ports/trace-sources.js';
import { createAuditLog } from '../mysql/audit-log.js';
import { createCompensationRepository } from '../mysql/compensation-repository.js';
import { createTracedDeadLetters } from '../mysql/dead-letters.js';
import { createOrderRepository } from '../mysql/order-repository.js';
import { createOutbox } from '../mysql/outbox.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createReconcileRuns } from '../mysql/reconcile-runs.js';
import { createRuleRepository } from '../mysql/rule-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createTraceRepository } from '../mysql/trace-repository.js';
import { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import { TracePurchase } from '../recovery/trace/trace-purchase.js';
import { createBatchStore } from '../redis/batch-store.js';
import { createReconcileStore } from '../redis/reconcile-store.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createRuleBroadcast } from '../redis/rule-broadcast.js';
import { createStockStore } from '../redis/stock-store.js';
import { createTraceStore } from '../redis/trace-store.js';
import { wrapped } from '../process/seams.js';
import type { Connections, PublishSections } from '../process/connections.js';
import { systemClock as clock } from '../process/system-clock.js';

const RECONCILE_LIMITS = {
  /** An older outbox row is stuck. After an outage a keeper needs minutes. */
  outboxAgeMs: 600_000,
  /** Reports a batch that the keeper has published again for longer than this. An hour is longer than most outages. */
  waitingMaxMs: 3_600_000,
  /** Requests of one sale and kind that a run reads again, one by one. The next run reads the rest. */
  readsMax: 1000,
};

/** Opens the rules, which MySQL stores. They can be changed while Redis is down, when a change may matter most. */
export async function openRules(connections: Connections<'mysql' | 'redis'>): Promise<RuleAdmin> {
  const redis = await connections.redis().catch((error: unknown) => {
    if (error instanceof OperationalError) return error;
    throw error;
  });
  const broadcast =
    redis instanceof OperationalError ? { announce: () => Promise.reject(redis) } : createRuleBroadcast(redis);
  return new RuleAdmin({ repository: createRuleRepository(connections.mysql()), broadcast, log: connections.log });
}

export async function openReconcile(
  connections: Connections<'mysql' | 'redis' | PublishSections | 'reconcile'>,
): Promise<ReconcileAdmin> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  return new ReconcileAdmin(
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
      log: connections.log,
    },
    { ...connections.config.reconcile, ...RECONCILE_LIMITS },
  );
}

/**
 * Opens the trace of a purchase, which only reads.
 * @param broker null: the broker is not asked
 */
export async function openTrace(
  connections: Connections<'mysql' | 'redis' | 'keeper'>,
  broker: TraceBroker | null,
): Promise<TracePurchase> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  return new TracePurchase(
    {
      sales: createSaleRepository(mysql),
      stock: createStockStore(redis, connections.log),
      store: createTraceStore(redis),
      repository: createTraceRepository(mysql),
      deadLetters: createTracedDeadLetters(mysql),
      jobs: createCompensationRepository(mysql),
      audit: createAuditLog(mysql),
      broker,
    },
    { redriveAfterMs: connections.config.keeper.redriveAfterMs },
  );
}
