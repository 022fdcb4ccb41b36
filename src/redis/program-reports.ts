import { z } from 'zod';
import { SEVERITIES } from '../core/conditions.js';
import { jsonOrNull } from '../core/parse-json.js';
import { PROGRAM_KINDS, type LiveProgram, type ProgramReports } from '../core/ports/program-reports.js';
import { asOperationalError, pipelined, type RedisConnection } from './connection.js';
import { PROGRAMS_KEY } from './keys.js';
import { createLiveReports } from './live-reports.js';

const storedReport = z.object({
  kind: z.enum(PROGRAM_KINDS),
  id: z.string(),
  version: z.string(),
  ready: z.boolean(),
  problems: z.array(z.string()),
  conditions: z.array(
    z.object({
      key: z.string(),
      name: z.string(),
      severity: z.enum(SEVERITIES),
      about: z.string().nullable(),
      text: z.string(),
      sinceMs: z.number(),
    }),
  ),
  waiting: z.record(z.string(), z.number()),
  lifeMs: z.number(),
});

export function createProgramReports({ redis }: RedisConnection, key = PROGRAMS_KEY): ProgramReports {
  const reportKey = (processId: string): string => `${key}:${processId}`;
  const reports = createLiveReports(redis, key, reportKey);
  return {
    async report(processId, report, lifeMs): Promise<void> {
      const text = JSON.stringify({ ...report, lifeMs });
      await asOperationalError('report a program', () => reports.put(processId, text, lifeMs));
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a report', () => reports.remove(processId));
    },

    live: () =>
      asOperationalError('read which programs run', async () => {
        const found = await reports.live();
        if (found.length === 0) return [];
        // the remaining life says when the report was written, on the clock of Redis
        const leftMs = await pipelined(
          redis,
          found.map(([processId]) => ['pttl', reportKey(processId)]),
        );
        const live = found.flatMap(([, text], index) => readReport(text, Number(leftMs[index])));
        return live.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
      }),
  };
}

const nameOf = ({ kind, id }: LiveProgram): string => `${kind} ${id}`;

function readReport(text: string, leftMs: number): LiveProgram[] {
  const read = storedReport.safeParse(jsonOrNull(text));
  if (!read.success) return [];
  const { lifeMs, ...report } = read.data;
  return [{ ...report, seenMsAgo: Math.max(0, lifeMs - leftMs) }];
}
