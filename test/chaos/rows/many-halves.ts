import { killBroker, startBroker } from '../harness/broker-hands.js';
import { expectAtLeast, expectEqual, expectFields } from '../harness/expect.js';
import { readMetric, sumMetric } from '../harness/metrics.js';
import { leaveHalvesOpen } from '../harness/open-halves.js';
import type { Row } from '../row.js';

// M12: thousands of questions at once.

const HALVES = 10_000;
/** Of one api; far more questions than that arrive at once. */
const ENV = { ROCKETMQ_CHECKS_IN_PARALLEL: '4' };
const KEEPER_ENV = { REDRIVE_AFTER_MS: '3600000' };
/** A question is half a kilobyte or more; HTTP/2 sends no more than 64 kB to somebody who acknowledges nothing. */
const LOST_BYTES = 5_000;
const COMMITS = 'seckill_check_backs_total{answer="commit"}';
const SELLS_AGAIN_MS = 60_000;
const ALL_ENDED_MS = 480_000;

const MANY: Row = {
  id: 'M12',
  title: 'a broker restarts with 10,000 open half messages, one api is cut off: the other ends all of them and sells',
  ...{ fast: false, alone: true, timeoutMs: 900_000 },
  async run(arena) {
    const { stack, random } = arena;
    const { env, proxy } = await arena.proxy('broker');
    const [worker, halves, shop] = await Promise.all([
      arena.start('worker'),
      arena.openSale({ stock: HALVES }),
      arena.openSale({ stock: 100_000 }),
      arena.start('keeper', { env: KEEPER_ENV }),
    ]);
    await leaveHalvesOpen(stack, halves.saleId, HALVES);
    await killBroker(arena);
    const openNow = (): Promise<number> => stack.audit.store.pendingCount({ saleId: halves.saleId, bucket: 0 });
    expectEqual(await openNow(), HALVES, 'open batches at the restart');
    await startBroker(stack);

    const [deaf, api] = await Promise.all([
      arena.start('api', { env: { ...ENV, ...env } }).then((program) => {
        proxy.dropReplies = true; // half-open: the broker hears of it and cannot know that it hears nothing
        return program;
      }),
      arena.start('api', { env: ENV }),
    ]);
    const [cutOff, others] = [arena.buyers(shop.saleId, [deaf]), arena.buyers(shop.saleId, [api])];
    const load = others.startLoad({ parallel: 8, pauseMs: random.whole(20, 60), tries: 20 });
    const left = HALVES - (await sumMetric([deaf, api], COMMITS));
    const lost = (): boolean => proxy.droppedBytes > LOST_BYTES;
    await arena.bite(`questions for one api were lost while ${left} half messages were open`, lost, ALL_ENDED_MS);

    await arena.until('the other api has ended every batch', async () => (await openNow()) === 0, ALL_ENDED_MS);
    await load.stop();
    proxy.dropReplies = false;
    proxy.reset();
    arena.faultEnded();
    expectAtLeast(others.opLog.count('ok'), 100, 'purchases meanwhile');
    expectAtLeast(await readMetric(api, COMMITS), left / 2, 'questions that the other api answered');
    const rescued = await readMetric(worker, 'seckill_deliveries_checked_back_total');
    expectAtLeast(rescued, HALVES, 'messages that came by check-back');
    let tried = 0;
    const sells = async (): Promise<boolean> => (await cutOff.buy(`cut-off-${tried++}`))?.status === 202;
    await arena.until('the api that was cut off sells', sells, SELLS_AGAIN_MS);
    for (const buyers of [others, cutOff]) {
      await buyers.askAgain();
      expectEqual(buyers.opLog.count('unknown'), 0, 'buyers who do not know');
    }
    expectFields(await arena.rest(halves.saleId), { rows: HALVES, failedRows: 0 }, 'one order each');
  },
};

export const MANY_HALVES_ROWS: readonly Row[] = [MANY];
