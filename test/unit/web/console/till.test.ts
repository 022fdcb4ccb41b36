import { expect } from 'chai';
import type { FoundOrder, VoidStep } from '../../../../web/console/api/types.js';
import { actionsOnOrder, actionsOnRefund, mayRevoke } from '../../../../web/console/logic/permissions.js';
import { typedAmount } from '../../../../web/console/logic/typed-amount.js';
import { NOTHING_VOIDED, ordersIn, takeVoidSteps, type Voided } from '../../../../web/console/logic/void-steps.js';

describe('rights on orders and refunds', () => {
  const order = (state: FoundOrder['state'], refundedCents = 0) => ({ state, amountCents: 100, refundedCents });

  it('let an operator cancel an unpaid order, and an admin refund the rest of a paid order', () => {
    expect(actionsOnOrder(order('pending_payment'), 'viewer')).to.deep.equal([]);
    expect(actionsOnOrder(order('pending_payment'), 'operator')).to.deep.equal(['cancel']);
    expect(actionsOnOrder(order('paid'), 'operator')).to.deep.equal([]);
    expect(actionsOnOrder(order('paid'), 'admin')).to.deep.equal(['refund']);
    expect(actionsOnOrder(order('refunded', 99), 'admin')).to.deep.equal(['refund']);
    expect(actionsOnOrder(order('refunded', 100), 'admin')).to.deep.equal([]);
    for (const state of ['refunding', 'returned', 'disputed', 'expired', 'cancelled', 'failed'] as const) {
      expect(actionsOnOrder(order(state), 'admin'), state).to.deep.equal([]);
    }
  });

  it('let an admin claim a due refund, and also retry a failed refund once', () => {
    expect(actionsOnRefund({ state: 'due', followedBy: null }, 'operator')).to.deep.equal([]);
    expect(actionsOnRefund({ state: 'due', followedBy: null }, 'admin')).to.deep.equal(['done']);
    expect(actionsOnRefund({ state: 'failed', followedBy: null }, 'admin')).to.deep.equal(['retry', 'done']);
    expect(actionsOnRefund({ state: 'failed', followedBy: '8' }, 'admin')).to.deep.equal([]);
    expect(actionsOnRefund({ state: 'refunded', followedBy: null }, 'admin')).to.deep.equal([]);
  });

  it('let an admin revoke only a free coupon', () => {
    expect(mayRevoke({ state: 'free' }, 'operator')).to.equal(false);
    expect(mayRevoke({ state: 'free' }, 'admin')).to.equal(true);
    for (const state of ['reserved', 'redeemed', 'expired', 'revoked'] as const) {
      expect(mayRevoke({ state }, 'admin'), state).to.equal(false);
    }
  });
});

describe('a typed amount', () => {
  it('is read in the digits of its currency', () => {
    expect([typedAmount('19.99', 'EUR', 1999), typedAmount('1999', 'JPY', 1999)]).to.deep.equal([1999, 1999]);
    expect(typedAmount('1.999', 'KWD', 1999)).to.equal(1999);
  });

  it('is null for text, an empty field, too many digits and more than is left', () => {
    for (const [text, currency] of [
      ['20', 'EUR'],
      ['0', 'EUR'],
      ['-1', 'EUR'],
      ['1.999', 'EUR'],
      ['1.5', 'JPY'],
      ['', 'EUR'],
      ['ten', 'EUR'],
    ] as const) {
      expect(typedAmount(text, currency, 1999), text).to.equal(null);
    }
  });
});

describe('steps of a void', () => {
  const STEPS: Readonly<Record<string, VoidStep>> = {
    start: { outcome: 'done', cancelled: 500, refunding: 0, refundCents: 0, next: 'unpaid.9-9' },
    'unpaid.9-9': { outcome: 'done', cancelled: 3, refunding: 0, refundCents: 0, next: 'paid.0-0' },
    'paid.0-0': { outcome: 'done', cancelled: 0, refunding: 2, refundCents: 40, next: null },
  };
  const step = async (after: string | null): Promise<VoidStep> => STEPS[after ?? 'start'] as VoidStep;
  const never = (): boolean => false;

  it('run until nothing is left, and are summed up after each step', async () => {
    const seen: Voided[] = [];
    const all = await takeVoidSteps(step, NOTHING_VOIDED, (sum) => seen.push(sum), never);
    expect(all).to.deep.equal({ cancelled: 503, refunding: 2, refundCents: 40, after: null });
    expect(seen.map(ordersIn)).to.deep.equal([500, 503, 505]);
  });

  it('stop after a step, and continue where they stopped', async () => {
    const first = await takeVoidSteps(
      step,
      NOTHING_VOIDED,
      () => undefined,
      () => true,
    );
    expect(first).to.deep.equal({ cancelled: 500, refunding: 0, refundCents: 0, after: 'unpaid.9-9' });
    const all = await takeVoidSteps(step, first, () => undefined, never);
    expect(all).to.deep.equal({ cancelled: 503, refunding: 2, refundCents: 40, after: null });
  });

  it('keep the sum of the finished steps if a step fails', async () => {
    let sum = NOTHING_VOIDED;
    const failing = (after: string | null) => (after === null ? step(after) : Promise.reject(new Error('mysql')));
    const taken = takeVoidSteps(failing, NOTHING_VOIDED, (now) => (sum = now), never);
    expect(await taken.catch((error: Error) => error.message)).to.equal('mysql');
    expect(sum).to.deep.include({ cancelled: 500, after: 'unpaid.9-9' });
  });
});
