import type { Arena } from '../arena.js';
import { biteInTries } from '../harness/bite-in-tries.js';
import { userIds } from '../harness/buyers.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { endOfLog, repaired, standingOf } from '../harness/lost-writes.js';
import { readMetric } from '../harness/metrics.js';
import { atScriptCall } from '../harness/script-calls.js';
import { keyOf, PATIENT, REPAIR, soldSome, type Sold } from '../harness/sold-sale.js';
import { found } from '../harness/until.js';
import type { Row } from '../row.js';

// R10, and R6 for late commands: repairs that die, that come late, that meet each other.

/** One of two keepers may have done all before the other one looks. */
const RESTARTS_MAX = 5;
const REACHES_REDIS_WITHIN_MS = 20_000;

/** Nobody can tell that it lost nothing, so its sales need a repair. */
async function restartRedis({ stack }: Arena): Promise<void> {
  const server = stack.servers.server('redis');
  await server.stop({ signal: 'SIGKILL' });
  await server.start();
  await server.waitReady();
  await endOfLog(stack); // we are connected again
}

/** What was sold stands as before, and three more buy. */
async function expectSameBooks(arena: Arena, { saleId, buyers }: Sold, before: object): Promise<void> {
  expectEqual(await arena.rest(saleId), before as never, 'the books');
  await buyers.rush(userIds(3, 'late-'), 3, { tries: 30 });
  const { rows } = before as { readonly rows: number };
  expectFields(await arena.rest(saleId), { rows: rows + 3, liveRows: rows + 3, failedRows: 0 }, 'it sells again');
}

const DEATHS: readonly Row[] = (['repair_after_gate', 'repair_after_epoch', 'repair_after_stock'] as const).map(
  (point) => ({
    ...{ id: 'R10', variant: point },
    title: `a keeper dies at ${point}: the sale stays shut, the next repair ends with the same numbers`,
    ...{ fast: false, alone: true },
    async run(arena) {
      const { stack } = arena;
      const [sold, victim] = await Promise.all([
        soldSome(arena),
        arena.start('keeper', { env: REPAIR, failPoint: point }),
      ]);
      const { saleId, buyers } = sold;
      const before = await arena.rest(saleId);
      await restartRedis(arena);
      await arena.diedAt(victim, point);
      await arena.until('the dead keeper left it shut', async () => {
        return (await standingOf(stack, saleId)).state === 'repair';
      });
      // its connection to Redis may come back later than ours
      const buyTooEarly = async () => {
        const heard = await buyers.buy('too-early');
        return heard?.json.code === 'unavailable' ? null : heard;
      };
      const { status, json } = await found('an api that reaches Redis again', buyTooEarly, REACHES_REDIS_WITHIN_MS);
      expectEqual([status, json.code], [503, 'loading'], 'what a buyer hears');
      arena.faultEnded();
      await arena.start('keeper', { env: REPAIR });
      const epoch = await repaired(stack, saleId);
      expectEqual(epoch, point === 'repair_after_gate' ? 2 : 3, 'the epoch: never one that was in use');
      await expectSameBooks(arena, sold, before);
    },
  }),
);

const LATE_COMMAND: Row = {
  ...{ id: 'R10', variant: 'late_command', also: ['R6'] },
  title: 'a command of a repair is under way while another repair ends and the sale sells: it does nothing any more',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const redis = await arena.proxy('redis');
    const [sold, slow] = await Promise.all([
      soldSome(arena),
      arena.start('keeper', { env: { ...REPAIR, ...PATIENT, ...redis.env } }),
    ]);
    const { saleId, buyers } = sold;
    const script = random.pick(['lock', 'stage', 'swap'] as const);
    let isHeld = false;
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    atScriptCall(redis.proxy, script, () => ((isHeld = true), held), 1, keyOf(saleId));
    await restartRedis(arena);
    await arena.bite(`${script} of a keeper is under way`, () => isHeld);

    arena.faultEnded(); // Redis is back; what is under way must need no healing
    await arena.start('keeper', { env: REPAIR });
    const epoch = await repaired(stack, saleId);
    await buyers.rush(userIds(5, 'between-'), 5, { tries: 30 });
    const before = await arena.rest(saleId);
    const repairs = (outcome: string): Promise<number> =>
      readMetric(slow, `seckill_sale_repairs_total{result="${outcome}"}`);
    goOn();
    await arena.until('the slow keeper gives its repair up', async () => {
      return (await repairs('superseded')) + (await repairs('busy')) > 0;
    });
    expectFields(await standingOf(stack, saleId), { state: 'open', epoch, sameServer: true }, 'the sale');
    await expectSameBooks(arena, sold, before);
  },
};

const TWO_KEEPERS: Row = {
  ...{ id: 'R10', variant: 'two_keepers' },
  title: 'two keepers find the same sales in need at once: each is repaired once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack } = arena;
    const [sold, ...keepers] = await Promise.all([
      soldSome(arena),
      arena.start('keeper', { env: REPAIR }),
      arena.start('keeper', { env: REPAIR }),
    ]);
    const before = await arena.rest(sold.saleId);
    const met = async (): Promise<number> => {
      const counts = keepers.flatMap((keeper) =>
        ['busy', 'superseded'].map((outcome) => readMetric(keeper, `seckill_sale_repairs_total{result="${outcome}"}`)),
      );
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    };
    let epoch = 1;
    await biteInTries(arena, 'they met', RESTARTS_MAX, async () => {
      await restartRedis(arena);
      arena.faultEnded();
      expectEqual(await repaired(stack, sold.saleId, epoch), epoch + 1, 'its epoch');
      epoch++;
      return (await met()) > 0;
    });
    await expectSameBooks(arena, sold, before);
    expectEqual((await standingOf(stack, sold.saleId)).epoch, epoch, 'its epoch: repaired once');
  },
};

export const REPAIR_DEATH_ROWS: readonly Row[] = [...DEATHS, LATE_COMMAND, TWO_KEEPERS];
