import { sealBatch } from '../../../src/core/batch.js';
import { silentLog } from '../../../src/core/ports/log.js';
import { createStockStore } from '../../../src/redis/stock-store.js';
import { wordOf } from '../harness/answers.js';
import { userIds } from '../harness/buyers.js';
import { expectBelow, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { HALF_MS, HeldApis, TRIES } from '../harness/held-apis.js';
import { readMetric, sumMetric } from '../harness/metrics.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { markersOf } from '../harness/stack-hands.js';
import type { Row } from '../row.js';

// G: batches that compete, and what is refused after precheck.

const COMPETING: Row = {
  id: 'G1',
  title:
    'two apis with a full batch each and units for one: a batch that does not fit takes nothing, survivors go again',
  ...{ fast: false, alone: false },
  async run(arena) {
    const UNITS = 40;
    const [{ saleId }, held] = await Promise.all([
      arena.openSale({ stock: UNITS + 2 }),
      HeldApis.start(arena, 2, { BATCH_SIZE_MAX: '64' }),
      arena.survivors(),
    ]);
    const { apis } = held;
    const buyers = arena.buyers(saleId, apis);
    await held.hold(buyers);
    const sizes = apis.map(() => arena.random.whole(24, 38)); // some of the batch that loses still fit
    const crowds = apis.map(({ url }, index) => {
      const users = userIds(sizes[index] as number, `crowd${index}-`);
      return buyers.rush(users, users.length, { url, ...TRIES });
    });
    await held.untilWaiting(sizes.reduce((sum, size) => sum + size));
    await held.letGo(HALF_MS);
    const answers = (await Promise.all(crowds)).flat();
    await arena.bite(
      'a batch that had passed precheck did not fit',
      async () => (await sumMetric(apis, 'seckill_batches_total{verdict="refused"}')) >= 1,
    );
    arena.faultEnded();
    expectEqual(answers.filter((answer) => wordOf(answer) === 'yes').length, UNITS, 'buyers who have a unit');
    for (const answer of answers) expectOneOf(wordOf(answer), ['yes', 'sold_out'], 'the answer');
    const refused = await sumMetric(apis, 'seckill_batches_total{verdict="refused"}');
    expectBelow(refused, 5, 'refused batches: each round ends somebody for good');
    expectFields(await arena.rest(saleId), { sold: UNITS + 2, unitsLeft: 0, failedRows: 0 }, 'every unit sold');
  },
};

const REFUSED_LATE: Row = {
  id: 'G2',
  title: 'a key or a limit is used up at another api after precheck: that buyer hears why, the others go again',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ saleId }, held] = await Promise.all([
      arena.openSale({ stock: 200, limitPerBuyer: 2 }),
      HeldApis.start(arena, 2),
      arena.survivors(),
    ]);
    const { apis } = held;
    const buyers = arena.buyers(saleId, apis);
    await held.hold(buyers);
    const [here = '', there = ''] = arena.random.shuffled(apis.map(({ url }) => url));
    const at = (userId: string, url: string, requestId: string, quantity: number) =>
      buyers.buy(userId, { url, requestId, quantity, ...TRIES });
    const sizes = apis.map(() => arena.random.whole(5, 30));
    const neighbours = apis.map(({ url }, index) => {
      const users = userIds(sizes[index] as number, `crowd${index}-`);
      return buyers.rush(users, users.length, { url, ...TRIES });
    });
    const odd = Promise.all([
      Promise.all([at('lim', here, 'k1', 2), at('lim', there, 'k2', 2)]),
      Promise.all([at('twice', here, 'k1', 1), at('twice', there, 'k1', 1)]),
      Promise.all([at('other', here, 'k1', 1), at('other', there, 'k1', 2)]),
    ]);
    await held.untilWaiting(sizes.reduce((sum, size) => sum + size, 6));
    await held.letGo(HALF_MS);
    const [limit, twice, other] = await odd;
    const around = (await Promise.all(neighbours)).flat();
    await arena.bite(
      'deduct refused a batch that precheck had let through',
      async () => (await sumMetric(apis, 'seckill_batches_total{verdict="refused"}')) >= 1,
    );
    arena.faultEnded();
    expectEqual(limit.map(wordOf).sort(), ['limit_reached', 'yes'], 'two keys beyond the limit');
    expectEqual(twice.map(wordOf), ['yes', 'yes'], 'one key twice');
    expectEqual(other.map(wordOf).sort(), ['request_conflict', 'yes'], 'one key with two quantities');
    for (const answer of around) expectEqual(wordOf(answer), 'yes', 'the answer to a neighbour');
    expectFields(await arena.rest(saleId), { rows: around.length + 5, failedRows: 0 }, 'one order each');
  },
};

const REPLY_TIMEOUT_MS = 2000;
/** Behind its time-out, and in time for the reply of decide, which comes behind it. */
const LATE_REPLY_MS = 2500;

const LOST_REFUSAL: Row = {
  id: 'G4',
  title:
    'the reply of a refused deduct is lost: decide says aborted, survivors go again once, a late deduct is refused',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, random } = arena;
    const redis = await arena.proxy('redis');
    const [{ saleId }, held, { api: other }] = await Promise.all([
      arena.openSale({ stock: 100 }),
      HeldApis.start(arena, 1, { ...redis.env, REDIS_REPLY_TIMEOUT_MS: String(REPLY_TIMEOUT_MS) }),
      arena.survivors(),
    ]);
    const [api] = held.apis as [Program];
    const buyers = arena.buyers(saleId, [api]);
    await held.hold(buyers);
    const users = userIds(random.whole(3, 20));
    const crowd = buyers.rush(users, users.length, TRIES);
    const late = buyers.buy('late', { requestId: 'k2', ...TRIES });
    await held.untilWaiting(users.length + 1);
    const usedUp: string[] = [];
    const useUp = async (): Promise<void> => {
      usedUp.push(wordOf(await buyers.buy('late', { requestId: 'k1', url: other.url, ...TRIES })));
      redis.proxy.replyDelayMs = LATE_REPLY_MS; // the deduct itself passes now
    };
    atScriptCall(redis.proxy, 'deduct', useUp, 2); // the first is of the buyer ahead
    await held.letGo();
    await arena.bite('the reply of deduct comes too late', () => redis.proxy.delayedBytes > 0, 30_000);
    redis.proxy.replyDelayMs = 0; // what comes behind it is not overtaken
    await arena.bite('it was given up, and decide asked', () => api.log.includes('no reply to deduct'));
    arena.faultEnded();
    for (const answer of await crowd) expectEqual(wordOf(answer), 'yes', 'the answer to a neighbour');
    expectEqual([...usedUp, wordOf(await late)], ['yes', 'limit_reached'], 'two keys of the late buyer');
    expectEqual(await readMetric(api, 'seckill_batches_total{verdict="aborted"}'), 1, 'batches decided aborted');

    const aborted = [...(await markersOf(stack, saleId))].filter(([, marker]) => marker === 'aborted');
    expectEqual(aborted.length, 1, 'aborted markers');
    const again = sealBatch({
      ...{ batchId: aborted[0]?.[0] ?? '', saleId, bucket: 0, epoch: 1, createdAtMs: Date.now(), trace: '' },
      purchases: users.map((userId) => ({ userId, requestId: 'k1', quantity: 1 })),
    });
    const verdict = await createStockStore(stack.redis, silentLog).deduct(again);
    expectEqual(verdict.outcome, 'aborted', 'a late copy of the refused deduct');
    expectFields(await arena.rest(saleId), { rows: users.length + 2, failedRows: 0 }, 'one order each');
  },
};

export const LATE_REFUSAL_ROWS: readonly Row[] = [COMPETING, REFUSED_LATE, LOST_REFUSAL];
