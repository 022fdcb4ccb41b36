import { createDeadLetterRepository } from '../../../src/mysql/dead-letter-repository.js';
import { homeBucket } from '../../../src/core/sale.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { Batch } from '../../../src/core/batch.js';
import type { Arena } from '../arena.js';
import { userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/command.js';
import { expectAtMost, expectEqual, expectFields } from '../harness/expect.js';
import { biteOfLostWrites, endOfLog, repaired } from '../harness/lost-writes.js';
import { deductBatch } from '../harness/stray-batch.js';
import type { Row } from '../row.js';

// R6 and R12: what a repair keeps though it has no row; several buckets.

const FAST_REPAIR = { REPAIR_QUIET_MS: '300' };

/** As the keeper parks a dead letter: written down, and out of `pending`; its units stay held. */
async function park({ stack }: Arena, batch: Batch): Promise<void> {
  await createDeadLetterRepository(stack.mysql).park({
    ...{ messageId: `chaos-${batch.batchId}`, group: 'seckill-order-writer', originTopic: 'seckill-purchase' },
    ...{ saleId: batch.saleId, batchId: batch.batchId, body: batch.body },
    ...{ reason: 'retries_exhausted', detail: 'parked by a chaos row', attempts: 6 },
  });
  await stack.redis.redis.zrem(bucketKeys(batch).pending, batch.batchId);
}

const KEEPS_HELD: Row = {
  ...{ id: 'R6', variant: 'held_and_parked' },
  title:
    'a batch in pending and parked ones keep their units in a repair, also one whose marker is lost; all are recorded',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('keeper', { env: { ...FAST_REPAIR, REDRIVE_AFTER_MS: '2000' } }),
    ]);
    const { saleId } = await arena.openSale({ stock: 30 });
    await deductBatch(stack, saleId, userIds(random.whole(1, 4), 'pending-')); // no message: only the re-drive has it
    await park(arena, await deductBatch(stack, saleId, userIds(2, 'parked-')));
    const kept = (await unitsLeft(arena, saleId)) ?? Number.NaN;
    const end = await endOfLog(stack);
    await park(arena, await deductBatch(stack, saleId, userIds(2, 'parked-late-')));
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(3, 'late-'), 3, { tries: 20 });

    const isFree = async (): Promise<boolean> => (await unitsLeft(arena, saleId)) === kept;
    await biteOfLostWrites(arena, end, 'Redis forgot a parked batch', isFree);
    arena.faultEnded();
    await repaired(stack, saleId);
    expectEqual(await unitsLeft(arena, saleId), kept - 2, 'units left: those of both parked batches are held');
    await arena.start('worker');
    const sold = 30 - kept + 3; // three come late and claim
    await arena.until('what is not parked is recorded', async () => (await rowsOf(arena, saleId)) === sold - 2, 40_000);
    const replay = await runCommand(['dlq', 'replay', '--all-matching', '--sale', saleId, '--json'], arena.env);
    expectEqual(
      replay.lines.map(({ outcome }) => outcome),
      ['replayed', 'replayed'],
      'the replays',
    );
    const figures = { liveRows: sold + 2, unitsLeft: 28 - sold, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'an order for each');
  },
};

/** NaN while the bucket is not loaded. */
async function unitsLeft({ stack }: Arena, saleId: string, bucket = 0): Promise<number> {
  return (await stack.audit.store.snapshot({ saleId, bucket }))?.unitsLeft ?? Number.NaN;
}

async function rowsOf({ stack }: Arena, saleId: string): Promise<number> {
  const sql = 'SELECT COUNT(*) AS `rows` FROM orders WHERE sale_id = ?';
  const [row] = await stack.mysql.query<{ rows: string }>(sql, [saleId]);
  return Number(row?.rows);
}

const BUCKETS = 3;
const PER_BUCKET = 4;

const SEVERAL_BUCKETS: Row = {
  id: 'R12',
  title:
    'several buckets, one of them sold out, and a lost tail: limits and keys hold, what is left is shared out anew',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper', { env: { REPAIR_QUIET_MS: '1000' } }),
    ]);
    const { saleId } = await arena.openSale({ stock: BUCKETS * PER_BUCKET, buckets: BUCKETS });
    const buyers = arena.buyers(saleId, [api]);
    const at = (bucket: number): string[] =>
      userIds(200, `b${random.whole(0, 1_000)}-`).filter((user) => homeBucket(user, BUCKETS) === bucket);
    const [home, ...others] = [at(0), at(1), at(2)] as [string[], string[], string[]];
    const winners = home.slice(0, PER_BUCKET);
    await buyers.rush(winners, 2, { tries: 20 });
    expectEqual(await unitsLeft(arena, saleId), 0, 'units left at home');
    const late = home[PER_BUCKET] as string;
    expectEqual(
      (await buyers.buy(late, { tries: 20 }))?.status,
      202,
      'who comes late at home: a unit of another bucket',
    );
    await arena.until('they have rows', async () => (await rowsOf(arena, saleId)) === PER_BUCKET + 1, 30_000);
    const end = await endOfLog(stack);
    for (const users of others) await buyers.rush(users.slice(0, 2), 2, { tries: 20 });
    await arena.until('the others too', async () => (await rowsOf(arena, saleId)) === PER_BUCKET + 5, 30_000);
    const perBucket = (): Promise<number[]> => Promise.all([0, 1, 2].map((bucket) => unitsLeft(arena, saleId, bucket)));
    const sumOf = (units: readonly number[]): number => units.reduce((sum, left) => sum + left, 0);
    const leftBefore = sumOf(await perBucket());
    expectEqual(leftBefore, BUCKETS * PER_BUCKET - PER_BUCKET - 5, 'units left');

    const areFree = async (): Promise<boolean> => sumOf(await perBucket()) > leftBefore;
    await biteOfLostWrites(arena, end, 'units that were sold are free again', areFree);
    arena.faultEnded();
    await repaired(stack, saleId);
    const left = await perBucket();
    expectEqual(sumOf(left), leftBefore, 'units left after the repair');
    expectAtMost(Math.max(...left) - Math.min(...left), 1, 'units between the fullest bucket and the emptiest');

    const winner = winners[0] as string;
    const again = await buyers.buy(winner, { tries: 20 });
    expectEqual([again?.status, again?.json.status], [200, 'ordered'], 'the same key');
    const more = await buyers.buy(winner, { requestId: 'k2' });
    expectEqual(more?.json.code, 'limit_reached', 'a second key');
    const { json } = await buyers.status(winner);
    await buyers.move('cancel', winner, String(json.orderId));
    await arena.until('the unit is back', async () => sumOf(await perBucket()) === leftBefore + 1, 20_000);
    // all from one home: the last of them fetch what is left in the other buckets
    await buyers.rush(home.slice(PER_BUCKET + 1, PER_BUCKET + 2 + leftBefore), 2, { tries: 20 });
    const nobody = home[PER_BUCKET + 2 + leftBefore] as string;
    expectEqual((await buyers.buy(nobody))?.json.code, 'sold_out', 'who comes when all buckets are empty');
    const figures = { sold: BUCKETS * PER_BUCKET, unitsLeft: 0, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'sold out, each unit once');
  },
};

export const REPAIR_KEEPS_ROWS: readonly Row[] = [KEEPS_HELD, SEVERAL_BUCKETS];
