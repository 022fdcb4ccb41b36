import { expect } from 'chai';
import { WATCHED_STATES, type AgedState, type OverdueRepository } from '../../../src/core/waiting-states.js';
import { watchOverdue } from '../../../src/recovery/watch-overdue.js';
import { KeeperWorld } from '../orders/keeper-world.js';

const DEADLINES = {
  batch_pending: 60_000,
  outbox: 1,
  dead_letter: 2,
  refund: 3,
  payment_open: 6,
  payment_case: 0,
  compensation: 4,
  sale_over: 5,
  sale_kept: 6,
  sale_unarchived: 7,
} as const;

/** watch-sales-in-repair and finish-transfers publish the other states. */
const STATES = WATCHED_STATES.filter((state) => state !== 'sale_locked' && state !== 'units_in_transfer');

describe('keeper: watch-overdue', () => {
  let world: KeeperWorld;
  let asked: [AgedState, number][];
  let repository: OverdueRepository;
  beforeEach(() => {
    world = new KeeperWorld();
    asked = [];
    repository = {
      overdue: async (state, afterMs) => {
        asked.push([state, afterMs]);
        return { count: 7, oldestMs: 700 };
      },
    };
  });
  const run = (): Promise<unknown> => {
    const { mysql: sales, store, transitions, metrics } = world;
    return watchOverdue({ sales, store, transitions, metrics, repository }, DEADLINES).runOnce();
  };

  it('publishes every waiting state against its own deadline', async () => {
    const sale = await world.openSale();
    const other = await world.openSale();
    const recorded = await world.deducted(sale, ['u1', 'u2']);
    await world.recorded(recorded); // unpaid for 900 s
    world.clock.advance(10_000);
    await world.deducted(other, ['u3']);
    world.clock.advance(895_000);
    await world.deducted(other, ['u4']);
    expect(await run()).to.equal(undefined);
    expect(Object.keys(world.overdue)).to.have.members(STATES);
    expect(world.overdue.batch_pending, 'all sales together').to.deep.equal([2, 845_000]);
    expect(world.overdue.pending_payment).to.deep.equal([2, 5000]);
    expect(world.overdue.refund).to.deep.equal([7, 700]);
    expect(asked).to.have.deep.members([
      ['outbox', 1] as const,
      ['dead_letter', 2] as const,
      ['refund', 3] as const,
      ['payment_open', 6] as const,
      ['payment_case', 0] as const,
      ['compensation', 4] as const,
      ['sale_over', 5] as const,
      ['sale_kept', 6] as const,
      ['sale_unarchived', 7] as const,
    ]);
  });

  it('reports nothing overdue at rest', async () => {
    repository = { overdue: async () => ({ count: 0, oldestMs: 0 }) };
    expect(await run()).to.equal('idle');
    for (const state of STATES) expect(world.overdue[state], state).to.deep.equal([0, 0]);
  });

  it('hides only the figures of a store that is away, and fails the run', async () => {
    world.transitions.breakNext('overdue_fails');
    const error = await run().then(
      () => null,
      (caught: Error) => caught.name,
    );
    expect(error).to.equal('OperationalError');
    expect(Object.keys(world.overdue)).to.have.members(STATES.filter((state) => state !== 'pending_payment'));
  });

  it('hides only the batches of a silent Redis server, and fails the run', async () => {
    const [one, two] = [await world.openSale(), await world.openSale()];
    for (const sale of [one, two]) await world.deducted(sale, ['u1']);
    world.clock.advance(DEADLINES.batch_pending + 1_000);
    world.store.cutOff.add(two.saleId);
    expect(await run().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(world.overdue.batch_pending).to.deep.equal([1, 1_000]);
    expect(Object.keys(world.overdue)).to.have.members(STATES);
  });
});
