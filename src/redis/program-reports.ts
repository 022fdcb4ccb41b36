import { z } from 'zod';
import { SEVERITIES } from '../core/conditions.js';
import type { Clock } from '../core/ports/clock.js';
import { VANISHED_NAMED_MS, vanishedPrograms, type SeenProgram } from '../core/vanished-programs.js';
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
  notReadySinceMs: z.number().nullable().default(null),
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

const storedSeen = z.object({
  kind: z.enum(PROGRAM_KINDS),
  id: z.string(),
  startedAtMs: z.number(),
  seenAtMs: z.number(),
});

export function createProgramReports({ redis }: RedisConnection, clock: Clock, key = PROGRAMS_KEY): ProgramReports {
  const reportKey = (processId: string): string => `${key}:${processId}`;
  /** A hash of every process that has reported and has not withdrawn its report. It outlives the report. */
  const seenKey = `${key}:seen`;
  const reports = createLiveReports(redis, key, reportKey);
  const startedAtMs = new Map<string, number>();

  /** Also forgets processes that were replaced or vanished long ago. */
  const readVanished = async (): Promise<SeenProgram[]> => {
    const [texts, live] = await Promise.all([redis.hgetall(seenKey), reports.live()]);
    const liveIds = new Set(live.map(([processId]) => processId));
    const seen = Object.entries(texts).map(([processId, text]) => ({ processId, ...readSeen(text) }));
    const [gone, running] = [false, true].map((is) => seen.filter(({ processId }) => liveIds.has(processId) === is));
    const vanished = vanishedPrograms(gone ?? [], running ?? [], clock.nowMs());
    const forgotten = (gone ?? []).filter((program) => !vanished.includes(program));
    if (forgotten.length > 0) await redis.hdel(seenKey, ...forgotten.map(({ processId }) => processId));
    return vanished.map(({ processId: _, ...program }) => program);
  };

  return {
    async report(processId, report, lifeMs): Promise<void> {
      const isFirst = !startedAtMs.has(processId);
      const seenAtMs = Math.round(clock.nowMs());
      if (isFirst) startedAtMs.set(processId, seenAtMs);
      const { kind, id } = report;
      const seen = JSON.stringify({ kind, id, startedAtMs: startedAtMs.get(processId), seenAtMs });
      const text = JSON.stringify({ ...report, lifeMs });
      await asOperationalError('report a program', () =>
        Promise.all([
          reports.put(processId, text, lifeMs),
          redis.hset(seenKey, processId, seen),
          redis.pexpire(seenKey, VANISHED_NAMED_MS),
        ]),
      );
      // so a program that restarts again and again leaves few entries
      if (isFirst) await asOperationalError('forget programs', readVanished);
    },

    async withdraw(processId): Promise<void> {
      startedAtMs.delete(processId);
      await asOperationalError('withdraw a report', () =>
        Promise.all([reports.remove(processId), redis.hdel(seenKey, processId)]),
      );
    },

    vanished: () => asOperationalError('read which programs vanished', readVanished),

    live: () =>
      asOperationalError('read which programs run', async () => {
        const found = await reports.live();
        if (found.length === 0) return [];
        // the remaining life of a report shows when it was written, on the clock of Redis
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

/** An entry of another release that cannot be read counts as old. */
function readSeen(text: string): SeenProgram {
  const read = storedSeen.safeParse(jsonOrNull(text));
  return read.success ? read.data : { kind: 'api', id: '', startedAtMs: 0, seenAtMs: 0 };
}

function readReport(text: string, leftMs: number): LiveProgram[] {
  const read = storedReport.safeParse(jsonOrNull(text));
  if (!read.success) return [];
  const { lifeMs, ...report } = read.data;
  return [{ ...report, seenMsAgo: Math.max(0, lifeMs - leftMs) }];
}
