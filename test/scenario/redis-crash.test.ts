import { expect } from 'chai';
import { Buyers } from '../helpers/buyers.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../helpers/until.js';

describe('Redis', () => {
  let api: Program;
  const system = useSystem(async ({ programs }) => {
    const redis = { REDIS_REPLY_TIMEOUT_MS: '500' };
    const env = { ...redis, WORKER_INVISIBLE_MS: '10000', MYSQL_QUERY_TIMEOUT_MS: '5000' };
    [api] = await Promise.all([
      programs.start('api', { env: redis }),
      programs.start('worker', { env }),
      programs.start('keeper', { env: redis }),
    ]);
  });

  it('R1 kill -9 under load and a restart with its log: nothing is lost, the same programs go on', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 100_000 });
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => [api.url]);
    const load = buyers.startLoad({ parallel: 32, pauseMs: 20, tries: 1 });
    await until('the load is on', () => buyers.opLog.count('ok') > 500, 30_000);
    const runId = async (): Promise<string> => /run_id:(\w+)/.exec(await stack.redis.redis.info('server'))?.[1] ?? '';
    const runIdBefore = await runId();

    const server = stack.servers.server('redis');
    await server.stop({ signal: 'SIGKILL' });
    expect(server.pid(), 'it is gone').to.equal(null);
    const refusedBefore = buyers.opLog.count('fail');
    await until('buyers are refused at once', () => buyers.opLog.count('fail') > refusedBefore + 50);
    await server.start();
    await server.waitReady();
    await until('we are connected again', async () => (await runId()) !== runIdBefore);

    const okBefore = buyers.opLog.count('ok');
    await until('the same programs sell again', () => buyers.opLog.count('ok') > okBefore + 300, 20_000);
    await load.stop();
    expect(programs.running.map(({ name }) => name)).to.deep.equal(['api', 'worker', 'keeper']);
    const figures = await expectInvariants(stack, saleId, buyers.opLog);
    expect(figures).to.include({ failedRows: 0 });
    await buyers.askAgain();
    const settled = await expectInvariants(stack, saleId, buyers.opLog);
    expect(settled.rows).to.equal(buyers.opLog.count('ok'));
  });
});
