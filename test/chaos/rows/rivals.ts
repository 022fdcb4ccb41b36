import { silentLog } from '../../../src/core/ports/log.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { createRedriveChannel } from '../../../src/rocketmq/redrive-channel.js';
import { userIds } from '../harness/buyers.js';
import { expectEqual, expectFields, expectOneOf } from '../harness/expect.js';
import { runCommand } from '../harness/command.js';
import { RECONCILE_ENV, reconcileSale } from '../harness/reconcile-sale.js';
import type { StackHands } from '../harness/stack-hands.js';
import { leakBatch } from '../harness/stray-batch.js';
import { statesOf } from '../harness/unpaid-orders.js';
import type { Row } from '../row.js';

// C1 and C2: two mend, or write, the same thing in one moment.

const OPERATOR = 'a-chaos-row';
const NO_REDRIVE = { REDRIVE_AFTER_MS: '3600000' };
const RECONCILING = { ...RECONCILE_ENV, RECONCILE_EVERY_MS: '100', RECONCILE_APPLY: 'true', KEEPER_EVERY_MS: '50' };

/** Ends orders of a sale without the promise that their units go back. */
async function endByHand({ mysql }: StackHands, saleId: string, users: readonly string[]): Promise<void> {
  const mine = [saleId, users] as const;
  await mysql.execute("UPDATE orders SET state = 'cancelled' WHERE sale_id = ? AND user_id IN (?)", mine);
  await mysql.execute('UPDATE sales SET sold = sold - ? WHERE id = ?', [users.length, saleId]);
}

/** Runs of one sale, or of all, that another one overlapped. */
async function overlappingRuns({ mysql }: StackHands): Promise<number> {
  const rows = await mysql.query(
    'SELECT a.id FROM reconcile_runs a JOIN reconcile_runs b ON a.id < b.id AND b.started_at < a.finished_at' +
      ' WHERE a.applied = 1 AND b.applied = 1 LIMIT 100',
  );
  return rows.length;
}

const APPLIERS: Row = {
  id: 'C1',
  title: 'two keepers and two commands reconcile at once: every finding is mended once, with the result of one',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [api] = await Promise.all([
      arena.start('api', { env: RECONCILE_ENV }),
      arena.start('worker'),
      arena.start('keeper', { env: NO_REDRIVE }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100 });
    const paused = await arena.openSale({ stock: 100 });
    const buyers = arena.buyers(saleId, [api]);
    const users = userIds(random.whole(6, 12));
    await buyers.rush(users, 6, { tries: 20 });
    await arena.rest(saleId);
    const ended = users.slice(0, random.whole(2, 4));
    const leaked = userIds(random.whole(3, 8), 'leaked-');
    const drift = random.whole(1, 20);
    await endByHand(stack, saleId, ended);
    for (const userId of leaked) await leakBatch(stack, saleId, [userId]);
    await stack.admin.pause(paused.saleId, OPERATOR);
    await stack.redis.redis.decrby(bucketKeys({ saleId: paused.saleId, bucket: 0 }).stock, drift);
    arena.faultEnded(); // the damage is done, the rest is healing

    const command = (sale: string) =>
      runCommand(['reconcile', '--sale', sale, '--apply', '--json'], { ...arena.env, ...RECONCILE_ENV });
    const both = [saleId, paused.saleId];
    const [ends] = await Promise.all([
      Promise.all(both.map(command)),
      ...[1, 2].map(() => arena.start('keeper', { env: { ...NO_REDRIVE, ...RECONCILING } })),
    ]);
    for (const { code } of ends) expectOneOf(code, [0, 1], 'the end of a command');
    await arena.bite('runs overlapped', async () => (await overlappingRuns(stack)) > 0);
    const jobs = async (): Promise<string[]> => {
      const sql = 'SELECT kind, state FROM compensation_jobs WHERE sale_id IN (?)';
      return (await stack.mysql.query<{ kind: string; state: string }>(sql, [both])).map(
        (job) => `${job.kind} ${job.state}`,
      );
    };
    const wanted = [...leaked.map(() => 'leak'), ...ended.map(() => 'unreleased'), 'drift'].map(
      (kind) => `${kind} compensated`,
    );
    await arena.until(
      'every job has its end',
      async () => (await jobs()).sort().join() === wanted.sort().join(),
      30_000,
    );
    const live = users.length - ended.length + leaked.length;
    expectFields(await arena.rest(saleId), { liveRows: live, unitsLeft: 100 - live, failedRows: 0 }, 'as by one');
    expectFields(await arena.rest(paused.saleId), { unitsLeft: 100, rows: 0 }, 'the stock, set once');
    for (const sale of both) {
      await arena.until('nothing is found any more', async () => {
        return (await reconcileSale(stack, api, sale)).outcome === 'match';
      });
    }
  },
};

/** Jobs whose last attempt is due: the keeper gives each of these purchases up. */
async function orderLastAttempts(
  { mysql }: StackHands,
  saleId: string,
  users: readonly (readonly [string, string])[],
): Promise<void> {
  const rows = users.map(
    ([userId, batchId]) =>
      `('leak', '${saleId}/${userId}/k1', ${saleId}, '${batchId}', '${userId}', 'k1', 'planted', 5)`,
  );
  await mysql.execute(
    'INSERT INTO compensation_jobs (kind, subject, sale_id, batch_id, user_id, request_id, detail, attempts)' +
      ` VALUES ${rows.join()}`,
  );
}

async function promisedBack({ mysql }: StackHands, saleId: string): Promise<string[]> {
  const sql = "SELECT payload FROM outbox WHERE kind = 'release' AND payload LIKE ?";
  const rows = await mysql.query<{ payload: string }>(sql, [`%"saleId":"${saleId}"%`]);
  return rows
    .flatMap(({ payload }) => (JSON.parse(payload) as { orderId: string }[]).map(({ orderId }) => orderId))
    .sort();
}

const BATCHES = 12;
const BATCH_SIZE = 5;

const GIVEN_UP: Row = {
  id: 'C2',
  title: 'the keeper gives purchases up while a worker records them: the first row wins, and no winner is released',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 100 })]);
    const channel = await createRedriveChannel({ endpoint: stack.env.ROCKETMQ_ENDPOINT, log: silentLog });
    try {
      const all = userIds(BATCHES * BATCH_SIZE);
      const isOver = async (): Promise<boolean> => {
        const counts = Object.values(await statesOf(stack, saleId));
        return counts.reduce((sum, count) => sum + count, 0) === all.length;
      };
      const batches = [];
      for (let nth = 0; nth < BATCHES; nth++) {
        batches.push(await leakBatch(stack, saleId, all.slice(nth * BATCH_SIZE, (nth + 1) * BATCH_SIZE)));
      }
      const watched = arena.buyers(saleId, [api]).watch(random.shuffled(all).slice(0, 10));
      const purchases = batches.flatMap(({ batchId, purchases: some }) =>
        some.map(({ userId }) => [userId, batchId] as const),
      );
      await orderLastAttempts(stack, saleId, random.shuffled(purchases));
      const failedNow = async (): Promise<number> => (await statesOf(stack, saleId)).failed ?? 0;
      for (const batch of random.shuffled(batches)) {
        const before = await failedNow();
        // the keeper goes on by one or more purchases, unless the worker has taken the last of them
        const goesOn = async (): Promise<boolean> => (await failedNow()) > before || (await isOver());
        await arena.until('the keeper is at it', goesOn, 20_000, 5);
        await channel.publish(batch);
      }
      await arena.until('each has a row', isOver, 20_000);
      arena.faultEnded();
      const { failed = 0, pending_payment: live = 0 } = await statesOf(stack, saleId);
      await arena.bite(`the keeper won ${failed}, the worker ${live}`, () => failed > 0 && live > 0);
      const figures = { rows: all.length, failedRows: failed, liveRows: live, unitsLeft: 100 - live };
      expectFields(await arena.rest(saleId), figures, 'units of those who lost are back');
      await watched.stop();
      const lost = await stack.mysql.query<{ id: string }>(
        "SELECT id FROM orders WHERE sale_id = ? AND state = 'failed'",
        [saleId],
      );
      expectEqual(await promisedBack(stack, saleId), lost.map(({ id }) => id).sort(), 'promised back, each once');
    } finally {
      await channel.close();
    }
  },
};

export const RIVAL_ROWS: readonly Row[] = [APPLIERS, GIVEN_UP];
