import type { AnswerHistory, AnswersOfSecond } from '../core/ports/answer-history.js';
import { asOperationalError, pipelined, type RedisConnection } from './connection.js';
import { answersKey } from './keys.js';

/** Seconds of one key: few enough that Redis keeps it compact (`hash-max-listpack-entries`), but where very many sales are busy. */
const BLOCK_MS = 5_000;
/** Blocks read at once: a bounded reply. */
const BLOCKS_PER_READ = 60;

/**
 * A hash for each five seconds, which expires by itself: `<second> <sale> <code>` → how often. All share a slot.
 * @param keepMs how long a second is remembered
 */
export function createAnswerHistory({ redis }: RedisConnection, keepMs: number): AnswerHistory {
  return {
    async add(atMs, answers): Promise<void> {
      const key = answersKey(Math.floor(atMs / BLOCK_MS));
      const second = (atMs % BLOCK_MS) / 1000;
      const commands: (string | number)[][] = [];
      for (const [saleId, counts] of answers) {
        for (const [code, times] of Object.entries(counts)) {
          commands.push(['hincrby', key, `${second} ${saleId} ${code}`, times]);
        }
      }
      if (commands.length === 0) return;
      await asOperationalError('add answers', () => pipelined(redis, [...commands, ['pexpire', key, keepMs]]));
    },

    read: (fromMs, toMs, saleId) =>
      asOperationalError('read answers', async () => {
        const seconds = new Map<number, Map<string, Record<string, number>>>();
        const end = Math.ceil(toMs / BLOCK_MS);
        for (let block = Math.floor(fromMs / BLOCK_MS); block < end; block += BLOCKS_PER_READ) {
          const blocks = Array.from({ length: Math.min(BLOCKS_PER_READ, end - block) }, (_, index) => block + index);
          const replies = await pipelined(
            redis,
            blocks.map((one) => ['hgetall', answersKey(one)]),
          );
          for (const [index, fields] of replies.entries()) {
            for (const [field, times] of Object.entries(fields as Record<string, string>)) {
              const [second, sale = '', code = ''] = field.split(' ');
              const atMs = (block + index) * BLOCK_MS + Number(second) * 1000;
              if (atMs < fromMs || atMs >= toMs || (saleId !== undefined && sale !== saleId)) continue;
              addTo(seconds, atMs, sale, code, Number(times));
            }
          }
        }
        return new Map<number, AnswersOfSecond>([...seconds].sort(([one], [other]) => one - other));
      }),
  };
}

function addTo(
  seconds: Map<number, Map<string, Record<string, number>>>,
  atMs: number,
  saleId: string,
  code: string,
  times: number,
): void {
  const sales = seconds.get(atMs) ?? new Map<string, Record<string, number>>();
  seconds.set(atMs, sales);
  const counts = sales.get(saleId) ?? {};
  sales.set(saleId, counts);
  counts[code] = times;
}
