import { z } from 'zod';
import { jsonOrNull } from '../core/parse-json.js';
import type { RuleReport, RuleReports } from '../core/ports/rules.js';
import { asOperationalError, type RedisConnection } from './connection.js';
import { RULE_REPORTERS_KEY } from './keys.js';
import { createLiveReports } from './live-reports.js';

const version = z.int().min(0);
const answers = z.object({ accepted: z.int().min(0), refused: z.int().min(0) });
const ruleReport = z.object({
  processId: z.string(),
  host: z.string(),
  pid: z.int(),
  version: version.nullable(),
  refused: z.object({ version, reasons: z.array(z.string()) }).nullable(),
  // The previous release reports no canary.
  canary: z.object({ since: version, others: answers, tried: answers }).nullable().default(null),
});

export function createRuleReports({ redis }: RedisConnection, key = RULE_REPORTERS_KEY): RuleReports {
  const reports = createLiveReports(redis, key);
  return {
    async report(report, lifeMs): Promise<void> {
      await asOperationalError('report the rules', () => reports.put(report.processId, JSON.stringify(report), lifeMs));
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a report of the rules', () => reports.remove(processId));
    },

    live: () =>
      asOperationalError('read which rules are in force', async () =>
        (await reports.live()).map(([processId, text]) => readReport(processId, text)),
      ),
  };
}

/** Treats an unreadable report, such as that of another release, as an api in an unknown state. */
function readReport(processId: string, text: string): RuleReport {
  const read = ruleReport.safeParse(jsonOrNull(text));
  return read.success ? read.data : { processId, host: 'unknown', pid: 0, version: null, refused: null, canary: null };
}
