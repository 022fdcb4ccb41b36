import { expect } from 'chai';
import type { Order } from '../../../src/core/order.js';
import { cancelOrder, payOrder, type PayAnswer } from '../../../src/orders/buyer-orders.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { PaymentProvider } from '../../../src/core/ports/payment-provider.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../../helpers/memory/memory-repositories.js';
import { MemoryOrderTransitions } from '../../helpers/memory/memory-order-transitions.js';
import { batchOf, purchaseOf, saleOf } from '../../helpers/sales.js';

const WINDOW_MS = 900_000;

describe('pay and cancel', () => {
  let clock: ManualClock;
  let mysql: MemoryRepositories;
  let moves: MemoryOrderTransitions;
  let order: Order;
  /** Order and key of every charge. */
  let charged: string[];
  /** What happens while the money is on its way. */
  let meanwhile: () => unknown;

  const simulator = createPaymentSimulator();
  const provider: PaymentProvider = {
    ...simulator,
    async charge(orderId, amountCents, key) {
      charged.push(`${orderId} ${key}`);
      await meanwhile();
      return simulator.charge(orderId, amountCents, key);
    },
  };

  beforeEach(async () => {
    clock = new ManualClock();
    mysql = new MemoryRepositories({ clock });
    moves = new MemoryOrderTransitions(mysql);
    charged = [];
    meanwhile = () => undefined;
    const sale = saleOf({}, clock.nowMs());
    mysql.putSale(sale);
    const row = { orderId: '99', batch: batchOf(sale, [purchaseOf('ann*2')]), purchase: purchaseOf('ann*2') };
    const terms = await mysql.termsOf([sale.saleId]);
    const plan = { terms, orders: [{ ...row, failure: null }], releases: [], oneByOne: new Set<string>() };
    await mysql.write({ ...plan, paymentWindowMs: WINDOW_MS });
    order = (await mysql.findOrder('99')) as Order;
  });

  const pay = (key: string | null = null, userId = 'ann', by: PaymentProvider | null = provider): Promise<PayAnswer> =>
    payOrder({ orderId: '99', userId, key }, { repository: mysql, moves, provider: by, log: silentLog });
  const cancel = (userId = 'ann') => cancelOrder('99', userId, { repository: mysql, moves });
  const refunds = (): (string | null)[] => [...moves.payments.values()].map(({ refund }) => refund);

  it('paid: the answer carries the paid order, and a second call charges nothing', async () => {
    const first = await pay();
    expect(first).to.deep.equal({ outcome: 'paid', order: { ...order, state: 'paid', paidAtMs: clock.nowMs() } });
    clock.advance(1000);
    expect(await pay('another-key')).to.deep.equal(first);
    expect(charged).to.have.length(1);
    expect(refunds()).to.deep.equal([null]);
  });

  it('two clicks at once without a key are one payment', async () => {
    const same = await Promise.all([pay(), pay()]);
    expect(same.map(({ outcome }) => outcome)).to.deep.equal(['paid', 'paid']);
    expect(refunds()).to.deep.equal([null]);
  });

  it('two keys at once: the order is paid, both are answered paid, and the second payment is owed back', async () => {
    const both = await Promise.all([pay('one'), pay('two')]);
    expect(both.map(({ outcome }) => outcome)).to.deep.equal(['paid', 'paid']);
    expect(refunds()).to.have.members([null, 'already_paid']);
  });

  it('an order of another buyer is not found, and nothing is charged', async () => {
    expect(await pay(null, 'bob')).to.deep.equal({ outcome: 'not_found' });
    expect(await cancel('bob')).to.deep.equal({ outcome: 'not_found' });
    expect(charged).to.deep.equal([]);
    expect((await mysql.findOrder('99'))?.state).to.equal('pending_payment');
  });

  it('declined: the order waits, another key may try again', async () => {
    expect(await pay('decline-1')).to.deep.equal({ outcome: 'declined' });
    expect((await mysql.findOrder('99'))?.state).to.equal('pending_payment');
    expect((await pay('k2')).outcome).to.equal('paid');
  });

  it('no answer of the provider is no answer to the buyer', async () => {
    expect(await pay('unknown-1')).to.deep.equal({ outcome: 'outcome_unknown' });
    expect(moves.payments.size).to.equal(0);
  });

  for (const fault of ['pay_fails', 'pay_reply_lost'] as const) {
    it(`${fault} after the charge: unknown, and the same key records the same payment once`, async () => {
      moves.breakNext(fault);
      expect(await pay()).to.deep.equal({ outcome: 'outcome_unknown' });
      expect((await pay()).outcome).to.equal('paid');
      expect(refunds()).to.deep.equal([null]);
    });
  }

  it('an order that has ended is not charged', async () => {
    expect((await cancel()).outcome).to.equal('cancelled');
    const answer = await pay();
    expect(answer).to.deep.include({ outcome: 'wrong_state' });
    expect(charged).to.deep.equal([]);
  });

  it('the order ends during the payment: the money is owed back, and the answer is refund_due', async () => {
    meanwhile = () => moves.cancel('99');
    const answer = await pay();
    expect(answer).to.deep.equal({ outcome: 'refund_due', order: { ...order, state: 'cancelled' } });
    expect(refunds()).to.deep.equal(['order_cancelled']);
  });

  it('the deadline has passed and the order was not ended yet: it is paid', async () => {
    meanwhile = () => clock.advance(WINDOW_MS + 1);
    expect((await pay()).outcome).to.equal('paid');
  });

  it('without a provider nothing is charged', async () => {
    expect(await pay(null, 'ann', null)).to.deep.equal({ outcome: 'payment_not_configured' });
  });

  it('money that cannot be recorded is outcome_unknown and logged, never answered as paid', async () => {
    const errors: string[] = [];
    const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) };
    const stuck = { pay: () => Promise.resolve('payment_conflict' as const) };
    const request = { orderId: '99', userId: 'ann', key: null };
    const answer = await payOrder(request, { repository: mysql, moves: stuck, provider, log });
    expect(answer).to.deep.equal({ outcome: 'outcome_unknown' });
    expect(errors).to.have.length(1);
  });

  it('cancelled: the answer carries the order, also the second time; a paid order stays paid', async () => {
    const first = await cancel();
    expect(first).to.deep.equal({ outcome: 'cancelled', order: { ...order, state: 'cancelled' } });
    expect(await cancel()).to.deep.equal(first);
  });

  it('a paid order is not cancelled', async () => {
    await pay();
    expect(await cancel()).to.deep.include({ outcome: 'wrong_state' });
    expect((await mysql.findOrder('99'))?.state).to.equal('paid');
  });
});
