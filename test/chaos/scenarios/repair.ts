import type { Batch } from '../../../src/core/batch.js';
import { homeBucket } from '../../../src/core/sale.js';
import { createDeadLetterRepository } from '../../../src/mysql/dead-letter-repository.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import type { Arena } from '../context.js';
import { deductBatch } from '../harness/batches.js';
import { type Buyers, userIds } from '../harness/buyers.js';
import { runCommand, RunningCommand } from '../harness/commands.js';
import { expectAtMost, expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { biteInTries } from '../harness/load.js';
import { type Program, readMetric } from '../harness/programs.js';
import { biteOfLostWrites, endOfLog, repaired, standingOf } from '../harness/redis.js';
import { atScriptCall } from '../harness/traffic.js';
import { found } from '../harness/wait.js';
import type { Row } from '../scenario.js';

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

const DEATHS: readonly Row[] = (['repair_after_lock', 'repair_after_epoch', 'repair_after_stock'] as const).map(
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
      expectEqual(epoch, point === 'repair_after_lock' ? 2 : 3, 'the epoch: never one that was in use');
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

// R10, where a purchase, its settling or a release is under way while the sale is repaired.

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
  script: 'mark-recorded' | 'release',
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
    const held = await holdUntil(arena, saleId, redis.proxy, 'mark-recorded');
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

// R6 and R12: what a repair keeps though it has no row; several buckets.

const FAST_REPAIR = { REPAIR_QUIET_MS: '300' };

/** As the keeper parks a dead letter: written down, and out of `pending`; its units stay held. */
async function park({ stack }: Arena, batch: Batch): Promise<void> {
  await createDeadLetterRepository(stack.mysql).park({
    ...{ messageId: `chaos-${batch.batchId}`, group: 'seckill-order-writer', originTopic: 'seckill-purchase' },
    ...{ saleId: batch.saleId, batchId: batch.batchId, body: batch.body },
    ...{ reason: 'retries_exhausted', detail: 'parked by a chaos row', attempts: 6 },
  });
  await stack.redis.redis.zrem(bucketKeys(batch).pending, batch.batchId);
}

const KEEPS_HELD: Row = {
  ...{ id: 'R6', variant: 'held_and_parked' },
  title:
    'a batch in pending and parked ones keep their units in a repair, also one whose marker is lost; all are recorded',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('keeper', { env: { ...FAST_REPAIR, REDRIVE_AFTER_MS: '2000' } }),
    ]);
    const { saleId } = await arena.openSale({ stock: 30 });
    await deductBatch(stack, saleId, userIds(random.whole(1, 4), 'pending-')); // no message: only the re-drive has it
    await park(arena, await deductBatch(stack, saleId, userIds(2, 'parked-')));
    const kept = (await unitsLeft(arena, saleId)) ?? Number.NaN;
    const end = await endOfLog(stack);
    await park(arena, await deductBatch(stack, saleId, userIds(2, 'parked-late-')));
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(3, 'late-'), 3, { tries: 20 });

    const isFree = async (): Promise<boolean> => (await unitsLeft(arena, saleId)) === kept;
    await biteOfLostWrites(arena, end, 'Redis forgot a parked batch', isFree);
    arena.faultEnded();
    await repaired(stack, saleId);
    expectEqual(await unitsLeft(arena, saleId), kept - 2, 'units left: those of both parked batches are held');
    await arena.start('worker');
    const sold = 30 - kept + 3; // three come late and claim
    await arena.until('what is not parked is recorded', async () => (await rowsOf(arena, saleId)) === sold - 2, 40_000);
    const replay = await runCommand(['dlq', 'replay', '--all-matching', '--sale', saleId, '--json'], arena.env);
    expectEqual(
      replay.lines.map(({ outcome }) => outcome),
      ['replayed', 'replayed'],
      'the replays',
    );
    const figures = { liveRows: sold + 2, unitsLeft: 28 - sold, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'an order for each');
  },
};

/** NaN while the bucket is not loaded. */
async function unitsLeft({ stack }: Arena, saleId: string, bucket = 0): Promise<number> {
  return (await stack.audit.store.snapshot({ saleId, bucket }))?.unitsLeft ?? Number.NaN;
}

async function rowsOf({ stack }: Arena, saleId: string): Promise<number> {
  const sql = 'SELECT COUNT(*) AS `rows` FROM orders WHERE sale_id = ?';
  const [row] = await stack.mysql.query<{ rows: string }>(sql, [saleId]);
  return Number(row?.rows);
}

const BUCKETS = 3;
const PER_BUCKET = 4;

const SEVERAL_BUCKETS: Row = {
  id: 'R12',
  title:
    'several buckets, one of them sold out, and a lost tail: limits and keys hold, what is left is shared out anew',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api'),
      arena.start('worker'),
      arena.start('keeper', { env: { REPAIR_QUIET_MS: '1000' } }),
    ]);
    const { saleId } = await arena.openSale({ stock: BUCKETS * PER_BUCKET, buckets: BUCKETS });
    const buyers = arena.buyers(saleId, [api]);
    const at = (bucket: number): string[] =>
      userIds(200, `b${random.whole(0, 1_000)}-`).filter((user) => homeBucket(user, BUCKETS) === bucket);
    const [home, ...others] = [at(0), at(1), at(2)] as [string[], string[], string[]];
    const winners = home.slice(0, PER_BUCKET);
    await buyers.rush(winners, 2, { tries: 20 });
    expectEqual(await unitsLeft(arena, saleId), 0, 'units left at home');
    const late = home[PER_BUCKET] as string;
    expectEqual(
      (await buyers.buy(late, { tries: 20 }))?.status,
      202,
      'who comes late at home: a unit of another bucket',
    );
    await arena.until('they have rows', async () => (await rowsOf(arena, saleId)) === PER_BUCKET + 1, 30_000);
    const end = await endOfLog(stack);
    for (const users of others) await buyers.rush(users.slice(0, 2), 2, { tries: 20 });
    await arena.until('the others too', async () => (await rowsOf(arena, saleId)) === PER_BUCKET + 5, 30_000);
    const perBucket = (): Promise<number[]> => Promise.all([0, 1, 2].map((bucket) => unitsLeft(arena, saleId, bucket)));
    const sumOf = (units: readonly number[]): number => units.reduce((sum, left) => sum + left, 0);
    const leftBefore = sumOf(await perBucket());
    expectEqual(leftBefore, BUCKETS * PER_BUCKET - PER_BUCKET - 5, 'units left');

    const areFree = async (): Promise<boolean> => sumOf(await perBucket()) > leftBefore;
    await biteOfLostWrites(arena, end, 'units that were sold are free again', areFree);
    arena.faultEnded();
    await repaired(stack, saleId);
    const left = await perBucket();
    expectEqual(sumOf(left), leftBefore, 'units left after the repair');
    expectAtMost(Math.max(...left) - Math.min(...left), 1, 'units between the fullest bucket and the emptiest');

    const winner = winners[0] as string;
    const again = await buyers.buy(winner, { tries: 20 });
    expectEqual([again?.status, again?.json.status], [200, 'ordered'], 'the same key');
    const more = await buyers.buy(winner, { requestId: 'k2' });
    expectEqual(more?.json.code, 'limit_reached', 'a second key');
    const { json } = await buyers.status(winner);
    await buyers.move('cancel', winner, String(json.orderId));
    await arena.until('the unit is back', async () => sumOf(await perBucket()) === leftBefore + 1, 20_000);
    // all from one home: the last of them fetch what is left in the other buckets
    await buyers.rush(home.slice(PER_BUCKET + 1, PER_BUCKET + 2 + leftBefore), 2, { tries: 20 });
    const nobody = home[PER_BUCKET + 2 + leftBefore] as string;
    expectEqual((await buyers.buy(nobody))?.json.code, 'sold_out', 'who comes when all buckets are empty');
    const figures = { sold: BUCKETS * PER_BUCKET, unitsLeft: 0, failedRows: 0 };
    expectFields(await arena.rest(saleId), figures, 'sold out, each unit once');
  },
};

// What rows about repairs begin with.

/** Another keeper takes over after two seconds; a lease has to be longer than one statement of MySQL. */
export const REPAIR = { REPAIR_QUIET_MS: '300', REPAIR_LEASE_MS: '2000', MYSQL_QUERY_TIMEOUT_MS: '1500' };
/** A command that the proxy holds back is not given up. */
export const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '15000' };

/** Stands in every key of a sale: a keeper repairs all that need it. */
export const keyOf = (saleId: string): string => `{${saleId}:`;

export interface Sold {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly api: Program;
}

/** A sale that has sold some, with everybody at rest. */
export async function soldSome(arena: Arena, env: Readonly<Record<string, string>> = {}): Promise<Sold> {
  const [api] = await Promise.all([arena.start('api', { env }), arena.start('worker')]);
  const { saleId } = await arena.openSale({ stock: 30 });
  const buyers = arena.buyers(saleId, [api]);
  await buyers.rush(userIds(arena.random.whole(5, 15), 'early-'), 4, { tries: 30 });
  await arena.rest(saleId);
  return { saleId, buyers, api };
}

export const REPAIR_SCENARIOS: readonly Row[] = [
  ...DEATHS,
  LATE_COMMAND,
  TWO_KEEPERS,
  LATE_DEDUCT,
  LATE_SETTLE,
  LATE_RELEASE,
  KEEPS_HELD,
  SEVERAL_BUCKETS,
];
