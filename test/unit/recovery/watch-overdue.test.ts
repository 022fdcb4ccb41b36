import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { WATCHED_STATES, type AgedState, type OverdueRepository } from '../../../src/core/waiting-states.js';
import { watchOverdue } from '../../../src/recovery/watch-overdue.js';
import { KeeperWorld } from '../orders/keeper-world.js';

const DEADLINES = {
  pending_payment: 8,
  outbox: 1,
  dead_letter: 2,
  refund: 3,
  payment_open: 6,
  payment_case: 0,
  compensation: 4,
  sale_over: 5,
  sale_kept: 6,
  sale_unarchived: 7,
  webhook_paused: 0,
} as const;

/** watch-pending, watch-sales-in-repair and finish-transfers publish the other states. */
const STATES = WATCHED_STATES.filter((state) => !['batch_pending', 'sale_locked', 'units_in_transfer'].includes(state));

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
    return watchOverdue({ metrics: world.metrics, repository }, DEADLINES).runOnce();
  };

  it('publishes every waiting state against its own deadline', async () => {
    await run();
    expect(Object.keys(world.overdue)).to.have.members(STATES);
    expect(world.overdue.refund).to.deep.equal([7, 700]);
    expect(asked).to.have.deep.members([
      ['pending_payment', 8] as const,
      ['outbox', 1] as const,
      ['dead_letter', 2] as const,
      ['refund', 3] as const,
      ['payment_open', 6] as const,
      ['payment_case', 0] as const,
      ['compensation', 4] as const,
      ['sale_over', 5] as const,
      ['sale_kept', 6] as const,
      ['sale_unarchived', 7] as const,
      ['webhook_paused', 0] as const,
    ]);
  });

  it('reports no overdue case for a system at rest', async () => {
    repository = { overdue: async () => ({ count: 0, oldestMs: 0 }) };
    await run();
    for (const state of STATES) expect(world.overdue[state], state).to.deep.equal([0, 0]);
  });

  it('hides only the figures of a store that is down, and fails the run', async () => {
    const away = new OperationalError('mysql', 'gone', { retryable: true });
    const { overdue } = repository;
    repository = {
      overdue: (state, afterMs) => (state === 'pending_payment' ? Promise.reject(away) : overdue(state, afterMs)),
    };
    expect(await run().catch((error: unknown) => error)).to.equal(away);
    expect(Object.keys(world.overdue)).to.have.members(STATES.filter((state) => state !== 'pending_payment'));
  });
});
