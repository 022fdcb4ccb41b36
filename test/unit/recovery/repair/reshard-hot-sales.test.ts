import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Sale } from '../../../../src/core/sale.js';
import {
  bucketsForHot,
  reshardHotSales,
  type HotReshardPorts,
} from '../../../../src/recovery/repair/reshard-hot-sales.js';
import { reshardSale } from '../../../../src/recovery/repair/reshard-sale.js';
import { MemoryHotSaleStore } from '../../../helpers/memory/memory-hot-sale-store.js';
import { MemoryRepairRepository } from '../../../helpers/memory/memory-repair-repository.js';
import { OPTIONS, RepairWorld } from './repair-world.js';
import { noRecoveryMetrics } from '../../../helpers/no-metrics.js';

const LONG_MS = 3_600_000;
const LIMITS = { perSecond: 100, bucketsMax: 16 };

describe('reshard-hot-sales', () => {
  let world: RepairWorld;
  let hot: MemoryHotSaleStore;
  let sale: Sale;
  let results: string[];
  let masters: number;

  beforeEach(async () => {
    world = new RepairWorld();
    hot = new MemoryHotSaleStore(world.clock);
    sale = await world.openSale({ stock: 10_000 });
    [results, masters] = [[], 3];
  });

  const portsOf = (parts: Partial<HotReshardPorts> = {}): HotReshardPorts => {
    const ports = { ...world.ports(), forgetSnapshot: async () => undefined };
    return {
      hot,
      sales: world.mysql,
      stock: world.store,
      repairs: ports.repairs,
      repository: new MemoryRepairRepository(world.mysql, world.deadLetters),
      masters: () => masters,
      reshard: (saleId, order) => reshardSale(saleId, order, ports, OPTIONS),
      metrics: { ...noRecoveryMetrics, hotSaleResharded: (result) => void results.push(result) },
      log: world.log,
      ...parts,
    };
  };
  /** Reports of two apis. Neither report alone makes the sale hot. */
  const heat = async ({ saleId }: Sale, perSecond = 120): Promise<void> => {
    for (const api of ['a', 'b']) await hot.report(`${api} ${saleId}`, [{ saleId, perSecond: perSecond / 2 }], LONG_MS);
  };
  const run = (parts: Partial<HotReshardPorts> = {}): Promise<unknown> =>
    reshardHotSales(portsOf(parts), LIMITS).runOnce();
  const bucketsOf = ({ saleId }: Sale): number | undefined => world.mysql.saleOf(saleId)?.buckets;
  const audited = () => world.mysql.audited.filter(({ action }) => action === 'sale.reshard_claimed');

  it('gives a hot sale two buckets per master, once, with an audit entry', async () => {
    await run();
    expect(bucketsOf(sale), 'nobody wants it').to.equal(1);
    await heat(sale);
    await run();
    expect(bucketsOf(sale)).to.equal(6);
    expect(results).to.deep.equal(['begun', 'resharded']);
    const before = { buckets: 1 };
    const entry = { actor: 'keeper', action: 'sale.reshard_claimed', subject: `sale:${sale.saleId}`, before };
    expect(audited()).to.deep.equal([{ ...entry, after: { buckets: 6, perSecond: 120 } }]);
    expect(world.mysql.audited.at(-1)).to.deep.include({ actor: 'keeper', action: 'sale.resharded' });
    masters = 9;
    await run();
    expect(bucketsOf(sale), 'not again, though there are more masters now').to.equal(6);
    expect(audited()).to.have.length(1);
  });

  it('splits a hot sale once if several keepers see it at the same time', async () => {
    await heat(sale);
    await Promise.all([run(), run(), run()]);
    expect(bucketsOf(sale)).to.equal(6);
    expect(results).to.deep.equal(['begun', 'resharded']);
  });

  it('counts a failed split and never repeats it', async () => {
    await heat(sale);
    const away = new OperationalError('redis', 'away', { retryable: true });
    const failed = await run({ reshard: () => Promise.reject(away) }).catch((error: unknown) => error);
    expect(failed).to.equal(away);
    await run({ reshard: () => expect.fail('a second try') });
    expect(results).to.deep.equal(['begun', 'failed']);
  });

  it('does not touch a sale that went into repair, and warns an operator', async () => {
    await heat(sale);
    await run({ reshard: async () => ({ outcome: 'in_repair' }) });
    expect(results).to.deep.equal(['begun', 'failed']);
    expect(world.warnings).to.have.length(1);
  });

  it('splits one sale per run, the hottest first', async () => {
    const hotter = await world.openSale({ stock: 10_000 });
    await heat(sale, 200);
    await heat(hotter, 400);
    const job = reshardHotSales(portsOf(), LIMITS);
    await job.runOnce();
    expect([bucketsOf(sale), bucketsOf(hotter)]).to.deep.equal([1, 6]);
    await job.runOnce();
    expect([bucketsOf(sale), bucketsOf(hotter)]).to.deep.equal([6, 6]);
  });

  const LEFT_ALONE: Record<string, () => Promise<unknown> | unknown> = {
    'below the least rate': () => heat(sale, 99),
    'on one Redis server': () => (masters = 1),
    'in repair': () => world.store.restart(),
    'paused in MySQL': () => world.mysql.putSale({ ...sale, state: 'paused' }),
    'paused in Redis': () => world.store.setState(sale, 'paused'),
    'before its opening': () => world.clock.advance(sale.opensAtMs - world.clock.nowMs() - 1),
    'about to close': () => world.clock.advance(sale.closesAtMs - world.clock.nowMs() - 10_000),
    'of another epoch': () => world.mysql.putSale({ ...sale, epoch: 2 }),
    'nearly sold out': () => undefined,
    gone: () => hot.report('a', [{ saleId: '404404', perSecond: 5000 }], LONG_MS),
  };
  for (const [what, happens] of Object.entries(LEFT_ALONE)) {
    it(`does not touch a sale: ${what}`, async () => {
      if (what === 'nearly sold out') sale = await world.openSale({ stock: 1000 });
      if (what !== 'gone') await heat(sale);
      await happens();
      await run();
      expect(bucketsOf(sale)).to.equal(1);
      expect(audited()).to.deep.equal([]);
      expect(results).to.deep.equal([]);
    });
  }

  it('chooses a multiple of the buckets, about two per master, within the limit', () => {
    expect(bucketsForHot(1, 1, 64), 'one server sells no faster').to.equal(null);
    expect(bucketsForHot(1, 3, 64)).to.equal(6);
    expect(bucketsForHot(4, 3, 64)).to.equal(8);
    expect(bucketsForHot(1, 3, 4)).to.equal(4);
    expect(bucketsForHot(3, 5, 8)).to.equal(6);
    expect(bucketsForHot(8, 3, 64), 'it has enough').to.equal(null);
    expect(bucketsForHot(4, 3, 7), 'the limit leaves no multiple').to.equal(null);
    expect(bucketsForHot(1, 100, 64)).to.equal(64);
    expect(bucketsForHot(3, 100, 1000)).to.equal(63);
  });
});
