import { expectAtLeast, expectEqual, expectFields, expectTrue } from '../harness/expect.js';
import { ask } from '../harness/http-client.js';
import type { Row } from '../row.js';

// D: MySQL stalls, dies, forgets.

const OUTAGE_MS = 20_000;
const HEAL_MS = 30_000;
const ENV = { MYSQL_QUERY_TIMEOUT_MS: '3000' };

export const MYSQL_ROWS: readonly Row[] = [
  {
    id: 'D1',
    title: 'MySQL stopped for 20 s under load: sales go on, nothing is parked, every row lands within 30 s',
    ...{ fast: true, alone: true },
    async run(arena) {
      const { stack, random } = arena;
      const [api, worker] = await Promise.all([
        arena.start('api', { env: ENV }),
        arena.start('worker', { env: ENV }),
        arena.start('keeper'),
      ]);
      const { saleId } = await arena.openSale({ stock: 100_000 });
      const buyers = arena.buyers(saleId, [api]);
      const { opLog } = buyers;
      const load = buyers.startLoad({ parallel: 16, pauseMs: random.whole(30, 70), tries: 1 });
      const before = random.whole(100, 300);
      await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);

      const mariadb = stack.servers.server('mariadb');
      expectTrue(mariadb.kill('SIGSTOP'), 'MySQL ran');
      const stoppedMs = performance.now();
      const outFor = (ms: number): boolean => performance.now() - stoppedMs > ms;
      await arena.bite('the worker noticed that MySQL is silent', async () => {
        const { text } = await ask(`${worker.probeUrl}/metrics`);
        return /seckill_mysql_breaker\S* [12]/.test(text);
      });
      await arena.until('18 s have passed', () => outFor(OUTAGE_MS - 2000), OUTAGE_MS);
      const okBefore = opLog.count('ok');
      await arena.until('the outage is over', () => outFor(OUTAGE_MS), OUTAGE_MS);
      expectAtLeast(opLog.count('ok'), okBefore + 1, 'purchases accepted meanwhile');
      const waiting = await stack.audit.store.pendingCount({ saleId, bucket: 0 });
      expectAtLeast(waiting, 1, 'batches that wait');
      mariadb.kill('SIGCONT');
      arena.faultEnded();
      await load.stop();

      expectFields(await arena.rest(saleId, HEAL_MS), { failedRows: 0 }, 'nothing failed');
      const parked = await stack.mysql.query('SELECT id FROM dead_letters WHERE sale_id = ?', [saleId]);
      expectEqual(parked.length, 0, 'letters: retries were not used up');
      await buyers.askAgain();
      const settled = await arena.rest(saleId);
      expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
    },
  },
];
