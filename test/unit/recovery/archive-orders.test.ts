import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { OrderArchive } from '../../../src/core/ports/order-archive.js';
import { archiveOrders } from '../../../src/recovery/archive-orders.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

const MINUTE_MS = 60_000;

describe('keeper: archive-orders', () => {
  /** Number of orders of each due sale that are not in the archive. */
  let left: Map<string, number>;
  /** Number of orders of a sale that cannot move. */
  let stuck: Map<string, number>;
  /** Sales that are tried again later, with the pause. */
  let later: [saleId: string, afterMs: number][];
  let faults: Error[];
  let said: string[];
  let moved: number;
  beforeEach(() => {
    [left, stuck, later, faults, said, moved] = [new Map(), new Map(), [], [], [], 0];
  });

  const archive: OrderArchive = {
    due: async () => [...left.keys()].filter((saleId) => !later.some(([other]) => other === saleId)),
    begin: async () => undefined,
    move: async (saleId, from, max) => {
      const fault = faults.shift();
      if (fault !== undefined) throw fault;
      const [all, kept] = [left.get(saleId) ?? 0, stuck.get(saleId) ?? 0];
      const count = Math.min(all - kept, max);
      left.set(saleId, all - count);
      const isLast = count < max;
      return {
        moved: count,
        kept: isLast ? kept : 0,
        next: isLast ? null : (from ?? { afterFirst: '0', readTo: '1' }),
      };
    },
    later: async (...pause) => void later.push(pause),
    finish: async (saleId) => left.delete(saleId),
  };
  const job = (ordersPerRun = 1000) => {
    const log = {
      debug: () => undefined,
      info: () => undefined,
      warn: (_: object, text: string) => void said.push(text),
      error: (_: object, text: string) => void said.push(text),
    };
    const metrics = { ...noRecoveryMetrics, ordersArchived: (orders: number) => void (moved += orders) };
    return archiveOrders({ archive, log, metrics }, { afterMs: 0, ordersPerRun });
  };

  it('moves a limited number of orders per run and continues in the next', async () => {
    left.set('7', 7);
    const archiving = job(3);
    for (const expected of [3, 6, 7]) {
      await archiving.runOnce();
      expect(moved).to.equal(expected);
    }
    expect(left.size).to.equal(0);
  });

  it('retries a sale ten minutes later if an order of it has to stay', async () => {
    left.set('7', 3).set('8', 2);
    stuck.set('7', 1);
    await job().runOnce();
    expect([moved, [...left]]).to.deep.equal([4, [['7', 1]]]);
    expect(later).to.deep.equal([['7', 10 * MINUTE_MS]]);
    expect(said).to.deep.equal(['orders of a retired sale cannot be archived yet']);
  });

  it('retries a sale soon after an outage, and later if the sale cannot move', async () => {
    left.set('7', 2).set('8', 2).set('9', 2);
    faults = [true, false].map((retryable) => new OperationalError('mysql', 'fault of the test', { retryable }));
    const archiving = job();
    for (let run = 0; run < 2; run++) expect(await archiving.runOnce().catch(String)).to.contain('fault of the test');
    await archiving.runOnce();
    expect(later).to.deep.equal([
      ['7', MINUTE_MS / 6],
      ['8', 10 * MINUTE_MS],
    ]);
    expect(said).to.deep.equal(['could not archive the orders of a sale']);
    expect([...left.keys()], 'the other is not held up').to.deep.equal(['7', '8']);
  });
});
