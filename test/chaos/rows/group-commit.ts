import { setTimeout as sleep } from 'node:timers/promises';
import type { Arena } from '../arena.js';
import { biteInTries } from '../harness/bite-in-tries.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectEqual } from '../harness/expect.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import { KILLS_MAX, underLoad } from '../harness/under-load.js';
import { until } from '../harness/until.js';
import type { Row } from '../row.js';

// G: many purchases in one batch, many batches at a time.

const STOCK = 20;
/** From the socket of a buyer to the queue of the api; too short only makes the second batch smaller. */
const QUEUED_MS = 300;

/** @returns the apis; their batches leave one after the other, so that some are under way at any moment */
async function startAll(arena: Arena): Promise<Program[]> {
  const env = { BATCH_GATHER_MS: '0' };
  const [first, second] = await Promise.all([
    arena.start('api', { env }),
    arena.start('api', { env }),
    arena.start('worker'),
    arena.start('keeper'),
  ]);
  return [first, second];
}

const BEFORE_RESUBMIT: Row = {
  id: 'G3',
  title: 'the api dies before survivors of a refused batch go again: they were never held, the same key is a first try',
  ...{ fast: false, alone: false },
  async run(arena) {
    const [{ api: other }, { saleId }, redis] = await Promise.all([
      arena.survivors(),
      arena.openSale({ stock: STOCK }),
      arena.proxy('redis'),
    ]);
    // one slot: while the first batch is under way, the others form the second
    const env = { ...redis.env, REDIS_REPLY_TIMEOUT_MS: '10000', BATCH_IN_FLIGHT_MAX: '1' };
    const victim = await arena.start('api', { env, failPoint: 'before_resubmit' });
    let asked = victim;
    const buyers = arena.buyers(saleId, () => [asked]);
    const users = userIds(arena.random.whole(3, 6));
    const rivals = arena.buyers(saleId, [other]);
    const rest: Promise<unknown>[] = [];
    atScriptCall(redis.proxy, 'deduct', async () => {
      rest.push(buyers.rush(users, users.length));
      // between precheck and deduct of the second batch, one of its buyers uses up his limit elsewhere
      atScriptCall(redis.proxy, 'deduct', async () => {
        await rivals.buy(users[0] as string, { requestId: 'k2', tries: 5 });
      });
      await sent(buyers, users.length + 1);
    });
    const first = await buyers.buy('first');
    await arena.diedAt(victim, 'before_resubmit');
    arena.faultEnded();
    await Promise.all(rest);
    asked = other;
    expectEqual(rivals.opLog.count('ok'), 1, 'the purchase that used up a limit');
    expectEqual(buyers.opLog.count('unknown'), users.length + (first?.status === 202 ? 0 : 1), 'who does not know');
    const { unitsLeft = Number.NaN } = (await arena.stack.audit.store.snapshot({ saleId, bucket: 0 })) ?? {};
    expectEqual(unitsLeft, STOCK - 2, 'units left: those of the survivors were never held');
    await buyers.askAgain();
    const { rows, sold } = await arena.rest(saleId);
    expectEqual([rows, sold], [users.length + 1, users.length + 1], 'rows and units sold'); // first, k2, survivors
  },
};

/** Waits until so many purchases have left their buyers, and a moment more until they are queued. */
async function sent({ opLog }: Buyers, purchases: number): Promise<void> {
  await until(`${purchases} purchases are sent`, () => opLog.requests >= purchases);
  await sleep(QUEUED_MS);
}

export const GROUP_COMMIT_ROWS: readonly Row[] = [
  BEFORE_RESUBMIT,
  {
    id: 'G6',
    title: 'kill -9 of every program at once under load, then a new start: every batch ends by its own marker',
    ...{ fast: true, alone: true },
    async run(arena) {
      const { stack, programs, random } = arena;
      const [{ saleId }, firstApis] = await Promise.all([arena.openSale({ stock: 100_000 }), startAll(arena)]);
      let apis = firstApis;
      const buyers = arena.buyers(saleId, () => apis);
      const { opLog } = buyers;
      const killAll = async (): Promise<void> => {
        const exits = await Promise.all(random.shuffled(programs.running).map((program) => program.crash()));
        const allKilled = exits.length === 4 && exits.every(({ signal }) => signal === 'SIGKILL');
        await arena.bite('all four programs were killed', () => allKilled);
      };
      await biteInTries(arena, 'purchases were under way and batches open', KILLS_MAX, async (tries) => {
        const rush = { parallel: 64, accepted: random.whole(400, 1200), prefix: `load-${tries}` };
        const { unheard } = await underLoad(arena, buyers, rush, killAll);
        const open = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
        apis = await startAll(arena);
        return unheard > 0 && open > 0;
      });
      arena.faultEnded();
      const { sold, rows } = await arena.rest(saleId);
      expectEqual(sold, rows, 'units that Redis gave, and orders');
      await buyers.askAgain();
      expectEqual(opLog.count('unknown'), 0, 'buyers who do not know');
      const settled = await arena.rest(saleId);
      expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
    },
  },
];
