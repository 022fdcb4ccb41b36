import { expect } from 'chai';
import { judgeFailures, judgeHistory, type ClientHistory, type SeenStatus } from '../../invariants/check-history.js';
import type { AuditedOrder } from '../../../src/core/ports/reconcile-repository.js';

const orderOf = (parts: Partial<AuditedOrder> = {}): AuditedOrder => ({
  orderId: '1',
  userId: 'ann',
  requestId: 'k1',
  batchId: 'b',
  quantity: 1,
  state: 'pending_payment',
  reason: null,
  ...parts,
});
const stateOf = (orders: readonly AuditedOrder[], unitsLeft = 0) => ({
  rows: new Map(orders.map((order) => [`${order.userId}/${order.requestId}`, order])),
  unitsLeft,
});
const historyOf = (parts: Partial<ClientHistory>): ClientHistory => ({
  moves: new Map(),
  statuses: new Map(),
  soldOut: new Map(),
  ...parts,
});
const seenAs = (status: SeenStatus['status'], orderId: string | null = null): SeenStatus => ({ status, orderId });
const invariants = (history: Partial<ClientHistory>, orders: readonly AuditedOrder[], unitsLeft = 0): string[] =>
  judgeHistory(historyOf(history), stateOf(orders, unitsLeft)).map(({ invariant }) => invariant);

describe('check-history', () => {
  it('finds an order without its confirmed payment or cancellation, or with both [I6]', () => {
    const paid = { moves: new Map([['1', new Set(['pay'] as const)]]) };
    expect(invariants(paid, [orderOf({ state: 'paid' })])).to.deep.equal([]);
    expect(invariants(paid, [orderOf()])).to.deep.equal(['I6']);
    const cancelled = { moves: new Map([['1', new Set(['cancel'] as const)]]) };
    expect(invariants(cancelled, [orderOf({ state: 'cancelled' })])).to.deep.equal([]);
    expect(invariants(cancelled, [orderOf({ state: 'expired' })])).to.deep.equal(['I6']);
    const both = { moves: new Map([['1', new Set(['pay', 'cancel'] as const)]]) };
    expect(invariants(both, [orderOf({ state: 'paid' })])).to.deep.equal(['I6', 'I6']);
  });

  it('accepts sold_out if no unit is left or units came back later [I7]', () => {
    const refused = { soldOut: new Map([['bob/k1', 2]]) };
    expect(invariants(refused, [orderOf()], 0)).to.deep.equal([]);
    expect(invariants(refused, [orderOf()], 1), 'fewer units than requested').to.deep.equal([]);
    expect(invariants(refused, [orderOf()], 2)).to.deep.equal(['I7']);
    expect(invariants(refused, [orderOf({ state: 'cancelled' })], 2), 'one unit came back').to.deep.equal([]);
  });

  it('finds a final status that changed later or differs from MySQL [I8]', () => {
    const seen = (...statuses: SeenStatus[]) => ({ statuses: new Map([['ann/k1', statuses]]) });
    const row = orderOf();
    expect(invariants(seen(seenAs('absent'), seenAs('pending'), seenAs('ordered', '1')), [row])).to.deep.equal([]);
    expect(invariants(seen(seenAs('pending')), [row]), 'not over').to.deep.equal([]);
    for (const after of [seenAs('pending'), seenAs('absent'), seenAs('ordered', '2')]) {
      const [first, second] = invariants(seen(seenAs('ordered', '1'), after, seenAs('ordered', '1')), [row]);
      expect([first, second], JSON.stringify(after)).to.deep.equal(
        after.orderId === '2' ? ['I8', 'I8'] : ['I8', undefined],
      );
    }
    expect(invariants(seen(seenAs('ordered', '9')), [row]), 'another order').to.deep.equal(['I8']);
    expect(invariants(seen(seenAs('failed')), [row]), 'an order after all').to.deep.equal(['I8']);
    const failed = orderOf({ state: 'failed', reason: 'discarded' });
    expect(invariants(seen(seenAs('pending'), seenAs('failed')), [failed])).to.deep.equal([]);
  });

  it('finds an accepted purchase that failed although no fault explains it [I3]', () => {
    const { rows } = stateOf([orderOf({ state: 'failed', reason: 'oversold_guard' })]);
    const judged = (accepted: boolean, mayFail: readonly 'oversold_guard'[]): string[] =>
      judgeFailures(rows, () => accepted, mayFail).map(({ invariant }) => invariant);
    expect(judged(true, [])).to.deep.equal(['I3']);
    expect(judged(true, ['oversold_guard'])).to.deep.equal([]);
    expect(judged(false, []), 'it was never accepted').to.deep.equal([]);
  });
});
