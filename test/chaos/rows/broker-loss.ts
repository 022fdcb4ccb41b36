import { rmSync } from 'node:fs';
import { batchesAtBroker, brokerStore, createTopics, killBroker, startBroker } from '../harness/broker-hands.js';
import { expectAtLeast, expectEqual } from '../harness/expect.js';
import { readMetric } from '../harness/metrics.js';
import type { StackHands } from '../harness/stack-hands.js';
import { undoneRows } from '../harness/undone-rows.js';
import type { Row } from '../row.js';

// M2: the broker forgets everything.

/** One message in its hands at most, so that all others that wait are known to the broker only. */
const WORKER_ENV = { WORKER_LOOPS: '1', WORKER_RECEIVE_MAX: '1', WORKER_RETRY_FIRST_MS: '10' };
const IN_HAND = 1;
const KEEPER_ENV = { REDRIVE_AFTER_MS: '10000', KEEPER_EVERY_MS: '200' };
const WAITING = 20;
/** The proxy remembers for 20 s that a topic was not there. */
const SELLS_AGAIN_MS = 60_000;

/** The broker runs and has its topics; also for the rows that follow. */
async function bringBack(stack: StackHands): Promise<void> {
  await startBroker(stack);
  await createTopics(stack.servers);
}

const STORE: Row = {
  id: 'M2',
  title: 'the broker loses its disk under load: what it had is published again from Redis, the same programs go on',
  ...{ fast: false, alone: true, timeoutMs: 300_000 },
  async run(arena) {
    const { stack, programs, random } = arena;
    const [api, worker, keeper] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: WORKER_ENV }),
      arena.start('keeper', { env: KEEPER_ENV }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(20, 40), tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

    // batches heap up in the broker
    worker.signal('SIGSTOP');
    const pending = async (): Promise<readonly string[]> =>
      (await stack.audit.store.snapshot({ saleId, bucket: 0 }))?.pending ?? [];
    await arena.until('batches wait for the worker', async () => (await pending()).length > WAITING, 30_000);
    await killBroker(arena);
    const refused = opLog.count('fail');
    await arena.until('buyers are refused', () => opLog.count('fail') > refused + 50);
    const lost = await pending();
    arena.atEnd(() => bringBack(stack));
    rmSync(brokerStore(stack), { recursive: true });
    await bringBack(stack);
    await arena.bite(`the broker has none of ${lost.length} batches`, async () => {
      return (await batchesAtBroker(stack, lost)) === 0;
    });
    arena.faultEnded();
    worker.signal('SIGCONT');

    const okBefore = opLog.count('ok');
    await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 100, SELLS_AGAIN_MS);
    await load.stop();
    expectAtLeast((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows');
    const redriven = await readMetric(keeper, 'seckill_redriven_batches_total');
    expectAtLeast(redriven, lost.length - IN_HAND, 'batches published again');
    await buyers.askAgain();
    expectEqual((await arena.rest(saleId)).rows, opLog.count('ok'), 'rows and buyers who heard yes');
    const told = async (): Promise<boolean> => (await undoneRows(stack, 'batch_recorded', saleId)) === 0;
    await arena.until('the news of the orders go out', told, 30_000);
    const running = programs.running.map(({ name }) => name);
    expectEqual(running, ['api', 'worker', 'keeper'], 'programs that run');
  },
};

export const BROKER_LOSS_ROWS: readonly Row[] = [STORE];
