import { RuleAdmin } from '../admission/rules/rule-admin.js';
import { OperationalError } from '../core/errors.js';
import { createReconcileRepository } from '../mysql/reconcile-repository.js';
import { createRuleRepository } from '../mysql/rule-repository.js';
import { createSaleRepository } from '../mysql/sale-repository.js';
import { createRepairStore } from '../redis/repair-store.js';
import { createRuleBroadcast } from '../redis/rule-broadcast.js';
import { createStockStore } from '../redis/stock-store.js';
import { wrapped } from '../process/seams.js';
import type { Connections } from '../process/connections.js';
import { systemClock as clock } from '../process/system-clock.js';

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

  const redis = await connections.redis();
}

  const redis = await connections.redis();
}
