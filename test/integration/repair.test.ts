import { expect } from 'chai';
import type { Sale } from '../../src/core/sale.js';
import { silentLog } from '../helpers/silent-log.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { Buyers } from '../chaos/harness/buyers.js';
import { runCommand, type CommandEnd } from '../helpers/command.js';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { recordBatch } from '../chaos/harness/batches.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../chaos/harness/wait.js';

/** The keeper polls often and waits briefly, because no worker runs. */
const TIMES = {
  TEST_OVERRIDES: 'on',
  REPAIR_EVERY_MS: '100',
  REPAIR_QUIET_MS: '400',
  REPAIR_WAIT_MAX_MS: '1500',
  KEEPER_EVERY_MS: '500',
  OUTBOX_EVERY_MS: '100',
};

describe('repair of a sale after Redis lost it', () => {
  let api: Program;
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    [api, keeper] = await Promise.all([programs.start('api'), programs.start('keeper', { env: TIMES })]);
  });

  const buyersOf = ({ saleId }: Sale): Buyers => new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const cli = (...args: string[]): Promise<CommandEnd> =>
    runCommand(['sale', 'repair', ...args], { ...system.stack.env, ...TIMES } as never);
  const standing = ({ saleId }: Sale) =>
    createStockStore(system.stack.redis, silentLog).readSale({ saleId, bucket: 0 });
  /** Deletes every key of the sale, including its markers. */
  async function lose({ saleId }: Sale): Promise<void> {
    const { stock, sale, buyers, requests, pending, tx } = bucketKeys({ saleId, bucket: 0 });
    const { redis } = system.stack.redis;
    const markers = (await redis.zrange(pending, '0', '-1')).map((batchId) => tx + batchId);
    await redis.del(stock, sale, buyers, requests, pending, ...markers);
  }

  it('rebuilds the sale with its orders, and lets older batches reacquire units or fail [R3, R4, R5]', async () => {
    const [roomy, scarce] = [await openSale(system.stack, { stock: 10 }), await openSale(system.stack, { stock: 4 })];
    const [many, few] = [buyersOf(roomy), buyersOf(scarce)];
    for (const { saleId } of [roomy, scarce]) await recordBatch(system.stack, saleId, 3);
    for (const buyers of [many, few]) expect((await buyers.buy('late'))?.status).to.equal(202);

    keeper.signal('SIGSTOP'); // a keeper would repair the sales before the test sees them locked
    await Promise.all([roomy, scarce].map(lose));
    const meanwhile = await many.buy('early');
    expect([meanwhile?.status, meanwhile?.json.retryable], 'locked').to.deep.equal([503, true]);
    expect((await many.status('late')).status, 'a 202 is not denied').to.equal(503);
    keeper.signal('SIGCONT');
    for (const sale of [roomy, scarce]) {
      await until('the keeper has opened it again', async () => (await standing(sale))?.state === 'open');
      expect(await standing(sale)).to.include({ epoch: 2, unitsLeft: sale.stock - 3 });
    }
    expect((await few.buy('quick', { tries: 20 }))?.status, 'the unit of the late one is free').to.equal(202);
    expect((await many.buy('early', { tries: 20 }))?.status).to.equal(202);

    await system.programs.start('worker');
    // Until its message arrives, only the broker knows the purchase.
    await until('the late one is an order', async () => (await many.status('late')).json.status === 'ordered');
    await until('the late one has failed', async () => (await few.status('late')).json.reason === 'units_lost');
    const figures = await expectInvariants(system.stack, roomy.saleId, many.opLog);
    expect(figures).to.include({ sold: 5, rows: 5, unitsLeft: 5, failedRows: 0 });
    const full = await expectInvariants(system.stack, scarce.saleId, few.opLog);
    expect(full).to.include({ sold: 4, rows: 5, unitsLeft: 0, failedRows: 1 });
    const { text } = await ask(`${keeper.operatorsUrl}/metrics`);
    expect(text).to.match(/^seckill_sale_repairs_total\{result="repaired".*\} [1-9]/m);
    expect(text).to.match(/^seckill_sales_in_repair\{sales="live".*\} \d/m);
  });

  it('`sale repair` changes nothing if no repair is needed or one is running, and --force raises the epoch [R10]', async () => {
    const sale = await openSale(system.stack, { stock: 10 });
    for (const buyer of ['ann', 'bob']) expect((await buyersOf(sale).buy(buyer))?.status).to.equal(202);
    const before = await expectInvariants(system.stack, sale.saleId);
    const other = await openSale(system.stack);
    const { lock } = createRepairStore(system.stack.redis);
    await lock({ saleId: other.saleId, bucket: 0 }, 'another', 600_000);
    const [idle, busy] = await Promise.all([cli(sale.saleId), cli(other.saleId)]);
    expect([idle.code, idle.stdout]).to.match(/^0,Sale \d+ needs no repair/);
    expect([busy.code, busy.stderr]).to.match(/^1,seckill: another repair of sale/);
    const forced = await cli(sale.saleId, '--force', '--json');
    expect(forced.code, forced.stderr).to.equal(0);
    expect(forced.lines.map(({ step, outcome }) => step ?? outcome)).to.deep.equal([
      'locked',
      'quiet',
      'epoch',
      'staged',
      'repaired',
    ]);
    expect(await standing(sale)).to.include({ epoch: 2, state: 'open' });
    expect(await expectInvariants(system.stack, sale.saleId)).to.deep.equal(before);
    await lock({ saleId: other.saleId, bucket: 0 }, 'another', 1); // takes the lease of a repair that died
    await until('the keeper finishes an abandoned repair', async () => (await standing(other))?.state === 'open');
  });
});
