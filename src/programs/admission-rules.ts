import type { Config } from '../core/config/schema.js';
import { missingSecrets, type Fitness } from '../admission/rules/rule-set.js';
import { CurrentRules } from '../admission/rules/current-rules.js';
import { RuleAdmin } from '../admission/rules/rule-admin.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRuleRepository } from '../mysql/rule-repository.js';
import { createAdmissionMetrics } from './admission-metrics.js';
import type { AdmissionMetrics } from '../core/ports/admission-metrics.js';
import type { Log } from '../core/ports/log.js';
import { createRuleBroadcast } from '../redis/rule-broadcast.js';
import { admissionKeysOf, type AdmissionChecksParts, type AdmissionKeys } from './admission-checks.js';
import { steadyClock } from './system-clock.js';

export interface RulesParts extends Pick<AdmissionChecksParts, 'redis' | 'registry' | 'fail'> {
  readonly mysql: MysqlPool;
  readonly log: Log;
}

/** The rules of the entry that are in force now, with a look-out for new ones. */
export interface OpenRules {
  readonly repository: CurrentRules;
  readonly admin: RuleAdmin;
  /** Rules that need others are refused. */
  readonly keys: AdmissionKeys;
  readonly metrics: AdmissionMetrics;
  /** Looks for new ones no more. Never rejects. */
  close(): Promise<void>;
}

/** @throws OperationalError mysql */
export async function openAdmissionRules(
  config: Config<'entry'>['entry'],
  { redis, mysql, registry, log, fail }: RulesParts,
): Promise<OpenRules> {
  const metrics = createAdmissionMetrics(registry);
  const [store, board] = [createRuleRepository(mysql), createRuleBroadcast(redis)];
  const keys = admissionKeysOf(config);
  const unfit: Fitness = (rules) => missingSecrets(rules, keys);
  const repository = new CurrentRules({ board, store, clock: steadyClock, metrics, log, unfit });
  await repository.start();
  const stop = new AbortController();
  const looking = repository.keepLooking(stop.signal).catch(fail);
  return {
    ...{ repository, admin: new RuleAdmin({ store, board, log, unfit }), keys, metrics },
    async close(): Promise<void> {
      stop.abort();
      await looking;
    },
  };
}
