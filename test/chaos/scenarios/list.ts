import { idOf, type Scenario } from '../scenario.js';
import { API_CLOCKS_SCENARIOS } from './api-clocks.js';
import { BATCHES_SCENARIOS } from './batches.js';
import { BROKER_CLUSTER_SCENARIOS } from './broker-cluster.js';
import { BROKER_SCENARIOS } from './broker.js';
import { BUCKETS_SCENARIOS } from './buckets.js';
import { CHECK_BACKS_SCENARIOS } from './check-backs.js';
import { COUPONS_SCENARIOS } from './coupons.js';
import { FULL_DISKS_SCENARIOS } from './full-disks.js';
import { KEEPER_SCENARIOS } from './keeper.js';
import { LOCAL_STACK_SCENARIOS } from './local-stack.js';
import { MESSAGES_SCENARIOS } from './messages.js';
import { MYSQL_SCENARIOS } from './mysql.js';
import { MYSQL_FAIL_OVER_SCENARIOS } from './mysql-fail-over.js';
import { OVERLOAD_SCENARIOS } from './overload.js';
import { RECONCILE_SCENARIOS } from './reconcile.js';
import { REDIS_SCENARIOS } from './redis.js';
import { REDIS_LOSS_SCENARIOS } from './redis-loss.js';
import { REPAIR_SCENARIOS } from './repair.js';
import { RESTORE_SCENARIOS } from './restore.js';
import { TRANSACTION_SCENARIOS } from './transaction.js';
import { UPGRADE_SCENARIOS } from './upgrade.js';
import { WORKERS_SCENARIOS } from './workers.js';

/** The groups of the fault matrix, in its order. */
const GROUPS = 'TGRMDCSPL';

function orderOf(scenario: Scenario): number {
  const id = idOf(scenario);
  return GROUPS.indexOf(id.charAt(0)) * 100 + Number(id.slice(1));
}

/** Every scenario, in the order of the fault matrix. */
export const SCENARIOS: readonly Scenario[] = [
  ...TRANSACTION_SCENARIOS,
  ...CHECK_BACKS_SCENARIOS,
  ...API_CLOCKS_SCENARIOS,
  ...BATCHES_SCENARIOS,
  ...OVERLOAD_SCENARIOS,
  ...BUCKETS_SCENARIOS,
  ...REDIS_SCENARIOS,
  ...REDIS_LOSS_SCENARIOS,
  ...REPAIR_SCENARIOS,
  ...BROKER_SCENARIOS,
  ...BROKER_CLUSTER_SCENARIOS,
  ...FULL_DISKS_SCENARIOS,
  ...MESSAGES_SCENARIOS,
  ...WORKERS_SCENARIOS,
  ...MYSQL_SCENARIOS,
  ...MYSQL_FAIL_OVER_SCENARIOS,
  ...RECONCILE_SCENARIOS,
  ...KEEPER_SCENARIOS,
  ...COUPONS_SCENARIOS,
  ...LOCAL_STACK_SCENARIOS,
  ...RESTORE_SCENARIOS,
  ...UPGRADE_SCENARIOS,
].sort((one, other) => orderOf(one) - orderOf(other));

/** Scenarios of `npm test`: an api that dies after its deduct, a kill of Redis, and several batches at once. */
export const CORE_SCENARIOS: readonly string[] = ['G6', 'R1', 'T3/after_deduct'];
