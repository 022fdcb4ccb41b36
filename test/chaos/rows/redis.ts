import { expectEqual, expectFields } from '../harness/expect.js';
import type { Row } from '../row.js';

// R: Redis dies, forgets, falls silent.

const REPLY_TIMEOUT = { REDIS_REPLY_TIMEOUT_MS: '500' };

export const REDIS_ROWS: readonly Row[] = [
  {
    id: 'R1',
    title: 'kill -9 of Redis under load and a restart with its log: nothing is lost, the same programs go on',
    ...{ fast: true, alone: true },
    async run(arena) {
      const { stack, programs, random } = arena;
      const [api] = await Promise.all([
        arena.start('api', { env: REPLY_TIMEOUT }),
        arena.start('worker', { env: REPLY_TIMEOUT }),
        arena.start('keeper', { env: REPLY_TIMEOUT }),
      ]);
      const { saleId } = await arena.openSale({ stock: 100_000 });
      const buyers = arena.buyers(saleId, [api]);
      const { opLog } = buyers;
      const load = buyers.startLoad({ parallel: 32, pauseMs: random.whole(10, 30), tries: 1 });
      const watched = buyers.watch(['load-0', 'load-1', 'load-2']);
      const before = random.whole(400, 800);
      await arena.until('the load is on', () => opLog.count('ok') > before, 30_000);
      const runId = async (): Promise<string> => /run_id:(\w+)/.exec(await stack.redis.redis.info('server'))?.[1] ?? '';
      const runIdBefore = await runId();

      const server = stack.servers.server('redis');
      await server.stop({ signal: 'SIGKILL' });
      await arena.bite('Redis was killed', () => server.pid() === null);
      const refusedBefore = opLog.count('fail');
      await arena.bite('buyers were refused', () => opLog.count('fail') > refusedBefore + 50);
      await server.start();
      await server.waitReady();
      arena.faultEnded();
      await arena.until('we are connected again', async () => (await runId()) !== runIdBefore);

      const okBefore = opLog.count('ok');
      await arena.until('the same programs sell again', () => opLog.count('ok') > okBefore + 300, 20_000);
      await Promise.all([load.stop(), watched.stop()]);
      expectEqual(
        programs.running.map(({ name }) => name),
        ['api', 'worker', 'keeper'],
        'programs that run',
      );
      expectFields(await arena.rest(saleId), { failedRows: 0 }, 'nothing failed');
      await buyers.askAgain();
      const settled = await arena.rest(saleId);
      expectEqual(settled.rows, opLog.count('ok'), 'rows and buyers who heard yes');
    },
  },
];
