import { z } from 'zod';
import type { RuleReport, RuleReports } from '../core/ports/rules.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { RULE_REPORTERS_KEY } from './keys.js';

/** Apis whose reports are read; more than this system is made for. */
const APIS_MAX = 1000;
/** Nobody reports any more: the list goes too. */
const LIST_LIFE_MS = 3_600_000;

const version = z.int().min(0);
const ruleReport = z.object({
  processId: z.string(),
  host: z.string(),
  pid: z.int(),
  version: version.nullable(),
  refused: z.object({ version, reasons: z.array(z.string()) }).nullable(),
});

/** Reports are keys that expire by themselves, and a set of the processes that have one. All share a slot. */
export function createRuleReports({ redis }: RedisConnection, key = RULE_REPORTERS_KEY): RuleReports {
  const reportKey = (processId: string): string => `${key}:${processId}`;
  return {
    async report(report, lifeMs): Promise<void> {
      await asOperationalError('report the rules', () =>
        Promise.all([
          redis.set(reportKey(report.processId), JSON.stringify(report), 'PX', lifeMs),
          redis.sadd(key, report.processId),
          redis.pexpire(key, LIST_LIFE_MS),
        ]),
      );
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a report of the rules', () =>
        Promise.all([redis.unlink(reportKey(processId)), redis.srem(key, processId)]),
      );
    },

    live: () =>
      asOperationalError('read which rules are in force', async () => {
        const processIds = await redis.srandmember(key, APIS_MAX);
        if (processIds.length === 0) return [];
        const texts = await redis.mget(processIds.map(reportKey));
        const gone = processIds.filter((_, index) => texts[index] === null);
        // one that reports at this moment is back with its next report
        if (gone.length > 0) await redis.srem(key, ...gone);
        return processIds.flatMap((processId, index) => {
          const text = texts[index] ?? null;
          return text === null ? [] : [readReport(processId, text)];
        });
      }),
  };
}

/** What another release wrote, and cannot be read, is an api of which nothing is known. */
function readReport(processId: string, text: string): RuleReport {
  const read = ruleReport.safeParse(parsed(text));
  return read.success ? read.data : { processId, host: 'unknown', pid: 0, version: null, refused: null };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
