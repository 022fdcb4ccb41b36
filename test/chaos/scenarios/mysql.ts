import type { ScenarioContext } from '../context.js';
import type { Buyers } from '../harness/buyers.js';
import { expectAtLeast, expectEqual, expectTrue } from '../harness/expect.js';
import { expectRowPerAccepted, startSystem } from '../harness/load.js';
import { readMetric } from '../harness/programs.js';
import { deadLettersOf, pendingCountOf } from '../harness/sale-state.js';
import type { Scenario } from '../scenario.js';

// D1: MySQL stalls.

/** Asserts that each accepted purchase has an order, nothing failed, and no message used up its retries. */
async function expectNothingLost(context: ScenarioContext, buyers: Buyers): Promise<void> {
  await expectRowPerAccepted(context, buyers, { failedRows: 0 });
  expectEqual(await deadLettersOf(context.stack, buyers.saleId), 0, 'dead letters');
}

const OUTAGE_MS = 5_000;
const HEAL_MS = 30_000;

const STALLED: Scenario = {
  name: 'D1',
  title: 'MySQL stalls under load: sales continue, and every row is written within 30 s',
  fast: true,
  alone: true,
  async run(context) {
    const { stack, random } = context;
    const env = { MYSQL_QUERY_TIMEOUT_MS: '3000' };
    const { worker, saleId, buyers } = await startSystem(context, { stock: 100_000 }, { api: env, worker: env });
    const options = { parallel: 16, pauseMs: random.whole(30, 70), tries: 1 };
    const load = await buyers.startLoadUntil(options, random.whole(100, 300));

    const mysql = stack.servers.server('mysql');
    expectTrue(mysql.kill('SIGSTOP'), 'MySQL ran');
    const stoppedMs = performance.now();
    const hasNoticed = async (): Promise<boolean> => (await readMetric(worker, 'seckill_mysql_outage')) === 1;
    await context.observed('the worker noticed that MySQL is silent', hasNoticed);
    await buyers.untilAccepted(20, 'purchases are accepted meanwhile');
    await context.until('the outage is over', () => performance.now() - stoppedMs > OUTAGE_MS);
    expectAtLeast(await pendingCountOf(stack, saleId), 1, 'batches that wait');
    mysql.kill('SIGCONT');
    context.faultEnded();
    await load.stop();

    await context.expectFigures(saleId, { failedRows: 0 }, 'nothing failed', HEAL_MS);
    await expectNothingLost(context, buyers);
  },
};

export const MYSQL_SCENARIOS: readonly Scenario[] = [STALLED];
