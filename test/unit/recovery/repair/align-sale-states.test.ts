import { expect } from 'chai';
import type { Sale } from '../../../../src/core/sale.js';
import { alignSaleStates } from '../../../../src/recovery/repair/align-sale-states.js';
import { RepairWorld } from './repair-world.js';

describe('align-sale-states', () => {
  let world: RepairWorld;
  beforeEach(() => (world = new RepairWorld()));

  const job = () => alignSaleStates({ store: world.ports().store, sales: world.mysql });
  const stateOf = ({ saleId }: Sale): string | undefined => world.store.bucket({ saleId, bucket: 0 }).sale?.state;

  it('a sale that is closed in MySQL only is closed in Redis once that was seen twice', async () => {
    const [closed, open] = [await world.openSale(), await world.openSale()];
    world.mysql.putSale({ ...closed, state: 'closed' });
    const align = job();
    await align.runOnce();
    expect(stateOf(closed), 'its owner may be about to say so').to.equal('open');
    await align.runOnce();
    expect([stateOf(closed), stateOf(open)]).to.deep.equal(['closed', 'open']);
  });

  it('a difference that has ended or changed is not acted on', async () => {
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

  it('a sale that waits for a repair is left to it', async () => {
    const sale = await world.openSale();
    world.mysql.putSale({ ...sale, state: 'paused' });
    world.store.restart();
    const align = job();
    await align.runOnce();
    await align.runOnce();
    expect(stateOf(sale)).to.equal('open');
  });
});
