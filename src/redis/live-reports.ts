import { pipelined, type RedisClient } from './connection.js';

/** Maximum number of processes whose reports are read. More than this system is designed for. */
const PROCESSES_MAX = 1000;
/** Lifetime of the list after the last report. */
const LIST_LIFE_MS = 3_600_000;

/** Reports of processes, by process id. The caller turns errors into an OperationalError. */
export interface LiveReports {
  /** @param lifeMs without a further report, the report is gone */
  put(processId: string, text: string, lifeMs: number): Promise<unknown>;
  remove(processId: string): Promise<unknown>;
  /** Returns at most PROCESSES_MAX live reports, with their process ids. */
  live(): Promise<[processId: string, text: string][]>;
}

/** Stores reports as keys that expire on their own, and a set of the processes that have one, all in one slot. */
export const createLiveReports = (
  redis: RedisClient,
  list: string,
  keyOf = (processId: string): string => `${list}:${processId}`,
): LiveReports => ({
  put: (processId, text, lifeMs) =>
    pipelined(redis, [
      ['set', keyOf(processId), text, 'PX', lifeMs],
      ['sadd', list, processId],
      ['pexpire', list, LIST_LIFE_MS],
    ]),

  remove: (processId) => Promise.all([redis.unlink(keyOf(processId)), redis.srem(list, processId)]),

  async live(): Promise<[processId: string, text: string][]> {
    const processIds = await redis.srandmember(list, PROCESSES_MAX);
    if (processIds.length === 0) return [];
    const texts = await redis.mget(processIds.map(keyOf));
    const gone = processIds.filter((_, index) => texts[index] === null);
    // a process that reports now is back with its next report
    if (gone.length > 0) await redis.srem(list, ...gone);
    return processIds.flatMap((processId, index): [string, string][] => {
      const text = texts[index] ?? null;
      return text === null ? [] : [[processId, text]];
    });
  },
});
