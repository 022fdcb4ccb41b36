import type { AnswerCounts, AnswerHistory } from '../core/ports/answer-history.js';
import { asOperationalError, pipelined, type RedisConnection } from './connection.js';
import { answersKey } from './keys.js';

/** A key covers this time. Redis keeps short hashes compact (`hash-max-listpack-entries`) unless many are busy. */
const BLOCK_MS = 10_000;
/** Number of blocks that are read at once, which limits the size of the reply. */
const BLOCKS_PER_READ = 60;

/**
 * Stores answers in hashes that cover ten seconds each and expire on their own: per sale `<second> <code>` → count, and
 * for all sales together `<second> <saleId>` or `<second> any`. All keys are in the same slot.
 * @param keepMs how long a second is remembered
 */
export function createAnswerHistory({ redis }: RedisConnection, keepMs: number): AnswerHistory {
  return {
    async add(atMs, { sales, others }): Promise<void> {
      const block = Math.floor(atMs / BLOCK_MS);
      const second = (atMs % BLOCK_MS) / 1000;
      const commands: (string | number)[][] = [];
      const increment = (of: string, counts: AnswerCounts): void => {
        const key = answersKey(block, of);
        for (const [what, times] of Object.entries(counts)) commands.push(['hincrby', key, `${second} ${what}`, times]);
        commands.push(['pexpire', key, keepMs]);
      };
      for (const [saleId, counts] of sales) increment(saleId, counts);
      const totals = [...sales].map(([saleId, counts]) => [saleId, sumOf(counts)] as const);
      if (totals.length > 0) increment('all', Object.fromEntries(totals));
      if (others > 0) increment('others', { any: others });
      if (commands.length > 0) await asOperationalError('add answers', () => pipelined(redis, commands));
    },

    busy: (fromMs, toMs) =>
      asOperationalError('read busy sales', async () => {
        const sales = new Map<string, number>();
        await eachField(['all'], fromMs, toMs, (_of, _atMs, saleId, times) => {
          sales.set(saleId, (sales.get(saleId) ?? 0) + times);
        });
        return sales;
      }),

    read: (saleId, fromMs, toMs) =>
      asOperationalError('read answers', async () => {
        const seconds = new Map<number, Record<string, number> | null>();
        await eachField(['others', saleId], fromMs, toMs, (of, atMs, code, times) => {
          const counts = seconds.get(atMs) ?? null;
          seconds.set(atMs, of === saleId ? { ...counts, [code]: times } : counts);
        });
        return new Map([...seconds].sort(([one], [other]) => one - other));
      }),
  };

  /** Calls `take` for each field, block by block, in the order of the hashes. */
  async function eachField(
    hashes: readonly string[],
    fromMs: number,
    toMs: number,
    take: (of: string, atMs: number, what: string, times: number) => void,
  ): Promise<void> {
    const end = Math.ceil(toMs / BLOCK_MS);
    for (let block = Math.floor(fromMs / BLOCK_MS); block < end; block += BLOCKS_PER_READ) {
      const blocks = Array.from({ length: Math.min(BLOCKS_PER_READ, end - block) }, (_, index) => block + index);
      const asked = blocks.flatMap((one) =>
        hashes.map((of) => ({ atMs: one * BLOCK_MS, of, key: answersKey(one, of) })),
      );
      const replies = await pipelined(
        redis,
        asked.map(({ key }) => ['hgetall', key]),
      );
      for (const [index, { atMs: blockMs, of }] of asked.entries()) {
        for (const [field, times] of Object.entries(replies[index] as Record<string, string>)) {
          const [second, what = ''] = field.split(' ');
          const atMs = blockMs + Number(second) * 1000;
          if (atMs >= fromMs && atMs < toMs) take(of, atMs, what, Number(times));
        }
      }
    }
  }
}

const sumOf = (counts: AnswerCounts): number => Object.values(counts).reduce((sum, times) => sum + times, 0);
