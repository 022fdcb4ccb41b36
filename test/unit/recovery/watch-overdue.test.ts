import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { WATCHED_STATES, type Overdue, type OverdueRepository } from '../../../src/core/waiting-states.js';
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
  beforeEach(() => {
    world = new KeeperWorld();
  });
  const run = (overdue: (afterMs: unknown) => Promise<unknown>): Promise<unknown> =>
    watchOverdue({ metrics: world.metrics, repository: { overdue } as OverdueRepository }, DEADLINES).runOnce();
  const inEach = (found: Overdue) => async () => Object.fromEntries(STATES.map((state) => [state, found]));

  it('publishes every waiting state against its own deadline', async () => {
    const asked: unknown[] = [];
    await run((afterMs) => (asked.push(afterMs), inEach({ count: 7, oldestMs: 700 })()));
    expect(asked).to.deep.equal([DEADLINES]);
    expect(Object.keys(world.overdue)).to.have.members(STATES);
    expect(world.overdue.refund).to.deep.equal([7, 700]);
  });

  it('reports nothing overdue at rest', async () => {
    await run(inEach({ count: 0, oldestMs: 0 }));
    for (const state of STATES) expect(world.overdue[state], state).to.deep.equal([0, 0]);
  });

  it('publishes nothing and fails when MySQL is down', async () => {
    const away = new OperationalError('mysql', 'gone', { retryable: true });
    expect(await run(() => Promise.reject(away)).catch((error: unknown) => error)).to.equal(away);
    expect(world.overdue).to.deep.equal({});
  });
});
