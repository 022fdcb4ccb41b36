import { expect } from 'chai';
import { Buyers } from '../helpers/buyers.js';
import { ask } from '../helpers/http-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../helpers/until.js';

const OUTAGE_MS = 20_000;
const HEAL_MS = 30_000;

describe('database faults: MySQL', () => {
  let api: Program;
  let worker: Program;
  const system = useSystem(async ({ programs }) => {
    const env = { WORKER_INVISIBLE_MS: '10000', MYSQL_QUERY_TIMEOUT_MS: '3000' };
    [api, worker] = await Promise.all([
      programs.start('api', { env: { MYSQL_QUERY_TIMEOUT_MS: '3000' } }),
      programs.start('worker', { env }),
      programs.start('keeper'),
    ]);
  });

  it('D1 stopped for 20 s under load: sales go on, nothing is parked, every row lands within 30 s', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 100_000 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    const load = buyers.startLoad({ parallel: 16, pauseMs: 50, tries: 1 });
    await until('the load is on', () => buyers.opLog.count('ok') > 100, 30_000);

    const mariadb = stack.servers.server('mariadb');
    expect(mariadb.kill('SIGSTOP')).to.equal(true);
    const stoppedMs = performance.now();
    try {
      await until('the worker has noticed', async () => {
        const { text } = await ask(`${worker.probeUrl}/metrics`);
        return /seckill_mysql_breaker\S* [12]/.test(text);
      });
      await until('18 s have passed', () => performance.now() - stoppedMs > OUTAGE_MS - 2000, OUTAGE_MS);
      const okBefore = buyers.opLog.count('ok');
      await until('the outage is over', () => performance.now() - stoppedMs > OUTAGE_MS, OUTAGE_MS);
      expect(buyers.opLog.count('ok'), 'purchases are still accepted').to.be.greaterThan(okBefore);
      expect(await stack.audit.ledger.pendingCount({ saleId, bucket: 0 }), 'batches wait').to.be.greaterThan(0);
    } finally {
      mariadb.kill('SIGCONT');
    }
    await load.stop();

    const figures = await expectInvariants(stack, saleId, buyers.opLog, HEAL_MS);
    expect(figures).to.include({ failedRows: 0 });
    const parked = await stack.mysql.query('SELECT id FROM dead_letters WHERE sale_id = ?', [saleId]);
    expect(parked, 'retries were not used up').to.deep.equal([]);
    await buyers.askAgain();
    const settled = await expectInvariants(stack, saleId, buyers.opLog);
    expect(settled.rows).to.equal(buyers.opLog.count('ok'));
  });
});
