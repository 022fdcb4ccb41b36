import { isStopped } from '../../../deploy/local/stack/process-identity.js';
import type { Arena } from '../arena.js';
import { userIds, type Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { readMetric } from '../harness/metrics.js';
import { MysqlWire } from '../harness/mysql-wire.js';
import { deadLettersOf, recordedTimes, rowsOf } from '../harness/orders-of-sale.js';
import type { Program } from '../harness/programs.js';
import type { Row } from '../row.js';

// M10: a worker that stalls in its transaction.

const INSERT_ORDERS = 'INSERT INTO orders';
const RAISE_SOLD = 'UPDATE sales SET sold';
const LOCK_WAIT = 1205;
/** What a delivery is ours for, WORKER_INVISIBLE_MS of the harness. */
const INVISIBLE_MS = 10_000;
/** The server frees the rows of a silent connection after 20 s; then the batch must come again and be written. */
const RECORDED_WITHIN_MS = 45_000;
const ONE_LOOP = { WORKER_LOOPS: '1' };
/** A statement that waits for a lock for 5 s is to hear so from the server, not from our own time-out. */
const PATIENT = { MYSQL_QUERY_TIMEOUT_MS: '9000', WORKER_INVISIBLE_MS: '20000' };
/** What heals must not be the re-drive. */
const NO_REDRIVE = { REDRIVE_AFTER_MS: '600000' };

/** Whoever heard yes has an order, each batch was recorded once, and no message used its retries up. */
async function expectEachHasAnOrder(arena: Arena, saleId: string, buyers: Buyers): Promise<void> {
  await buyers.askAgain();
  const figures = await arena.rest(saleId);
  expectFields(figures, { rows: buyers.opLog.count('ok'), failedRows: 0 }, 'rows of those who heard yes');
  expectEqual(await recordedTimes(arena.stack, saleId), 1, 'how often a batch was recorded');
  expectEqual(await deadLettersOf(arena.stack, saleId), 0, 'dead letters');
}

/** Stops a worker with SIGSTOP once this statement of the sale has gone out: its transaction stays open. */
function stallAt(wire: MysqlWire, worker: Program, statement: string, saleId: string): void {
  const ofSale = new RegExp(`\\b${saleId}\\b`);
  wire.onStatement = (text) => {
    if (text.startsWith(statement) && ofSale.test(text)) {
      worker.signal('SIGSTOP');
      wire.onStatement = null;
    }
    return true;
  };
}

const STALLED: Row = {
  id: 'M10',
  title:
    'a worker stopped in its transaction: its locks are freed, another one records, its late COMMIT and ack do no harm',
  ...{ fast: false, alone: true },
  async run(arena) {
    const { stack, random } = arena;
    const [near, far] = [await arena.proxy('mysql'), await arena.proxy('mysql')];
    const [lateWire, otherWire] = [new MysqlWire(near.proxy), new MysqlWire(far.proxy)];
    const [api, late] = await Promise.all([
      arena.start('api'),
      arena.start('worker', { env: { ...near.env, ...ONE_LOOP } }),
      arena.start('keeper', { env: NO_REDRIVE }),
    ]);
    const { saleId } = await arena.openSale({ stock: 100_000 });
    const buyers = arena.buyers(saleId, [api]);
    await buyers.rush(userIds(random.whole(3, 8), 'first-'), 8, { tries: 20 });
    await arena.rest(saleId);

    const statement = random.pick([INSERT_ORDERS, RAISE_SOLD]);
    stallAt(lateWire, late, statement, saleId);
    const caught = userIds(random.whole(3, 8), 'caught-');
    await buyers.rush(caught, 8, { tries: 20 });
    await arena.bite(`the worker was stopped behind its ${statement}`, () => isStopped(late.pid));
    const stoppedMs = performance.now();
    const other = await arena.start('worker', { env: { ...far.env, ...PATIENT } });
    const load = buyers.startLoad({ parallel: 8, pauseMs: random.whole(80, 160), tries: 1 });
    await arena.bite('its locks were in the way of the other worker (1205)', () => otherWire.count(LOCK_WAIT) > 0);
    const okBefore = buyers.opLog.count('ok');
    await arena.until('purchases are accepted all the same', () => buyers.opLog.count('ok') > okBefore + 50);

    const recorded = async (): Promise<boolean> => (await rowsOf(stack, saleId, caught)) === caught.length;
    await arena.until('the other worker records what was caught', recorded, RECORDED_WITHIN_MS);
    const stalledMs = Math.round(performance.now() - stoppedMs);
    await arena.bite(`it was stopped for ${stalledMs} ms all the while`, () => isStopped(late.pid));
    expectAtLeast(stalledMs, INVISIBLE_MS, 'ms that the worker was stopped');

    late.signal('SIGCONT');
    arena.faultEnded();
    const foundLate = () => readMetric(late, 'seckill_deliveries_total{verdict="already_recorded"}');
    await arena.bite('it woke up and found its batch recorded', async () => (await foundLate()) > 0);
    await load.stop();
    await expectEachHasAnOrder(arena, saleId, buyers);
    expectTrue(late.running && other.running, 'both workers go on');
  },
};

export const SLOW_WORKER_ROWS: readonly Row[] = [STALLED];
