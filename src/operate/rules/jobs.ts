import type { PlannedJob } from '../../core/job.js';
import type { Log } from '../../core/ports/log.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { createRuleRepository } from '../../mysql/rule-repository.js';
import type { RedisConnection } from '../../redis/connection.js';
import { createRuleBroadcast } from '../../redis/rule-broadcast.js';
import { createRuleReports } from '../../redis/rule-reports.js';
import { endCanary } from './canary.js';
import { RuleAdmin } from './rule-admin.js';

/** How often a canary is judged, as often as the apis report. It is found within five times this time. */
const JUDGE_EVERY_MS = 1000;

interface Keeper {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly log: Log;
}

export function ruleJobs({ redis, mysql, log }: Keeper): PlannedJob[] {
  const repository = createRuleRepository(mysql);
  const admin = new RuleAdmin({ repository, broadcast: createRuleBroadcast(redis), log });
  const { ageMs } = repository;
  return [[JUDGE_EVERY_MS, endCanary({ admin, ageMs, reports: createRuleReports(redis), log })]];
}
