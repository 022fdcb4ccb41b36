import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { RunningCommand, runCommand } from '../harness/command.js';
import { expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { endOfLog, repaired, standingOf } from '../harness/lost-writes.js';
import { readMeter } from '../harness/meters.js';
import type { Program } from '../harness/programs.js';
import { atScriptCall } from '../harness/script-calls.js';
import type { Row } from '../row.js';

// R10, and R6 for late commands: repairs that die, that come late, that meet each other.

/** Another keeper takes over after two seconds; a lease has to be longer than one statement of MySQL. */
const REPAIR = { REPAIR_QUIET_MS: '300', REPAIR_LEASE_MS: '2000', MYSQL_QUERY_TIMEOUT_MS: '1500' };
/** A command that the proxy holds back is not given up. */
const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '15000' };

/** One of two keepers may have done all before the other one looks. */
const RESTARTS_MAX = 5;

interface Sold {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly api: Program;
}

/** A sale that has sold some, with everybody at rest. */
async function soldSome(arena: Arena, env: Readonly<Record<string, string>> = {}): Promise<Sold> {
  const [api] = await Promise.all([arena.start('api', { env }), arena.start('worker')]);
  const { saleId } = await arena.openSale({ stock: 30 });
  const buyers = arena.buyers(saleId, [api]);
  await buyers.rush(userIds(arena.random.whole(5, 15), 'early-'), 4, { tries: 30 });
  await arena.rest(saleId);
  return { saleId, buyers, api };
}

/** Stands in every key of a sale: a keeper repairs all that need it. */
const keyOf = (saleId: string): string => `{${saleId}:`;

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
      const answer = await buyers.buy('too-early');
      expectEqual([answer?.status, answer?.json.code], [503, 'loading'], 'what a buyer hears');
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
    const script = random.pick(['shut', 'stage', 'reopen'] as const);
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
      readMeter(slow, `seckill_sale_repairs_total{result="${outcome}"}`);
    goOn();
    await arena.until('the slow keeper gives its repair up', async () => {
      return (await repairs('superseded')) + (await repairs('busy')) > 0;
    });
    expectFields(await standingOf(stack, saleId), { state: 'open', epoch, stamped: true }, 'the sale');
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
        ['busy', 'superseded'].map((outcome) => readMeter(keeper, `seckill_sale_repairs_total{result="${outcome}"}`)),
      );
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    };
    let epoch = 1;
    while (epoch <= RESTARTS_MAX && (await met()) === 0) {
      await restartRedis(arena);
      arena.faultEnded();
      expectEqual(await repaired(stack, sold.saleId, epoch), epoch + 1, 'its epoch');
      epoch++;
    }
    await arena.bite('they met', async () => (await met()) > 0);
    await expectSameBooks(arena, sold, before);
    expectEqual((await standingOf(stack, sold.saleId)).epoch, epoch, 'its epoch: repaired once');
  },
};

/** `seckill sale repair --force`: a repair that needs no restart of Redis. */
const repairCommand = (saleId: string): string[] => ['sale', 'repair', saleId, '--force', '--json'];

const LATE_DEDUCT: Row = {
  ...{ id: 'R10', variant: 'late_deduct' },
  title: 'a deduct is under way while its sale is repaired: it hears stale_epoch, the purchase goes again, one order',
  ...{ fast: false, alone: true },
  async run(arena) {
    const redis = await arena.proxy('redis');
    const [sold] = await Promise.all([soldSome(arena, { ...PATIENT, ...redis.env }), arena.start('keeper')]);
    const { saleId, buyers } = sold;
    const before = await arena.rest(saleId);
    let epoch: unknown;
    atScriptCall(redis.proxy, 'deduct', async () => {
      const { lines } = await runCommand(repairCommand(saleId), { ...arena.env, ...REPAIR });
      epoch = lines.at(-1)?.epoch;
    });
    const answer = await buyers.buy('ann');
    await arena.bite('the sale was repaired before deduct arrived', () => epoch === 2);
    arena.faultEnded();
    expectOneOf(answer?.status ?? 503, [202, 503], 'what she hears');
    await buyers.rush(['ann'], 1, { tries: 30 });
    const rows = before.rows + 1;
    expectFields(await arena.rest(saleId), { rows, liveRows: rows, failedRows: 0 }, 'one order for her');
  },
};

/** Holds a script of a worker or keeper back until the sale is shut, or until it is open again. */
async function holdUntil(
  arena: Arena,
  saleId: string,
  proxy: Parameters<typeof atScriptCall>[0],
  script: 'settle' | 'release',
) {
  const moment = arena.random.pick(['shut', 'repaired'] as const);
  const repair: { command?: RunningCommand } = {};
  let met = '';
  const meet = async (): Promise<void> => {
    repair.command = new RunningCommand(repairCommand(saleId), { ...arena.env, ...REPAIR, REPAIR_QUIET_MS: '1500' });
    if (moment === 'repaired') await repair.command.end;
    else await arena.until('it is shut', async () => (await standingOf(arena.stack, saleId)).state === 'repair');
    met = (await standingOf(arena.stack, saleId)).state ?? '';
  };
  atScriptCall(proxy, script, meet, 1, keyOf(saleId));
  return async () => {
    const wanted = moment === 'shut' ? 'repair' : 'open';
    await arena.bite(`${script} met a sale that was ${wanted}`, () => met === wanted);
    const { lines } = (await repair.command?.end) ?? {};
    expectEqual(lines?.at(-1)?.outcome, 'repaired', 'the repair');
    arena.faultEnded();
  };
}

const LATE_SETTLE: Row = {
  ...{ id: 'R10', variant: 'late_settle' },
  title: 'a settle comes while its sale is shut, or after its repair: the order stands, once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const redis = await arena.proxy('redis');
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: { ...PATIENT, ...redis.env } }),
      arena.start('keeper', { env: { REDRIVE_AFTER_MS: '5000' } }),
    ]);
    const { saleId } = await arena.openSale();
    const held = await holdUntil(arena, saleId, redis.proxy, 'settle');
    const buyers = arena.buyers(saleId, [api]);
    await buyers.buy('ann', { tries: 20 });
    await held();
    expectFields(await arena.rest(saleId), { rows: 1, liveRows: 1, unitsLeft: 9 }, 'one order');
    expectEqual((await buyers.status('ann')).json.status, 'ordered', 'what she sees');
  },
};

const LATE_RELEASE: Row = {
  ...{ id: 'R10', variant: 'late_release' },
  title: 'a release comes while its sale is shut, or after its repair: the unit is back once',
  ...{ fast: false, alone: true },
  async run(arena) {
    const redis = await arena.proxy('redis');
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper', { env: { ...PATIENT, ...redis.env } }),
    ]);
    const { saleId } = await arena.openSale();
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(['ann', 'bob'], 2, { tries: 20 });
    await arena.rest(saleId);
    const held = await holdUntil(arena, saleId, redis.proxy, 'release');
    const { json } = await buyers.status('ann');
    expectEqual((await buyers.move('cancel', 'ann', String(json.orderId)))?.status, 200, 'her cancellation');
    await held();
    expectFields(await arena.rest(saleId), { rows: 2, liveRows: 1, unitsLeft: 9 }, 'her unit is back');
  },
};

export const REPAIR_DEATH_ROWS: readonly Row[] = [
  ...DEATHS,
  ...[LATE_COMMAND, TWO_KEEPERS],
  ...[LATE_DEDUCT, LATE_SETTLE, LATE_RELEASE],
];
