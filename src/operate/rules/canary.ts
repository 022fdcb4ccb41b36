import { addCounts, judgeCanary, type Canary, type CanaryVerdict } from '../../admission/rules/canary.js';
import type { RulesCanary } from '../../contract/rules.js';
import type { Job, PlannedJob } from '../../core/job.js';
import type { Log } from '../../core/ports/log.js';
import type { RuleReport, RuleRepository } from '../../core/ports/rules.js';
import { RuleAdmin } from './rule-admin.js';
import type { LiveReports } from './where-in-force.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { createRuleRepository } from '../../mysql/rule-repository.js';
import type { RedisConnection } from '../../redis/connection.js';
import { createRuleBroadcast } from '../../redis/rule-broadcast.js';
import { createRuleReports } from '../../redis/rule-reports.js';

/** Says how to end a canary, over HTTP and on the command line. */
export const CANARY_RUNNING =
  'A canary of rules is running. End it first: `seckill rules promote` or `seckill rules rollback`, or POST /admin/v1/rules/canary.';
export const NO_CANARY = 'No canary of rules is running.';

/** Formats a canary for admins, with the answers that the live apis have counted. */
export function canaryBody(canary: Canary | null, reports: readonly RuleReport[]): RulesCanary | null {
  if (canary === null) return null;
  const { rules: _rules, since, ...terms } = canary;
  const { others, tried } = addCounts(
    since,
    reports.map((report) => report.canary),
  );
  return { since, ...terms, tried, others };
}

export function canaryLines({ percent, minutes, maxRefusedPercent, since, tried, others }: RulesCanary): string[] {
  const share = ({ accepted, refused }: RulesCanary['tried']): string => {
    const total = accepted + refused;
    return total === 0 ? 'no answer yet' : `${refused} of ${total} refused (${((100 * refused) / total).toFixed(1)} %)`;
  };
  return [
    `A canary of new rules, begun by version ${since}, judges ${percent} % of the users for ${minutes} min.`,
    `  canary:       ${share(tried)}`,
    `  other users:  ${share(others)}`,
    `  It is rolled back if its share is more than ${maxRefusedPercent} points higher.`,
  ];
}

/** Time for the last reports of all apis. An api that cannot read the rules never reports them. */
const REPORTS_WITHIN_MS = 30_000;

interface CanaryPorts {
  readonly admin: RuleAdmin;
  readonly ageMs: RuleRepository['ageMs'];
  readonly reports: LiveReports;
  readonly log: Log;
}

/** Ends a canary that is over or refuses too much. Every keeper looks; the version number lets only one end it. */
export const endCanary = ({ admin, ageMs, reports, log }: CanaryPorts): Job => ({
  name: 'end-canary',
  async runOnce(): Promise<'idle' | void> {
    const newest = await admin.read();
    if ('outcome' in newest || newest.canary === null) return 'idle'; // the apis report rules that cannot be read
    const { canary } = newest;
    const age = await ageMs(canary.since);
    if (age === null) return; // MySQL was restored to an older state, and a new version will follow
    const live = await reports.live();
    const counts = addCounts(
      canary.since,
      live.map((report) => report.canary),
    );
    const verdict = judgeCanary(canary, counts, age);
    // A Redis that has just lost its data has no reports yet, or reports of some apis only.
    const isWhole = live.length > 0 && live.every(({ version }) => version === newest.version);
    const judgedMs = canary.minutes * 60_000 + REPORTS_WITHIN_MS;
    if (verdict !== 'refused_more' && !isWhole && age < judgedMs) return;
    if (verdict === 'continues') return;
    const end = verdict === 'passed' ? 'promoted' : 'rolled_back';
    const { tried, others } = counts;
    const why = { why: verdict, tried, others };
    const ended = await admin.endCanary(newest, end, 'keeper', why);
    if (ended.outcome !== 'published') return;
    const fields = { since: canary.since, version: ended.version, ...why };
    if (verdict === 'passed') log.info(fields, LINES[verdict]);
    else log.warn(fields, LINES[verdict]);
  },
});

const LINES: Readonly<Record<Exclude<CanaryVerdict, 'continues'>, string>> = {
  passed: 'the canary of rules passed: its rules are in force for all users',
  refused_more: 'the canary of rules refused too many purchases: the old rules are in force for all users',
  too_few_answers: 'the canary of rules had too few answers to judge it: the old rules are in force for all users',
};

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
