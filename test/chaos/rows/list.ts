import type { Row } from '../row.js';
import { API_CLOCK_ROWS } from './api-clocks.js';
import { BUCKET_ROWS } from './buckets.js';
import { BOOKS_APART_ROWS } from './books-apart.js';
import { BROKER_DISK_ROWS } from './broker-disk.js';
import { BROKER_LOSS_ROWS } from './broker-loss.js';
import { BROKER_UNREACHABLE_ROWS } from './broker-unreachable.js';
import { BROKER_ROWS } from './broker.js';
import { EQUAL_IDENTITY_ROWS } from './equal-identities.js';
import { FORGED_TOKEN_ROWS } from './forged-tokens.js';
import { FULL_DISK_ROWS } from './full-disk.js';
import { FULL_SLOT_ROWS } from './full-slots.js';
import { GROUP_COMMIT_ROWS } from './group-commit.js';
import { HOSTILE_ROWS } from './hostile.js';
import { LATE_CHECK_BACK_ROWS } from './late-check-backs.js';
import { LATE_REFUSAL_ROWS } from './late-refusals.js';
import { LOCAL_STACK_ROWS } from './local-stack.js';
import { MANY_HALVES_ROWS } from './many-halves.js';
import { MYSQL_WRITE_ROWS } from './mysql-writes.js';
import { MYSQL_ROWS } from './mysql.js';
import { ORDER_END_ROWS } from './order-ends.js';
import { ORDER_ID_ROWS } from './order-ids.js';
import { ORDER_NOTIFICATIONS_ROWS } from './order-notifications.js';
import { RECONCILE_LIVE_ROWS } from './reconcile-live.js';
import { RECONCILE_ROWS } from './reconcile.js';
import { REDIS_EMPTY_ROWS } from './redis-empty.js';
import { REDIS_FAILOVER_ROWS } from './redis-failover.js';
import { REDIS_LOSS_ROWS } from './redis-loss.js';
import { REDIS_TROUBLE_ROWS } from './redis-trouble.js';
import { REDIS_ROWS } from './redis.js';
import { REPAIR_DEATH_ROWS } from './repair-deaths.js';
import { REPAIR_KEEPS_ROWS } from './repair-keeps.js';
import { REPAIR_MEETING_ROWS } from './repair-meetings.js';
import { RESTART_ROWS } from './restart.js';
import { RIVAL_ROWS } from './rivals.js';
import { RESHARD_ROWS } from './resharded-sale.js';
import { SECOND_STACK_ROWS } from './second-stack.js';
import { SHARED_BATCH_ROWS } from './shared-batches.js';
import { SLOW_CLIENT_ROWS } from './slow-clients.js';
import { SLOW_WORKER_ROWS } from './slow-workers.js';
import { TOO_SLOW_WORKER_ROWS } from './too-slow-worker.js';
import { TRANSACTION_ROWS } from './transaction.js';

/** The fault matrix, in its order. */
export const ROWS: readonly Row[] = [
  ...TRANSACTION_ROWS,
  ...LATE_CHECK_BACK_ROWS,
  ...API_CLOCK_ROWS,
  ...GROUP_COMMIT_ROWS,
  ...LATE_REFUSAL_ROWS,
  ...SHARED_BATCH_ROWS,
  ...FULL_SLOT_ROWS,
  ...BUCKET_ROWS,
  ...RESHARD_ROWS,
  ...REDIS_ROWS,
  ...REDIS_LOSS_ROWS,
  ...REDIS_EMPTY_ROWS,
  ...REPAIR_KEEPS_ROWS,
  ...REDIS_FAILOVER_ROWS,
  ...REPAIR_DEATH_ROWS,
  ...REPAIR_MEETING_ROWS,
  ...REDIS_TROUBLE_ROWS,
  ...BROKER_ROWS,
  ...BROKER_LOSS_ROWS,
  ...BROKER_DISK_ROWS,
  ...BROKER_UNREACHABLE_ROWS,
  ...MANY_HALVES_ROWS,
  ...SLOW_WORKER_ROWS,
  ...TOO_SLOW_WORKER_ROWS,
  ...ORDER_NOTIFICATIONS_ROWS,
  ...EQUAL_IDENTITY_ROWS,
  ...MYSQL_ROWS,
  ...MYSQL_WRITE_ROWS,
  ...BOOKS_APART_ROWS,
  ...ORDER_ID_ROWS,
  ...RIVAL_ROWS,
  ...RECONCILE_ROWS,
  ...ORDER_END_ROWS,
  ...RECONCILE_LIVE_ROWS,
  ...HOSTILE_ROWS,
  ...FORGED_TOKEN_ROWS,
  ...SLOW_CLIENT_ROWS,
  ...LOCAL_STACK_ROWS,
  ...RESTART_ROWS,
  ...SECOND_STACK_ROWS,
  ...FULL_DISK_ROWS,
];
