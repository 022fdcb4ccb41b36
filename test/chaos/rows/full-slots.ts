import { readFileSync } from 'node:fs';
import { expectBelow, expectEqual, expectFields } from '../harness/expect.js';
import { inQueue, onTheWay } from '../harness/held-apis.js';
import { readMetric } from '../harness/metrics.js';
import type { Row } from '../row.js';

// G: more purchases than the way to the broker takes.

const rssMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const QUEUE_FULL: Row = {
  id: 'G8',
  title: 'the broker stalls for 5 s at ten times the load: 503 overloaded before any half message, memory bounded',
  ...{ fast: false, alone: true },
  async run(arena) {
    const QUEUE_MAX = 64;
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', {
        env: { BATCH_SIZE_MAX: '32', BATCH_QUEUE_MAX: String(QUEUE_MAX), BATCH_WAIT_MAX_MS: '1000' },
      }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    const load = buyers.startLoad({ parallel: 16, pauseMs: 20, tries: 1 });
    const before = random.whole(100, 400);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const rush = buyers.startLoad({ parallel: 160, pauseMs: 20, tries: 1, prefix: 'rush' });
    await arena.until('ten times as many', () => opLog.requests > 1000, 30_000);
    const sent = () => readMetric(api, 'seckill_half_send_seconds_count');
    const overloaded = () => readMetric(api, 'seckill_http_answers_total{route="purchase",code="overloaded"}');

    const broker = stack.servers.server('proxy');
    broker.kill('SIGSTOP');
    const stoppedMs = performance.now();
    const [sentBefore, refusedBefore, rssBeforeMib] = [await sent(), await overloaded(), rssMib(api.pid)];
    let rssMaxMib = rssBeforeMib;
    let queueMax = 0;
    const watch = async (): Promise<boolean> => {
      rssMaxMib = Math.max(rssMaxMib, rssMib(api.pid));
      queueMax = Math.max(queueMax, await inQueue([api]));
      return performance.now() - stoppedMs >= 5000;
    };
    await arena.until('five seconds are over', watch, 20_000);
    const refused = (await overloaded()) - refusedBefore;
    const sentMeanwhile = (await sent()) - sentBefore;
    broker.kill('SIGCONT');
    arena.faultEnded();
    await arena.bite('buyers heard overloaded', () => refused > QUEUE_MAX);
    expectBelow(queueMax, QUEUE_MAX + 1, 'purchases in the queue');
    expectBelow(sentMeanwhile, 3 * 3 + 1, 'half messages that ended in 5 s: three slots, a time-out of 3 s');
    expectBelow(rssMaxMib - rssBeforeMib, 100, 'MiB that the api grew by');
    await rush.stop();
    const okBefore = opLog.count('ok');
    await arena.until('it sells again', () => opLog.count('ok') > okBefore + 100, 30_000);
    await load.stop();
    await buyers.askAgain();
    expectFields(await arena.rest(saleId), { failedRows: 0 }, 'nothing failed');
    expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
  },
};

const EVERY_SLOT: Row = {
  id: 'G9',
  title:
    'the way to the broker falls silent with a batch in every slot: time-outs free the slots, a lone buyer is served',
  ...{ fast: false, alone: true }, // its api would swallow check-backs of rows beside it
  async run(arena) {
    const { random } = arena;
    const SLOTS = 3;
    const broker = await arena.proxy('broker');
    const slots = { BATCH_IN_FLIGHT_MAX: String(SLOTS), BATCH_GATHER_MS: '0' };
    const env = { ...broker.env, ...slots, ROCKETMQ_REQUEST_TIMEOUT_MS: '1500' };
    const [{ saleId }, api] = await Promise.all([
      arena.openSale({ stock: 100_000 }),
      arena.start('api', { env }),
      arena.start('worker'),
      arena.start('keeper'),
    ]);
    const buyers = arena.buyers(saleId, [api]);
    const { opLog } = buyers;
    broker.proxy.requestDelayMs = 50; // half messages and commits are both on their way at any moment
    const load = buyers.startLoad({ parallel: 48, pauseMs: 5, tries: 1 });
    const before = random.whole(100, 300);
    await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
    const hung = async (): Promise<number> =>
      (await readMetric(api, 'seckill_half_send_seconds_count{outcome="outcome_unknown"}')) +
      (await readMetric(api, 'seckill_half_end_failures_total'));
    const hungBefore = await hung();
    broker.proxy.fallSilent();
    await arena.bite('every slot hangs', async () => (await onTheWay([api])) === SLOTS);
    await arena.bite('each of them ran into its time-out', async () => (await hung()) >= hungBefore + SLOTS);
    await load.stop();
    await arena.until('the slots are free', async () => (await onTheWay([api])) === 0);
    broker.proxy.requestDelayMs = 0;
    broker.proxy.speak();
    arena.faultEnded();
    const startedMs = performance.now();
    const lone = await buyers.buy('lone');
    expectEqual(lone?.status, 202, 'the answer to a lone buyer');
    expectBelow(performance.now() - startedMs, 1500, 'ms that he waited');
    await buyers.askAgain();
    expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
    const { rows } = await arena.rest(saleId);
    expectEqual(rows, opLog.count('ok'), 'rows and buyers who heard yes');
  },
};

export const FULL_SLOT_ROWS: readonly Row[] = [QUEUE_FULL, EVERY_SLOT];
