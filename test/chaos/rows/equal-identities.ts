import { bucketKeys } from '../../../src/redis/keys.js';
import type { Arena } from '../arena.js';
import { messageIdsOn, withoutMac } from '../harness/broker-wire.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { wordOf } from '../harness/answers.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { SAME_IDENTITY } from '../harness/preload.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { markersOf } from '../harness/stack-hands.js';
import type { TcpProxy } from '../harness/tcp-proxy.js';
import type { Row } from '../row.js';

// M13: two api processes that the client of the broker cannot tell apart, as in containers.

const STOCK = 100;

/** Two programs that believe to have one pid and one network card. */
async function expectSameIdentity(arena: Arena, programs: readonly Program[]): Promise<void> {
  const told = programs.map(({ log }) => /^identity: .*$/m.exec(log)?.[0] ?? 'none');
  const isSame = told.every((one) => one === told[0] && /pid \d+, mac [\da-f:]{17}/.test(one));
  await arena.bite(`both have the ${told[0]}`, () => isSame, 1_000);
}

interface Round {
  /** Buyers of the api that refuses, and the proxy between it and Redis. */
  readonly late: Buyers;
  readonly proxy: TcpProxy;
  readonly early: Buyers;
  readonly userId: string;
}

/**
 * One buyer presses at both: the second purchase takes the only unit that he may have while the half message of the
 * first is open, so one api commits in the moment in which the other rolls back.
 */
async function commitWhileOtherRollsBack({ late, proxy, early, userId }: Round): Promise<void> {
  let won = 'nothing';
  atScriptCall(proxy, 'deduct', async () => {
    won = wordOf(await early.buy(userId, { requestId: 'early' }));
  });
  const lost = wordOf(await late.buy(userId, { requestId: 'late' }));
  expectEqual([won, lost], ['yes', 'limit_reached'], `what ${userId} heard`);
}

/** Marker by marker: the purchases that its body says were deducted; no worker has cut it down yet. */
async function deductedBodies({ stack }: Arena, saleId: string): Promise<string[]> {
  const { tx } = bucketKeys({ saleId, bucket: 0 });
  const deducted: string[] = [];
  for (const [batchId, word] of await markersOf(stack, saleId)) {
    if (word !== 'deducted') continue;
    const body = ((await stack.redis.redis.get(tx + batchId)) ?? '').slice(word.length);
    const batch = JSON.parse(body) as { batchId: string; purchases: [string, string, number][] };
    expectEqual(batch.batchId, batchId, 'the batch in the body of its marker');
    deducted.push(...batch.purchases.map(([userId, requestId]) => `${userId}/${requestId}`));
  }
  return deducted.sort();
}

const TWINS: Row = {
  id: 'M13',
  title: 'two api processes with equal pid and MAC, one commits while the other rolls back: each ends its own message',
  ...{ fast: false, alone: true },
  async run(arena) {
    const [{ saleId }, wireOfLate, wireOfEarly, redis] = await Promise.all([
      arena.openSale({ stock: STOCK }),
      arena.proxy('broker'),
      arena.proxy('broker'),
      arena.proxy('redis'),
    ]);
    const [idsOfLate, idsOfEarly] = [messageIdsOn(wireOfLate.proxy), messageIdsOn(wireOfEarly.proxy)];
    const preload = [SAME_IDENTITY];
    const [lateApi, earlyApi] = await Promise.all([
      arena.start('api', { preload, env: { ...wireOfLate.env, ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000' } }),
      arena.start('api', { preload, env: wireOfEarly.env }),
    ]);
    await expectSameIdentity(arena, [lateApi, earlyApi]);
    const [late, early] = [arena.buyers(saleId, [lateApi]), arena.buyers(saleId, [earlyApi])];
    const users = userIds(arena.random.whole(15, 40));
    for (const userId of users) await commitWhileOtherRollsBack({ late, proxy: redis.proxy, early, userId });

    const known = new Set([...idsOfLate].map(withoutMac));
    const twins = [...idsOfEarly].filter((messageId) => known.has(withoutMac(messageId)));
    await arena.bite(`${twins.length} pairs of message ids differ by chance only`, () => twins.length > 0, 1_000);
    arena.faultEnded();
    expectEqual(
      [...idsOfEarly].filter((messageId) => idsOfLate.has(messageId)),
      [],
      'message ids of both',
    );
    const accepted = users.map((userId) => `${userId}/early`).sort();
    expectEqual(await deductedBodies(arena, saleId), accepted, 'purchases in the bodies of deducted markers');

    await Promise.all([arena.start('worker'), arena.start('keeper', { env: { REDRIVE_AFTER_MS: '3600000' } })]);
    const figures = { rows: users.length, sold: users.length, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'an order for each that was accepted');
  },
};

export const EQUAL_IDENTITY_ROWS: readonly Row[] = [TWINS];
