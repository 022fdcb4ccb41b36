import { readFileSync } from 'node:fs';
import { expectBelow, expectEqual } from '../harness/expect.js';
import { batchesInFlight, expectRowPerAccepted, queuedPurchases, startSystem } from '../harness/load.js';
import { readMetric } from '../harness/programs.js';
import type { Scenario } from '../scenario.js';

// G8, G9: more requests than an api can serve.

const rssMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const QUEUE_FULL: Scenario = {
  name: 'G8',
  title: 'the broker stalls for 5 s at ten times the load: buyers get 503 overloaded, and memory is bounded',
  alone: true,
  async run(context) {
    const QUEUE_MAX = 64;
    const { stack, random } = context;
    const times = { BATCH_WAIT_MAX_MS: '1000', ROCKETMQ_REQUEST_TIMEOUT_MS: '3000' };
    const env = { BATCH_SIZE_MAX: '32', BATCH_QUEUE_MAX: String(QUEUE_MAX), ...times };
    const { api, saleId, buyers } = await startSystem(context, { stock: 100_000 }, { api: env });
    const { opLog } = buyers;
    const load = await buyers.startLoadUntil({ parallel: 16, pauseMs: 20, tries: 1 }, random.whole(100, 400));
    const overload = buyers.startLoad({ parallel: 160, pauseMs: 20, tries: 1, prefix: 'rush' });
    await context.until('ten times as many', () => opLog.requests > 1000);
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
      queueMax = Math.max(queueMax, await queuedPurchases([api]));
      return performance.now() - stoppedMs >= 5000;
    };
    await context.until('five seconds are over', watch);
    const refused = (await overloaded()) - refusedBefore;
    const sentMeanwhile = (await sent()) - sentBefore;
    broker.kill('SIGCONT');
    context.faultEnded();
    await context.observed('buyers got overloaded', () => refused > QUEUE_MAX);
    expectBelow(queueMax, QUEUE_MAX + 1, 'purchases in the queue');
    expectBelow(sentMeanwhile, 3 * 3 + 1, 'half messages that ended in 5 s: three slots, a time-out of 3 s');
    expectBelow(rssMaxMib - rssBeforeMib, 100, 'MiB that the api grew by');
    await overload.stop();
    await buyers.untilAccepted(100, 'it sells again');
    await load.stop();
    await buyers.retryUnknown();
    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed');
    expectEqual(opLog.count('unknown'), 0, 'purchases without an answer');
  },
};

const SLOTS_STALLED: Scenario = {
  name: 'G9',
  title: 'the broker connection stalls with a batch in every slot: time-outs free the slots for the next buyer',
  alone: true, // the api would swallow check-backs of parallel scenarios
  async run(context) {
    const SLOTS = 3;
    const { proxy, env } = await context.proxy('broker');
    const slots = { BATCH_IN_FLIGHT_MAX: String(SLOTS), BATCH_GATHER_MS: '0' };
    const [{ saleId }, api] = await Promise.all([
      context.openSale({ stock: 100_000 }),
      context.start('api', { env: { ...env, ...slots, ROCKETMQ_REQUEST_TIMEOUT_MS: '1500' } }),
      context.start('worker'),
      context.start('keeper'),
    ]);
    const buyers = context.buyers(saleId, [api]);
    proxy.requestDelayMs = 50; // half messages and commits are always both under way
    const options = { parallel: 48, pauseMs: 5, tries: 1 };
    const load = await buyers.startLoadUntil(options, context.random.whole(100, 300));
    const timedOut = async (): Promise<number> =>
      (await readMetric(api, 'seckill_half_send_seconds_count{outcome="outcome_unknown"}')) +
      (await readMetric(api, 'seckill_half_end_failures_total'));
    const before = await timedOut();
    proxy.stall();
    await context.observed('every slot hangs', async () => (await batchesInFlight([api])) === SLOTS);
    await context.observed('each of them timed out', async () => (await timedOut()) >= before + SLOTS);
    await load.stop();
    await context.until('the slots are free', async () => (await batchesInFlight([api])) === 0);
    proxy.requestDelayMs = 0;
    proxy.resume();
    context.faultEnded();
    const startedMs = performance.now();
    expectEqual((await buyers.buy('next'))?.status, 202, 'the answer to the next buyer');
    expectBelow(performance.now() - startedMs, 1500, 'ms until that answer');
    await expectRowPerAccepted(context, buyers);
  },
};

export const OVERLOAD_SCENARIOS: readonly Scenario[] = [QUEUE_FULL, SLOTS_STALLED];
