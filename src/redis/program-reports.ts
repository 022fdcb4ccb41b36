import { z } from 'zod';
import { SEVERITIES } from '../core/conditions.js';
import { PROGRAM_KINDS, type LiveProgram, type ProgramReports } from '../core/ports/program-reports.js';
import { asOperationalError, pipelined, type RedisConnection } from './connection.js';
import { PROGRAMS_KEY } from './keys.js';

/** Processes whose reports are read; more than this system is made for. */
const PROGRAMS_MAX = 1000;
/** Nobody reports any more: the list goes too. */
const LIST_LIFE_MS = 3_600_000;

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

/** Reports are keys that expire by themselves, and a set of the processes that have one. All share a slot. */
export function createProgramReports({ redis }: RedisConnection, key = PROGRAMS_KEY): ProgramReports {
  const reportKey = (processId: string): string => `${key}:${processId}`;
  return {
    async report(processId, report, lifeMs): Promise<void> {
      const text = JSON.stringify({ ...report, lifeMs });
      await asOperationalError('report a program', () =>
        Promise.all([
          redis.set(reportKey(processId), text, 'PX', lifeMs),
          redis.sadd(key, processId),
          redis.pexpire(key, LIST_LIFE_MS),
        ]),
      );
    },

    async withdraw(processId): Promise<void> {
      await asOperationalError('withdraw a report', () =>
        Promise.all([redis.unlink(reportKey(processId)), redis.srem(key, processId)]),
      );
    },

    live: () =>
      asOperationalError('read which programs run', async () => {
        const processIds = await redis.srandmember(key, PROGRAMS_MAX);
        if (processIds.length === 0) return [];
        const keys = processIds.map(reportKey);
        const texts = await redis.mget(keys);
        // what is left of a life says when the report was written, on the clock of Redis
        const leftMs = await pipelined(
          redis,
          keys.map((one) => ['pttl', one]),
        );
        const gone = processIds.filter((_, index) => texts[index] === null);
        // one that reports at this moment is back with its next report
        if (gone.length > 0) await redis.srem(key, ...gone);
        const live = texts.flatMap((text, index) => readReport(text, Number(leftMs[index])));
        return live.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
      }),
  };
}

const nameOf = ({ kind, id }: LiveProgram): string => `${kind} ${id}`;

function readReport(text: string | null, leftMs: number): LiveProgram[] {
  const read = storedReport.safeParse(parsed(text));
  if (!read.success) return [];
  const { lifeMs, ...report } = read.data;
  return [{ ...report, seenMsAgo: Math.max(0, lifeMs - leftMs) }];
}

function parsed(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}
