import { expect } from 'chai';
import type { Sale, SaleState } from '../../../../src/core/sale.js';
import { alignSaleStates } from '../../../../src/recovery/repair/align-sale-states.js';
import { replacing } from '../../../helpers/replacing.js';
import { RepairWorld } from './repair-world.js';

describe('align-sale-states', () => {
  let world: RepairWorld;
  beforeEach(() => (world = new RepairWorld()));

  const job = () => alignSaleStates(world.ports());
  const stateOf = ({ saleId }: Sale): string | undefined => world.store.bucket({ saleId, bucket: 0 }).sale?.state;

  it('closes a sale in Redis once it was seen twice as closed only in MySQL', async () => {
    const [closed, open] = [await world.openSale(), await world.openSale()];
    world.mysql.putSale({ ...closed, state: 'closed' });
    const align = job();
    await align.runOnce();
    expect(stateOf(closed), 'its owner may be about to say so').to.equal('open');
    await align.runOnce();
    expect([stateOf(closed), stateOf(open)]).to.deep.equal(['closed', 'open']);
  });

  it('ignores a difference that has ended or changed', async () => {
    const sale = await world.openSale();
    const align = job();
    world.mysql.putSale({ ...sale, state: 'paused' });
    await align.runOnce();
    world.mysql.putSale({ ...sale, state: 'open' });
    await align.runOnce();
    world.mysql.putSale({ ...sale, state: 'paused' });
    await align.runOnce();
    expect(stateOf(sale)).to.equal('open');
    await align.runOnce();
    expect(stateOf(sale)).to.equal('paused');
  });

  it('leaves a sale that waits for a repair to that repair', async () => {
    const sale = await world.openSale();
    world.mysql.putSale({ ...sale, state: 'paused' });
    world.store.restart();
    const align = job();
    await align.runOnce();
    await align.runOnce();
    expect(stateOf(sale)).to.equal('open');
  });

  it('skips only the sales of a silent Redis server, and fails the run at its end', async () => {
    const [lost, sale] = [await world.openSale(), await world.openSale()];
    for (const each of [lost, sale]) world.mysql.putSale({ ...each, state: 'paused' });
    world.store.cutOff.add(lost.saleId);
    const align = job();
    for (let runs = 0; runs < 2; runs++) {
      expect(await align.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    }
    expect([stateOf(lost), stateOf(sale)]).to.deep.equal(['open', 'paused']);
  });

  let written: SaleState[];
  beforeEach(() => (written = []));
  /** Runs `move` when the job is about to set a state in Redis. */
  const whileAligned = (move: (sale: Sale) => Promise<void>, when: 'listed' | 'read') => {
    const ports = world.ports();
    let lists = 0;
    const list: typeof world.mysql.list = async (filter) => {
      const sales = await world.mysql.list(filter);
      const [sale] = sales;
      if (when === 'listed' && sale && filter.states?.includes('open') && ++lists === 2) await move(sale);
      return sales;
    };
    const setState: typeof ports.setState = async (sale, state) => {
      written.push(state);
      if (when === 'read') await move(sale as Sale);
      return ports.setState(sale, state);
    };
    return alignSaleStates({ ...ports, setState, sales: replacing(world.mysql, { list }) });
  };
  const paused = async (sale: Sale): Promise<void> => {
    world.mysql.putSale({ ...sale, state: 'paused' });
    await world.store.setState(sale, 'paused');
  };

  for (const when of ['listed', 'read'] as const) {
    it(`does not leave a sale open that its owner pauses after its row was ${when}`, async () => {
      const sale = await world.openSale();
      await world.store.setState(sale, 'paused'); // its owner died before the write to Redis
      const align = whileAligned(paused, when);
      await align.runOnce();
      await align.runOnce();
      expect(stateOf(sale)).to.equal('paused');
      expect(written, 'the old row is not believed').to.deep.equal(when === 'listed' ? [] : ['open', 'paused']);
    });
  }
});
