import { expect } from 'chai';
import type { Row, RowChange } from '../../../../src/mysql/follow-binlog.js';
import { judge } from '../../../../src/operate/witness/judge.js';

const ORDER: Row = {
  id: '431234567890123456',
  sale_id: 7,
  user_id: 'ann',
  request_id: 'k',
  batch_id: 'b',
  quantity: 2,
  amount_cents: 200,
  state: 'pending_payment',
  after_paid: null,
  refunded_cents: null,
  created_at: '2026-11-28 10:00:00.000',
  paid_at: null,
};
const ID = String(ORDER.id);
const PAID: Row = { ...ORDER, state: 'paid', paid_at: '2026-11-28 10:01:00.000' };

const sold = (before: number, after: number): RowChange => ({
  table: 'sales',
  before: { id: 7, sold: before },
  after: { id: 7, sold: after },
});
const outbox = (kind: string, payload: unknown): RowChange => ({
  table: 'outbox',
  before: null,
  after: { id: 1, kind, payload: JSON.stringify(payload), done_at: null },
});
const moved = outbox('orders_moved', { move: 'x', orders: [ID] });
const recorded = outbox('batch_recorded', { orders: [ID], failed: [] });
const released = outbox('release', [{ orderId: ID }]);
const order = (before: Row | null, after: Row | null, table: RowChange['table'] = 'orders'): RowChange => ({
  table,
  before,
  after,
});
const payment: RowChange = { table: 'payments', before: null, after: { payment_id: 'p', order_id: ID } };
const refund: RowChange = { table: 'order_refunds', before: null, after: { id: 1, order_id: ID } };
const to = (state: string, more: Row = {}): Row => ({ ...PAID, after_paid: state, ...more });

describe('judge', () => {
  const kinds = (...changes: readonly RowChange[]): string[] => judge(changes).map(({ kind }) => kind);

  it('accepts what programs do', () => {
    const cancelled = { ...ORDER, state: 'cancelled' };
    const failed = { ...ORDER, state: 'failed', reason: 'oversold_guard', expires_at: null };
    const transactions: Readonly<Record<string, readonly RowChange[]>> = {
      bought: [order(null, ORDER), recorded, sold(0, 2)],
      'refused by the last guard': [order(null, ORDER), order(ORDER, failed), recorded],
      paid: [payment, order(ORDER, PAID), moved],
      'paid with a coupon': [payment, order(ORDER, { ...PAID, amount_cents: 150 }), moved],
      cancelled: [order(ORDER, cancelled), moved, released, sold(2, 0)],
      'refunded and disputed at once': [
        refund,
        order(to('refunding'), to('refunded', { refunded_cents: 1 })),
        moved,
        order(to('refunded', { refunded_cents: 1 }), to('disputed', { refunded_cents: 1 })),
        moved,
      ],
      returned: [
        refund,
        order(to('refunding'), { ...to('returned', { refunded_cents: 200 }), state: 'cancelled' }),
        moved,
        released,
        sold(2, 0),
      ],
      archived: [order(null, PAID, 'orders_archive'), order(PAID, null)],
      'buyer erased': [order(PAID, { ...PAID, user_id: 'erased-x' })],
    };
    for (const [title, changes] of Object.entries(transactions)) expect(judge(changes), title).to.deep.equal([]);
  });

  it('needs an outbox row for each move of a transaction', () => {
    const disputed = to('disputed');
    expect(kinds(order(PAID, disputed), moved, order(disputed, PAID))).to.deep.equal(['order_without_outbox']);
  });

  it('reports an order that changed on its way to the archive', () => {
    const cheaper = { ...PAID, amount_cents: 1 };
    expect(kinds(order(null, cheaper, 'orders_archive'), order(PAID, null))).to.deep.equal(['row_changed']);
  });

  it('reports a refunded sum without a refund, and units that do not go back', () => {
    expect(kinds(order(PAID, { ...PAID, refunded_cents: 5 }))).to.deep.equal(['paid_without_payment']);
    expect(kinds(order(ORDER, { ...ORDER, state: 'expired' }), moved, sold(2, 0))).to.deep.equal([
      'order_without_outbox',
    ]);
  });

  it('accepts that a program corrects `sold` while it closes a finding of the sale, and nothing else', () => {
    const closes = (saleId: number): RowChange => {
      const row = { id: 1, sale_id: saleId, state: 'open' };
      return { table: 'witness_findings', before: row, after: { ...row, state: 'closed' } };
    };
    expect(kinds(sold(3, 2), closes(7))).to.deep.equal([]);
    expect(kinds(sold(3, 2), closes(8))).to.deep.equal(['sold_differs']);
    expect(kinds(order(ORDER, null), closes(7))).to.deep.equal(['row_deleted', 'sold_differs']);
  });

  it('shows 20 rows of a kind and counts the rest', () => {
    const many = Array.from({ length: 25 }, (_, id) => order({ ...PAID, id }, { ...PAID, id, amount_cents: 1 }));
    const found = judge(many);
    expect(found).to.have.length(20);
    expect(found[0]).to.deep.include({ subject: 'orders:0', orderId: '0', saleId: '7' });
    expect(found[19]?.detail).to.equal('orders:19: changed: amount_cents (and 5 more)');
  });

  it('reports an outbox row whose text was damaged, and continues', () => {
    const row = { id: 1, kind: 'release', payload: '{', done_at: null };
    const changes: RowChange[] = [{ table: 'outbox', before: row, after: { ...row, payload: 'x' } }];
    expect(judge([...changes, { table: 'outbox', before: row, after: null }])).to.deep.equal([
      { kind: 'row_changed', subject: 'outbox:1', orderId: null, saleId: null, detail: 'outbox:1: changed: payload' },
      {
        kind: 'row_deleted',
        subject: 'outbox:1',
        orderId: null,
        saleId: null,
        detail: 'outbox:1: a row of kind release was deleted before it was done',
      },
    ]);
  });
});
