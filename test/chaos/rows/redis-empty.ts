import { silentLog } from '../../../src/core/ports/log.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import type { Arena } from '../arena.js';
import { userIds } from '../harness/buyers.js';
import { RunningCommand, type CommandEnd } from '../harness/command.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { loseWritesAfter, repaired, standingOf } from '../harness/lost-writes.js';
import { draftSale } from '../harness/open-sale.js';
import { atScriptCall } from '../harness/script-calls.js';
import { markersOf } from '../harness/stack-hands.js';
import type { Row } from '../row.js';

// R5: Redis has nothing of a sale, or is loaded twice.

const OPERATOR = 'a-chaos-row';
const REPLY_TIMEOUT = { REDIS_REPLY_TIMEOUT_MS: '500' };

/** What Redis has of a sale goes under load; everything else is the same for each way to lose it. */
function emptied(variant: string, what: string, lose: (arena: Arena, saleId: string) => Promise<unknown>): Row {
  return {
    ...{ id: 'R5', variant },
    title: `${what} under load: 503, no answer to check-backs, nothing is loaded over; rebuilt from MySQL`,
    ...{ fast: false, alone: true },
    async run(arena) {
      const { stack, random } = arena;
      const [api] = await Promise.all([
        arena.start('api', { env: REPLY_TIMEOUT }),
        arena.start('worker', { env: REPLY_TIMEOUT }),
        arena.start('keeper', { env: REPLY_TIMEOUT }),
      ]);
      const { saleId } = await arena.openSale({ stock: 100_000 });
      const buyers = arena.buyers(saleId, [api]);
      const { opLog } = buyers;
      const load = buyers.startLoad({ parallel: 24, pauseMs: random.whole(10, 30), tries: 1 });
      const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
      const before = random.whole(200, 600);
      await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

      await lose(arena, saleId);
      const { state } = await standingOf(stack, saleId);
      await arena.bite('nothing of the sale is in Redis', () => state === null || state === 'repair');
      const refusedBefore = opLog.count('fail');
      const ref = { saleId, bucket: 0, epoch: 1, batchId: 'unheard-of' };
      const { resolve } = createStockStore(stack.redis, silentLog);
      expectEqual(await resolve(ref), 'no_answer', 'what becomes of a batch');
      expectEqual((await stack.admin.warm(saleId, OPERATOR)).outcome, 'wrong_state', 'warm, of a sale that sells');
      await arena.bite('buyers were refused', () => opLog.count('fail') > refusedBefore + 20);
      arena.faultEnded();
      await repaired(stack, saleId);

      const okBefore = opLog.count('ok');
      await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 200, 30_000);
      await Promise.all([load.stop(), watched.stop()]);
      await buyers.askAgain();
      expectFields(await arena.rest(saleId), { failedRows: 0, rows: opLog.count('ok') }, 'an order for each yes');
    },
  };
}

const WARMED_HALF: Row = {
  ...{ id: 'R5', variant: 'warm_killed' },
  title: 'warm is killed between Redis and MySQL, and called twice more: loaded once, and never again once it sells',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, env } = arena;
    const [{ api }, redis, sale] = await Promise.all([
      arena.survivors(),
      arena.proxy('redis'),
      draftSale(stack, { stock: arena.random.whole(5, 20) }),
    ]);
    const { saleId, stock } = sale;
    arena.adopt(sale);
    atScriptCall(redis.proxy, 'warm', () => void (redis.proxy.dropReplies = true));
    const command = new RunningCommand(['sale', 'warm', saleId], { ...env, ...redis.env });
    await arena.until('Redis has it', async () => (await standingOf(stack, saleId)).state === 'warm', 20_000);
    const end: CommandEnd = await command.signalAfter(0, 'SIGKILL');
    const inRepository = (await stack.admin.show(saleId))?.state;
    await arena.bite('warm was killed midway', () => end.signal === 'SIGKILL' && inRepository === 'draft');
    arena.faultEnded();

    for (const time of ['second', 'third']) {
      expectEqual((await stack.admin.warm(saleId, OPERATOR)).outcome, 'done', `the ${time} warm`);
    }
    expectEqual((await stack.admin.open(saleId, OPERATOR)).outcome, 'done', 'open');
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(3), 3, { tries: 20 });
    expectEqual((await stack.admin.warm(saleId, OPERATOR)).outcome, 'wrong_state', 'warm, of a sale that sells');
    expectFields(await arena.rest(saleId), { stock, rows: 3, unitsLeft: stock - 3 }, 'the stock, loaded once');
  },
};

/** Every key of a bucket, its markers too. */
async function deleteKeys({ stack }: Arena, saleId: string): Promise<void> {
  const { stock, sale, buyers, requests, pending, tx } = bucketKeys({ saleId, bucket: 0 });
  const markers = [...(await markersOf(stack, saleId)).keys()].map((batchId) => tx + batchId);
  await stack.redis.redis.del(stock, sale, buyers, requests, pending, ...markers);
}

export const REDIS_EMPTY_ROWS: readonly Row[] = [
  emptied('keys_deleted', 'the keys of one sale are deleted', deleteKeys),
  emptied('flushall', 'FLUSHALL', ({ stack }) => stack.redis.redis.flushall()),
  emptied('empty_restart', 'Redis is killed and comes back empty', ({ stack }) => loseWritesAfter(stack, 0)),
  WARMED_HALF,
];
