import type { SqlValue } from '../../../src/mysql/pool.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { userIds } from '../harness/buyers.js';
import { runCommand } from '../harness/command.js';
import { expectEqual, expectFields } from '../harness/expect.js';
import { cancelPlanted, plantOrder } from '../harness/planted-order.js';
import { reconcileSale } from '../harness/reconcile-sale.js';
import type { StackHands } from '../harness/stack-hands.js';
import type { Row } from '../row.js';

// D5 to D7: the books are set apart by hand, and reconcile tells what a person did to them.

const OPERATOR = 'a-chaos-row';
const keysOf = (saleId: string) => bucketKeys({ saleId, bucket: 0 });

type OrderRow = Readonly<Record<string, SqlValue>>;
const RESTORED = 'id, sale_id, user_id, request_id, batch_id, quantity, amount_cents, state, one_per_buyer, expires_at';

/** Takes the orders of some buyers out of MySQL, as an older copy would not have them. */
async function forget({ mysql }: StackHands, saleId: string, users: readonly string[]): Promise<OrderRow[]> {
  const rows = await mysql.query<OrderRow>(`SELECT ${RESTORED} FROM orders WHERE sale_id = ? AND user_id IN (?)`, [
    ...[saleId, users],
  ]);
  await mysql.transaction(async (tx) => {
    await tx.execute('DELETE FROM orders WHERE sale_id = ? AND user_id IN (?)', [saleId, users]);
    await tx.execute('UPDATE sales SET sold = sold - ? WHERE id = ?', [users.length, saleId]);
  });
  return rows;
}

/** What a person does who has found out what they were. */
async function remember({ mysql }: StackHands, saleId: string, rows: readonly OrderRow[]): Promise<void> {
  await mysql.transaction(async (tx) => {
    for (const row of rows) {
      const marks = RESTORED.replace(/\w+/g, '?');
      await tx.execute(
        `INSERT INTO orders (${RESTORED}) VALUES (${marks})`,
        RESTORED.split(', ').map((name) => row[name] ?? null),
      );
    }
    await tx.execute('UPDATE sales SET sold = sold + ? WHERE id = ?', [rows.length, saleId]);
  });
}

const ORDERS_LOST: Row = {
  id: 'D5',
  title:
    'MySQL comes back as an older copy without some orders: told, never 404, not written again; a person decides, ' +
    'also after a repair in between',
  ...{ fast: false, alone: false },
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 20 })]);
    const users = userIds(random.whole(5, 10));
    await arena.buyers(saleId, [api]).rush(users, 5, { tries: 20 });
    await arena.rest(saleId);
    const lost = random.shuffled(users).slice(0, random.whole(1, 4)).sort();
    const rows = await forget(stack, saleId, lost);
    const count = users.length - lost.length;
    const rowsNow = async (): Promise<number> => (await stack.audit.repository.findSale(saleId))?.sold ?? Number.NaN;
    await arena.bite(`${lost.length} settled orders are gone`, async () => (await rowsNow()) === count);

    const later = arena.buyers(saleId, [api]); // who saw his order before sees it pending now: decision 10
    const expectTold = async (when: string): Promise<void> => {
      for (const userId of lost) expectEqual((await later.status(userId)).json.status, 'pending', `he hears ${when}`);
      const { outcome, found, jobs } = await reconcileSale(stack, api, saleId, { apply: true });
      const told = lost.map((userId) => `order_lost ${userId}`);
      expectEqual(found, told, `found ${when} (${String(outcome)})`);
      expectEqual(jobs, [], 'jobs: nothing is written again by itself');
      expectEqual(await rowsNow(), count, 'units sold as before');
    };
    await expectTold('at first');
    await expectTold('after a run that may mend');
    const repair = await runCommand(['sale', 'repair', saleId, '--force', '--json'], arena.env);
    const kept = { outcome: 'repaired', rows: count, ordersLost: lost.length, unitsLeft: 20 - users.length };
    expectFields(repair.lines.at(-1) ?? {}, kept, 'the repair keeps their units');
    await expectTold('after a repair');

    await remember(stack, saleId, rows);
    arena.faultEnded();
    const { found } = await reconcileSale(stack, api, saleId);
    expectEqual(found, [], 'found afterwards');
    for (const userId of lost) expectEqual((await later.status(userId)).json.status, 'ordered', 'what its buyer hears');
    expectFields(await arena.rest(saleId), { rows: users.length, failedRows: 0 }, 'as before');
  },
};

const UNITS_ADDED: Row = {
  id: 'D6',
  title:
    'units added to Redis by hand: exactly the surplus fails at the last guard, is told, the stock is set afterwards',
  ...{ fast: true, alone: false },
  mayFail: ['oversold_guard'],
  async run(arena) {
    const { stack, random } = arena;
    const stock = random.whole(5, 10);
    const surplus = random.whole(1, 4);
    const unsold = random.whole(1, 3);
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock })]);
    const added = surplus + unsold;
    await stack.redis.redis.incrby(keysOf(saleId).stock, added);
    expectEqual((await reconcileSale(stack, api, saleId)).found, [`drift -${added}`], 'found before anybody buys');

    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(stock + surplus), 8, { tries: 20 });
    expectEqual(buyers.opLog.count('ok'), stock + surplus, 'buyers who heard yes');
    const failed = async (): Promise<number> => {
      const sql = "SELECT id FROM orders WHERE sale_id = ? AND reason = 'oversold_guard'";
      return (await stack.mysql.query(sql, [saleId])).length;
    };
    await arena.bite(`the guard refused ${surplus} of ${stock + surplus}`, async () => (await failed()) === surplus);
    const found = [`drift -${unsold}`, `oversell ${surplus}`];
    await arena.until(
      'both are told',
      async () => {
        return (await reconcileSale(stack, api, saleId)).found.join() === found.join(); // young batches hide the drift
      },
      20_000,
      500,
    );
    const open = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(open.jobs, [], 'no script sets the stock of an open sale');

    await stack.admin.close(saleId, OPERATOR);
    const closed = await reconcileSale(stack, api, saleId, { apply: true });
    expectEqual(
      closed.jobs.filter((job) => job.startsWith('drift')),
      ['drift compensated'],
      'jobs of the closed sale',
    );
    arena.faultEnded();
    const figures = { sold: stock, liveRows: stock, failedRows: surplus, unitsLeft: 0 };
    expectFields(await arena.rest(saleId), figures, 'exactly the surplus failed');
  },
};

const ACTIVE_KEY: Row = {
  ...{ id: 'D7', variant: 'active_key' },
  title:
    'a buyer has a live order that Redis does not know: his second one fails for the limit, his neighbours have theirs',
  ...{ fast: true, alone: false },
  mayFail: ['limit_reached'],
  async run(arena) {
    const { stack, random } = arena;
    const [{ api }, { saleId }] = await Promise.all([arena.survivors(), arena.openSale({ stock: 20 })]);
    const users = userIds(random.whole(4, 10));
    const twice = random.pick(users);
    await plantOrder(stack, saleId, twice);
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(users, users.length, { tries: 20 });
    await arena.bite('the unique key of live orders stopped him', async () => {
      const { status, reason } = (await buyers.status(twice, 'k1', 2)).json;
      return status === 'failed' && reason === 'limit_reached';
    });
    await cancelPlanted(stack, saleId);
    arena.faultEnded();
    const others = users.length - 1;
    const figures = { rows: users.length + 1, liveRows: others, failedRows: 1, unitsLeft: 20 - others };
    expectFields(await arena.rest(saleId), figures, 'only his failed, and its unit is back');
  },
};

export const BOOKS_APART_ROWS: readonly Row[] = [ORDERS_LOST, UNITS_ADDED, ACTIVE_KEY];
