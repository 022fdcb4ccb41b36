import type { ScenarioContext } from '../context.js';
import { deductBatch, publishBatches } from '../harness/batches.js';
import { userIds, isAccepted } from '../harness/buyers.js';
import { runCommand } from '../harness/commands.js';
import { expectAtLeast, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { sumMetric } from '../harness/programs.js';
import { found } from '../harness/wait.js';
import type { Scenario } from '../scenario.js';
import { changeByHand } from '../harness/change-by-hand.js';

// M5, M8: a message comes several times, or no worker can record it.

interface DeadLetter {
  readonly batch_id: string;
  readonly origin_topic: string;
  readonly reason: string;
  readonly state: string;
  readonly attempts: number;
  readonly detail: string;
  readonly body: string;
}

const deadLettersOfBatch = ({ stack }: ScenarioContext, batchId: string): Promise<DeadLetter[]> =>
  stack.mysql.query<DeadLetter>(
    'SELECT batch_id, origin_topic, reason, state, attempts, detail, body FROM dead_letters WHERE batch_id = ?',
    [batchId],
  );

const COPIES = 5;

const COPIED: Scenario = {
  name: 'M5',
  title: 'one batch is delivered five times at once to two workers: it is recorded once',
  fast: true,
  async run(context) {
    const { stack } = context;
    const [{ saleId }, { workers }] = await Promise.all([context.openSale({ stock: 50 }), context.healthyPrograms()]);
    const batch = await deductBatch(stack, saleId, userIds(40));
    const again = (): Promise<number> => sumMetric(workers, 'seckill_deliveries_total{verdict="already_recorded"}');
    const before = await again();
    await publishBatches(
      stack,
      Array.from({ length: COPIES }, () => batch),
    );
    context.faultEnded(); // the last copy is sent
    await context.observed('five copies arrived', async () => (await again()) >= before + COPIES - 1);
    await context.expectFigures(saleId, { rows: 40, sold: 40, unitsLeft: 10, duplicates: 0 }, 'recorded once');
    const sql = "SELECT id FROM outbox WHERE kind = 'batch_recorded' AND `key` = ?";
    expectEqual((await stack.mysql.query(sql, [batch.batchId])).length, 1, 'rows of the outbox');
  },
};

/** While `work` runs, MySQL refuses every order of the sale. */
async function whileRefused<T>({ stack }: ScenarioContext, saleId: string, work: () => Promise<T>): Promise<T> {
  const trigger = `refuse_sale_${saleId}`;
  const sql = `CREATE TRIGGER ${trigger} AFTER INSERT ON orders FOR EACH ROW
    IF NEW.sale_id = ${saleId} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a chaos scenario'; END IF`;
  await changeByHand(stack, [[sql]]);
  try {
    return await work();
  } finally {
    await changeByHand(stack, [[`DROP TRIGGER ${trigger}`]]);
  }
}

const ALWAYS_REFUSED: Scenario = {
  name: 'M8',
  title: 'MySQL always refuses a batch: it is parked once, and its unit stays held until a replay',
  fast: true,
  async run(context) {
    const { stack } = context;
    const { api, workers } = await context.healthyPrograms();
    const [refused, healthy] = [await context.openSale(), await context.openSale({ stock: 1000 })];
    const [unlucky, lucky] = [context.buyers(refused.saleId, [api]), context.buyers(healthy.saleId, [api])];
    const inRedis = () => stack.audit.store.snapshot({ saleId: refused.saleId, bucket: 0 });
    const deadLetter = await whileRefused(context, refused.saleId, async () => {
      const retries = (): Promise<number> => sumMetric(workers, 'seckill_deliveries_total{verdict="retry"}');
      const retriesBefore = await retries();
      const load = lucky.startLoad({ parallel: 2, pauseMs: 100 });
      expectTrue(isAccepted(await unlucky.buy('ann', { tries: 4 })), 'the purchase that will be refused');
      const [batchId = ''] = (await inRedis())?.pending ?? [];
      const parked = async () => (await deadLettersOfBatch(context, batchId))[0];
      const one = await found('the dead letter', parked);
      await load.stop();
      expectAtLeast((await retries()) - retriesBefore, 5, 'every try was made, and the last one parked it');
      return one;
    });
    const expected = { reason: 'retries_exhausted', state: 'parked', origin_topic: 'seckill-purchase' };
    expectFields(deadLetter, expected, 'the dead letter');
    expectEqual(deadLetter.detail, 'poison: ER_SIGNAL_EXCEPTION: refused by a chaos scenario', 'its error');
    const isParked = async (): Promise<boolean> => (await inRedis())?.pending.length === 0;
    await context.observed('the batch is parked and out of pending', isParked);
    expectEqual((await inRedis())?.unitsLeft, 9, 'units left while it is parked');
    expectEqual((await unlucky.status('ann')).json.status, 'pending', 'its status');
    expectAtLeast((await context.expectInvariants(healthy.saleId)).rows, 11, 'orders of other sales');

    context.faultEnded();
    const args = ['dlq', 'replay', '--all-matching', '--sale', refused.saleId, '--json'];
    const replay = await runCommand(args, context.env);
    expectEqual(replay.lines.length, 1, `lines of the replay (${replay.stderr})`);
    const [line = {}] = replay.lines as { readonly outcome?: unknown }[];
    const byUs = { outcome: 'replayed', note: 'recorded: 1 live, 0 ended' };
    const byKeeper = { outcome: 'already_closed', note: 'it is replayed' }; // if the keeper saw the order first
    expectFields(line, line.outcome === byUs.outcome ? byUs : byKeeper, 'the replay');
    expectEqual((await unlucky.status('ann')).json.status, 'ordered', 'its status then');
    await context.expectFigures(refused.saleId, { rows: 1, sold: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await deadLettersOfBatch(context, deadLetter.batch_id)).length, 1, 'parked once');
  },
};

export const MESSAGES_SCENARIOS: readonly Scenario[] = [COPIED, ALWAYS_REFUSED];
