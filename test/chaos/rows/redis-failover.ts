import { expectFields } from '../harness/expect.js';
import { endOfLog, repaired } from '../harness/lost-writes.js';
import { promote, replicate, startSpareRedis } from '../harness/spare-redis.js';
import { markersOf } from '../harness/stack-hands.js';
import { TcpProxy } from '../harness/tcp-proxy.js';
import type { Row } from '../row.js';

// R7: a replica that had not everything takes over.

const REPLY_TIMEOUT = { REDIS_REPLY_TIMEOUT_MS: '500' };

export const REDIS_FAILOVER_ROWS: readonly Row[] = [
  {
    id: 'R7',
    title:
      'the replica hears nothing any more, then the primary is killed and the replica promoted: shut before a deduct, rebuilt, no unit sold twice',
    ...{ fast: false, alone: true },
    mayFail: ['units_lost'],
    async run(arena) {
      const { stack, random } = arena;
      const [{ proxy, env }, spare] = [await arena.proxy('redis'), await startSpareRedis(stack)];
      const atSpare = { ...stack, redis: spare.redis };
      const link = await TcpProxy.open(`${proxy.target.host}:${proxy.target.port}`);
      try {
        const [linkHost = '', linkPort] = link.address.split(':');
        await replicate(spare.redis, linkHost, Number(linkPort));
        const more = { env: { ...REPLY_TIMEOUT, ...env } };
        const [api] = await Promise.all([
          arena.start('api', more),
          arena.start('worker', more),
          arena.start('keeper', more),
        ]);
        const { saleId } = await arena.openSale({ stock: 1200 });
        const buyers = arena.buyers(saleId, [api]);
        const { opLog } = buyers;
        const load = buyers.startLoad({ parallel: 16, pauseMs: random.whole(10, 30), tries: 1 });
        const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
        const before = random.whole(100, 300);
        await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
        link.fallSilent();
        await arena.until('more is sold', () => opLog.count('ok') > before + 200, 30_000);
        const sql = 'SELECT DISTINCT batch_id FROM orders WHERE sale_id = ?';
        const recorded = await stack.mysql.query<{ batch_id: string }>(sql, [saleId]);

        const primary = stack.servers.server('redis');
        await primary.stop({ signal: 'SIGKILL' });
        await link.close();
        await promote(spare.redis);
        proxy.target = spare;
        await arena.bite('the new primary misses markers of recorded batches', async () => {
          const markers = await markersOf(atSpare, saleId);
          return recorded.some(({ batch_id: batchId }) => !markers.has(batchId));
        });
        arena.faultEnded(atSpare);
        await repaired(atSpare, saleId);
        const soldOut = async (): Promise<boolean> => (await spare.redis.redis.get(`sk:{${saleId}:0}:stock`)) === '0';
        await arena.until('the same programs sell it out', soldOut, 40_000);

        await primary.start(); // as a replica, so that what checks the books finds them there
        await primary.waitReady();
        await arena.until('it is connected', () => stack.redis.redis.status === 'ready');
        await endOfLog(stack);
        await replicate(stack.redis, spare.host, spare.port);
        await Promise.all([load.stop(), watched.stop()]);
        await buyers.askAgain();
        expectFields(await arena.rest(saleId), { sold: 1200, unitsLeft: 0, oversold: 0 }, 'sold to the unit');
        await arena.programs.close(); // who writes goes first
      } finally {
        await promote(stack.redis).catch(() => undefined); // one that is away is started again after the row
        await link.close();
        await spare.stop();
      }
    },
  },
];
