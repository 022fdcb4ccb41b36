import { newBatchId, sealBatch, type Batch } from '../../../src/core/batch.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { createRedriveChannel } from '../../../src/rocketmq/redrive-channel.js';
import type { Arena } from '../arena.js';
import { userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/command.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { ask } from '../harness/http-client.js';
import type { Program } from '../harness/programs.js';
import { found } from '../harness/until.js';
import type { Row } from '../row.js';

// M: messages that no worker can turn into orders, or that come several times.

/** Six tries, which the broker spaces by 2 to 5 s whatever is asked, then its dead-letter topic. */
const DEAD_LETTER_MS = 90_000;

interface DeadLetter {
  readonly batch_id: string;
  readonly origin_topic: string;
  readonly reason: string;
  readonly state: string;
  readonly attempts: number;
  readonly body: string;
}

function batchOf(saleId: string, users: readonly string[]): Batch {
  return sealBatch({
    ...{ batchId: newBatchId(), saleId, bucket: 0, epoch: 1 },
    ...{ createdAtMs: Date.now(), trace: '' },
    purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
  });
}

/** Deducts a batch as an api does. */
async function deducted(arena: Arena, saleId: string, users: readonly string[]): Promise<Batch> {
  const batch = batchOf(saleId, users);
  const verdict = await createStockStore(arena.stack.redis, silentLog).deduct(batch);
  expectEqual(verdict.outcome, 'deducted', 'deduct');
  return batch;
}

async function publish(arena: Arena, batches: readonly Batch[]): Promise<void> {
  const channel = await createRedriveChannel({ endpoint: arena.stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
  try {
    await Promise.all(batches.map((batch) => channel.publish(batch)));
  } finally {
    await channel.close();
  }
}

const deadLettersOf = ({ stack }: Arena, batchId: string): Promise<DeadLetter[]> =>
  stack.mysql.query<DeadLetter>(
    'SELECT batch_id, origin_topic, reason, state, attempts, body FROM dead_letters WHERE batch_id = ?',
    [batchId],
  );

/** A counter with this verdict, over all workers. */
async function counted(workers: readonly Program[], name: string, verdict: string): Promise<number> {
  const counts = workers.map(async ({ probeUrl }) => {
    const { text } = await ask(`${probeUrl}/metrics`);
    return Number(new RegExp(`${name}\\{verdict="${verdict}"[^}]*\\} (\\d+)`).exec(text)?.[1] ?? 0);
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

const POISON: Row = {
  id: 'M7',
  title: 'bad JSON, an unknown version and an unknown sale are parked with their origin; others go on',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [{ saleId }] = await Promise.all([arena.openSale(), arena.survivors()]);
    const good = await deducted(arena, saleId, userIds(3));
    const poison = {
      undecodable: { ...batchOf(saleId, ['eve']), body: '{"v":1,' },
      unknown_version: { ...batchOf(saleId, ['eve']), body: '{"v":99}' },
      unknown_sale: batchOf('999999999999999999', ['eve']),
    };
    await publish(arena, arena.random.shuffled([...Object.values(poison), good]));
    for (const [reason, { batchId, body }] of Object.entries(poison)) {
      const deadLetter = (): Promise<DeadLetter | undefined> => deadLettersOf(arena, batchId).then(([first]) => first);
      await arena.bite(`${reason} was parked`, async () => (await deadLetter()) !== undefined);
      const expected = { reason, body, state: 'parked', origin_topic: 'seckill-purchase-redrive' };
      expectFields((await deadLetter()) as DeadLetter, expected, `the letter ${reason}`);
    }
    arena.faultEnded();
    expectFields(await arena.rest(saleId), { rows: 3, sold: 3, unitsLeft: 7 }, 'the good batch');
  },
};

const COPIES = 5;
const TWICE: Row = {
  id: 'M5',
  title: 'one batch delivered five times at once, to two workers, is recorded once',
  ...{ fast: true, alone: false },
  async run(arena) {
    const [{ saleId }, { workers }] = await Promise.all([arena.openSale({ stock: 50 }), arena.survivors()]);
    const batch = await deducted(arena, saleId, userIds(40));
    const again = (): Promise<number> => counted(workers, 'seckill_deliveries_total', 'already_recorded');
    const before = await again();
    await publish(
      arena,
      Array.from({ length: COPIES }, () => batch),
    );
    arena.faultEnded(); // the last copy is sent
    await arena.bite('five copies arrived', async () => (await again()) >= before + COPIES - 1);
    const once = { rows: 40, sold: 40, unitsLeft: 10, duplicates: 0 };
    expectFields(await arena.rest(saleId), once, 'recorded once');
    const outbox = await arena.stack.mysql.query("SELECT id FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?", [
      batch.batchId,
    ]);
    expectEqual(outbox.length, 1, 'rows of the outbox');
  },
};

const REFUSED: Row = {
  id: 'M8',
  title: 'a batch that MySQL always refuses is parked once, its unit stays held until a replay, other sales go on',
  ...{ fast: true, alone: false },
  async run(arena) {
    const { stack } = arena;
    const { api, workers } = await arena.survivors();
    const [refused, healthy] = [await arena.openSale(), await arena.openSale({ stock: 1000 })];
    const [unlucky, lucky] = [arena.buyers(refused.saleId, [api]), arena.buyers(healthy.saleId, [api])];
    const deadLetter = await parkedByTrigger(arena, refused.saleId, async () => {
      const retriesBefore = await counted(workers, 'seckill_deliveries_total', 'retry');
      const load = lucky.startLoad({ parallel: 2, pauseMs: 100 });
      expectEqual((await unlucky.buy('ann'))?.status, 202, 'the purchase that will be refused');
      const [batchId = ''] = (await stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 }))?.pending ?? [];
      const one = await found('the dead letter', async () => (await deadLettersOf(arena, batchId))[0], DEAD_LETTER_MS);
      await load.stop();
      const tries = (await counted(workers, 'seckill_deliveries_total', 'retry')) - retriesBefore;
      expectAtLeast(tries, 6, 'every try was made');
      return one;
    });
    const expected = { reason: 'retries_exhausted', state: 'parked', origin_topic: 'seckill-purchase' };
    expectFields(deadLetter, expected, 'the letter');
    const store = () => stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 });
    await arena.bite('the batch is parked and out of pending', async () => (await store())?.pending.length === 0);
    expectEqual((await store())?.unitsLeft, 9, 'units left while it is parked');
    expectEqual((await unlucky.status('ann')).json.status, 'pending', 'what its buyer sees');
    expectAtLeast((await arena.rest(healthy.saleId)).rows, 11, 'orders of other sales');

    arena.faultEnded();
    const replay = await runCommand(['dlq', 'replay', '--all-matching', '--sale', refused.saleId, '--json'], arena.env);
    expectEqual(replay.lines.length, 1, `lines of the replay (${replay.stderr})`);
    const done: object = { outcome: 'replayed', note: 'recorded: 1 live, 0 ended' };
    expectFields(replay.lines[0] as object, done, 'the replay');
    expectEqual((await unlucky.status('ann')).json.status, 'ordered', 'what its buyer sees then');
    expectFields(await arena.rest(refused.saleId), { rows: 1, sold: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await deadLettersOf(arena, deadLetter.batch_id)).length, 1, 'parked once');
  },
};

/** While `work` runs, MySQL refuses every order of the sale. */
async function parkedByTrigger(arena: Arena, saleId: string, work: () => Promise<DeadLetter>): Promise<DeadLetter> {
  const { mysql } = arena.stack;
  const trigger = `refuse_sale_${saleId}`;
  await mysql.execute(
    `CREATE TRIGGER ${trigger} AFTER INSERT ON orders FOR EACH ROW
       IF NEW.sale_id = ${saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a chaos row'; END IF`,
  );
  try {
    return await work();
  } finally {
    await mysql.execute(`DROP TRIGGER ${trigger}`);
  }
}

export const DEAD_LETTER_ROWS: readonly Row[] = [TWICE, POISON, REFUSED];
