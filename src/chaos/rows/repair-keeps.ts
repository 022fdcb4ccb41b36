import { createDeadLetterBook } from '../../mysql/dead-letter-book.js';
import { homeBucket } from '../../domain/sale.js';
import { bucketKeys } from '../../redis/keys.js';
import type { Batch } from '../../domain/batch.js';
import type { Arena } from '../arena.js';
import { userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/command.js';
import { expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { endOfLog, loseWritesAfter, repaired } from '../harness/lost-writes.js';
import { deductBatch } from '../harness/stray-batch.js';
import type { Row } from '../row.js';

// R6 and R12: what a repair keeps though it has no row; several buckets.

const FAST_REPAIR = { REPAIR_QUIET_MS: '300' };

/** As the keeper parks a dead letter: written down, and out of `pending`; its units stay held. */
async function park({ stack }: Arena, batch: Batch): Promise<void> {
  await createDeadLetterBook(stack.mysql).park({
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

    await loseWritesAfter(stack, end);
    await arena.bite('Redis forgot a parked batch', async () => (await unitsLeft(arena, saleId)) === kept);
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

async function unitsLeft({ stack }: Arena, saleId: string, bucket = 0): Promise<number | undefined> {
  return (await stack.audit.ledger.snapshot({ saleId, bucket }))?.unitsLeft;
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
  title: 'several buckets, one of them sold out, and a lost tail: limits, keys and units hold bucket by bucket',
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
    expectEqual((await buyers.buy(home[PER_BUCKET] as string))?.json.code, 'sold_out', 'who comes too late at home');
    const end = await endOfLog(stack);
    for (const users of others) await buyers.rush(users.slice(0, 2), 2, { tries: 20 });
    await arena.until('they have rows', async () => (await rowsOf(arena, saleId)) === PER_BUCKET + 4, 30_000);

    await loseWritesAfter(stack, end);
    await arena.bite('units of other buckets are free again', async () => {
      const left = await Promise.all([1, 2].map((bucket) => unitsLeft(arena, saleId, bucket)));
      return left.some((units) => units === PER_BUCKET);
    });
    arena.faultEnded();
    await repaired(stack, saleId);
    await arena.until('each bucket has the units that MySQL leaves it', async () => {
      const left = await Promise.all([0, 1, 2].map((bucket) => unitsLeft(arena, saleId, bucket)));
      return left.join() === [0, PER_BUCKET - 2, PER_BUCKET - 2].join();
    });

    const again = await buyers.buy(winners[0] as string, { tries: 20 });
    expectEqual([again?.status, again?.json.status], [200, 'ordered'], 'the same key');
    const more = await buyers.buy(winners[0] as string, { requestId: 'k2' });
    expectOneOf(more?.json.code, ['limit_reached', 'sold_out'], 'a second key'); // both are true
    const { json } = await buyers.status(winners[0] as string);
    await buyers.move('cancel', winners[0] as string, String(json.orderId));
    await arena.until('the unit is back at home', async () => (await unitsLeft(arena, saleId)) === 1, 20_000);
    const next = home[PER_BUCKET + 1] as string; // the api may know for a moment longer that it was sold out
    await arena.until('who comes then gets it', async () => (await buyers.buy(next))?.status === 202, 20_000, 500);
    for (const users of others) await buyers.rush(users.slice(2, 2 + PER_BUCKET), 1, { tries: 3 });
    const figures = { sold: BUCKETS * PER_BUCKET, unitsLeft: 0, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'sold out, each unit once');
  },
};

export const REPAIR_KEEPS_ROWS: readonly Row[] = [KEEPS_HELD, SEVERAL_BUCKETS];
