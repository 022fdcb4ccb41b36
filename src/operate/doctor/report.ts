import {
  findingsOf,
  isSilent,
  isWorse,
  type Asked,
  type Check,
  type Finding,
  type Verdict,
} from '../../core/doctor/check.js';
import { MYSQL_ANSWERS, MYSQL_CHECKS, type MysqlFacts } from '../../core/doctor/mysql-checks.js';
import { REDIS_ANSWERS, REDIS_CHECKS, type RedisFacts } from '../../core/doctor/redis-checks.js';
import { ROCKETMQ_CHECKS, type RocketmqFacts } from './rocketmq-checks.js';
import { SETTINGS_CHECKS, type SettingsFacts } from './settings.js';

export interface AllFacts {
  readonly settings: SettingsFacts;
  readonly redis: Asked<RedisFacts>;
  readonly mysql: Asked<MysqlFacts>;
  /** The parts of these facts are read independently of each other. */
  readonly rocketmq: RocketmqFacts;
}

interface Group {
  readonly title: string;
  /** Every line that the group may have, for the documentation. */
  readonly checks: readonly Check<never>[];
  readonly findings: (facts: AllFacts) => Finding[];
}

/** A server that does not answer has a single line. */
const ofServer = <F extends object>(
  answers: Check<Asked<object>>,
  checks: readonly Check<F>[],
  asked: Asked<F>,
): Finding[] => [...findingsOf([answers], asked), ...(isSilent(asked) ? [] : findingsOf(checks, asked))];

/** All lines of `seckill doctor`, in order. */
export const GROUPS_OF_CHECKS: readonly Group[] = [
  {
    title: 'Settings',
    checks: SETTINGS_CHECKS,
    findings: ({ settings }) => findingsOf(SETTINGS_CHECKS, settings),
  },
  {
    title: 'Redis',
    checks: [REDIS_ANSWERS, ...REDIS_CHECKS],
    findings: ({ redis }) => ofServer(REDIS_ANSWERS, REDIS_CHECKS, redis),
  },
  {
    title: 'MySQL',
    checks: [MYSQL_ANSWERS, ...MYSQL_CHECKS],
    findings: ({ mysql }) => ofServer(MYSQL_ANSWERS, MYSQL_CHECKS, mysql),
  },
  {
    title: 'RocketMQ',
    checks: ROCKETMQ_CHECKS,
    findings: ({ rocketmq }) => findingsOf(ROCKETMQ_CHECKS, rocketmq),
  },
];

export interface Report {
  readonly verdict: Verdict;
  readonly groups: readonly { readonly title: string; readonly findings: readonly Finding[] }[];
}

/** @param accepted ids of checks whose risk counts as ok */
export function reportOn(facts: AllFacts, accepted: ReadonlySet<string> = new Set()): Report {
  const groups = GROUPS_OF_CHECKS.map(({ title, findings }) => ({
    title,
    findings: findings(facts).map((one) => (accepted.has(one.id) ? acceptedRisk(one) : one)),
  }));
  const verdicts = groups.flatMap(({ findings }) => findings.map(({ verdict }) => verdict));
  return { verdict: verdicts.reduce((worst, one) => (isWorse(one, worst) ? one : worst), 'ok'), groups };
}

const acceptedRisk = (one: Finding): Finding =>
  one.verdict === 'risky' ? { ...one, verdict: 'ok', says: `accepted: ${one.says}`, todo: null } : one;

export const CHECK_IDS: readonly string[] = GROUPS_OF_CHECKS.flatMap(({ checks }) => checks.map(({ id }) => id));
