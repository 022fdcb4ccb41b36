import { killBroker, startBroker } from '../harness/broker-hands.js';
import { EventEar } from '../harness/event-ear.js';
import { expectAtLeast, expectEqual, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http-client.js';
import { recordBatch } from '../harness/recorded-batch.js';
import { undoneRows } from '../harness/undone-rows.js';
import type { Row } from '../row.js';
import { DEAD_LETTER_ROWS } from './dead-letters.js';
import { WORKER_DEATH_ROWS } from './worker-deaths.js';

// M: the broker, and what comes out of it.

const SIZE = 3;
const BATCHES = 10;
const OUT_WITHIN_MS = 60_000;
/** No worker runs: what is published again would wait for the next row. */
const KEEPER_ENV = {
  ...{ REDRIVE_AFTER_MS: '3600000', KEEPER_EVERY_MS: '200' },
  ...{ OUTBOX_EVERY_MS: '100', OUTBOX_LEASE_MS: '4000' },
};

const SALES: Row = {
  ...{ id: 'M1', variant: 'sales' },
  title: 'kill -9 of broker and proxy under load: nothing is deducted meanwhile, deducted = rows after it',
  ...{ fast: true, alone: true },
  async run(arena) {
    const { stack, programs, random } = arena;
    const [api] = await Promise.all([arena.start('api'), arena.start('worker'), arena.start('keeper')]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(20, 40), tries: 1 });
    const before = random.whole(200, 500);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

    await killBroker(arena);
    const unitsLeft = async (): Promise<number> =>
      (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.unitsLeft ?? Number.NaN;
    const refusedBefore = opLog.count('fail');
    await arena.until('buyers are refused', () => opLog.count('fail') > refusedBefore + 50);
    const during = await unitsLeft();
    await arena.until('more buyers are refused', () => opLog.count('fail') > refusedBefore + 100, 20_000);
    expectEqual(await unitsLeft(), during, 'units left: no half message, no deduct');

    await startBroker(stack);
    arena.faultEnded();
    const okBefore = opLog.count('ok');
    await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 100, 40_000);
    await load.stop();
    const running = programs.running.map(({ name }) => name);
    expectEqual(running, ['api', 'worker', 'keeper'], 'programs that run');

    expectAtLeast((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows');
    await buyers.askAgain();
    const settled = await arena.rest(saleId);
    expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
  },
};

const OUTBOX: Row = {
  ...{ id: 'M1', variant: 'outbox' },
  title: 'broker down: rows of the outbox wait and are counted, and go out when it is back',
  ...{ fast: true, alone: true },
  async run(arena) {
    const { stack } = arena;
    const [ear, { saleId }, keeper] = await Promise.all([
      EventEar.open(stack.env),
      arena.openSale({ stock: 100 }),
      arena.start('keeper', { env: KEEPER_ENV }),
    ]);
    try {
      await killBroker(arena);
      const orderIds: string[] = [];
      for (let batches = 0; batches < BATCHES; batches++) {
        orderIds.push(...(await recordBatch(stack, saleId, SIZE)).orderIds);
      }
      const metric = async (name: string): Promise<number> => {
        const { text } = await ask(`${keeper.probeUrl}/metrics`);
        return Number(new RegExp(`^${name}\\{kind="batch_recorded"[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? 0);
      };
      await arena.until('rows are tried', async () => (await metric('seckill_outbox_retried_rows_total')) > 0, 30_000);
      await arena.until('the alert grows', async () => (await metric('seckill_outbox_oldest_seconds')) > 3, 30_000);
      const counted = async (): Promise<boolean> => (await metric('seckill_outbox_undone_rows')) >= BATCHES;
      await arena.until('all are counted', counted, 30_000);
      expectEqual(await undoneRows(stack, 'batch_recorded', saleId), BATCHES, 'rows that wait');

      await startBroker(stack);
      arena.faultEnded();
      const out = async (): Promise<boolean> => (await undoneRows(stack, 'batch_recorded', saleId)) === 0;
      await arena.until('they go out', out, OUT_WITHIN_MS);
      const told = (): Set<string> => new Set(ear.ordersOf(saleId, 'order.created'));
      await arena.until('all are told', () => told().size === orderIds.length, OUT_WITHIN_MS);
      expectEqual([...told()].sort(), [...orderIds].sort(), 'orders that were told');
      expectTrue(keeper.running, 'the same keeper');
    } finally {
      await ear.close();
    }
  },
};

export const BROKER_ROWS: readonly Row[] = [SALES, OUTBOX, ...DEAD_LETTER_ROWS, ...WORKER_DEATH_ROWS];
